"""Spans, instruments, and what one operation cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from jskv_saver._nats.settings import package_version
from jskv_saver.errors import VersionConflictError, WriterConflictError

NAME: Final = "jskv_saver"
SYSTEM: Final = "nats"
Attributes = Mapping[str, str | bool | int | float]

# Seconds; the buckets that the semantic conventions advise.
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_TRIPS: Final = (1, 2, 3, 5, 10, 20, 50, 100, 500)
_BYTES: Final = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)


@dataclass(slots=True)
class Cost:
    """What an operation needed.

    Attributes:
        round_trips: Requests to NATS.
        sent: Bytes of their payloads.
        received: Bytes of the answers.
        retries: Writes that were refused because another writer was first; each was
            decided anew and, unless it became an error, tried again.
    """

    round_trips: int = 0
    sent: int = 0
    received: int = 0
    retries: int = 0


COSTS: Final[ContextVar[tuple[Cost, ...]]] = ContextVar("jskv_costs", default=())
"""Of the operations that are going on here, the outermost one first."""


class Telemetry:
    """The tracer and the instruments.

    Args:
        tracer_provider: The application's; None: the global one.
        meter_provider: The application's; None: the global one.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        version = package_version()
        self.tracer: Final = trace.get_tracer(NAME, version, tracer_provider)
        meter = metrics.get_meter(NAME, version, meter_provider)

        def histogram(name: str, unit: str, what: str, bounds: Any) -> Any:
            return meter.create_histogram(
                name, unit, what, explicit_bucket_boundaries_advisory=bounds
            )

        self.duration: Final = histogram(
            "jskv.operation.duration", "s", "Duration of saver operations.", _SECONDS
        )
        self.round_trips: Final = histogram(
            "jskv.operation.round_trips",
            "{request}",
            "Requests to NATS of a saver operation.",
            _TRIPS,
        )
        self.io: Final = meter.create_counter(
            "jskv.io", "By", "Payload bytes of saver operations."
        )
        self.retries: Final = meter.create_counter(
            "jskv.retries", "{write}", "Writes refused as another writer was first."
        )
        self.conflicts: Final = meter.create_counter(
            "jskv.conflicts", "{conflict}", "Operations that ended as a conflict."
        )
        self.calls: Final = histogram(
            "db.client.operation.duration",
            "s",
            "Duration of document store calls.",
            _SECONDS,
        )
        self.served: Final = histogram(
            "rpc.server.call.duration", "s", "Duration of served calls.", _SECONDS
        )
        self.request_size: Final = histogram(
            "rpc.server.request.size", "By", "Size of requests.", _BYTES
        )
        self.response_size: Final = histogram(
            "rpc.server.response.size", "By", "Size of answers.", _BYTES
        )

    def start(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        context: Context | None = None,
    ) -> Operation:
        """Begin to record an operation."""
        span = self.tracer.start_span(name, context, kind, attributes)
        return Operation(span)


class Operation:
    """An operation that is going on, in one or several pieces."""

    def __init__(self, span: Span) -> None:
        self.span: Final = span
        self.cost: Final = Cost()
        self.error: str | None = None
        self._began: Final = perf_counter()

    @contextmanager
    def going_on(self, *, alone: bool = False) -> Iterator[None]:
        """What runs inside belongs to it, and may end it with an error.

        Args:
            alone: And to none that is going on around it.
        """
        around = () if alone else COSTS.get()
        costs = COSTS.set((*around, self.cost))
        try:
            with trace.use_span(self.span, False, False, False):
                yield
        except GeneratorExit:
            raise
        except BaseException as exc:
            self.failed(exc)
            raise
        finally:
            COSTS.reset(costs)

    def failed(self, exc: BaseException) -> None:
        """Record what it ended with."""
        self.fail(type(exc).__qualname__, str(exc))

    def fail(self, kind: str, text: str) -> None:
        """Record an error by the name of its class."""
        self.error = kind
        self.span.set_status(Status(StatusCode.ERROR, text))
        self.span.set_attribute("error.type", kind)

    def end(self) -> float:
        """End the span. Seconds since the beginning."""
        self.span.end()
        return perf_counter() - self._began


def refused(exc: BaseException) -> bool:
    """Whether a write was refused because another writer was first."""
    return isinstance(exc, VersionConflictError) and not isinstance(
        exc, WriterConflictError
    )
