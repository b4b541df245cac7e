"""The one call that turns it on."""

from __future__ import annotations

from typing import Any, TypeVar

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from jskv_saver._nats.requests import Requests
from jskv_saver.adapters.wire.service import DocumentService
from jskv_saver.checkpoint.saver import DocumentCheckpointSaver
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import InvalidRequestError
from jskv_saver.otel.recording import Telemetry
from jskv_saver.otel.savers import traced_saver
from jskv_saver.otel.services import TracedServing
from jskv_saver.otel.stores import CountedRequests, traced_store

T = TypeVar("T")


def instrument(
    target: T,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> T:
    """Record spans and metrics of a saver, a document store, or a service.

    What it is built on is recorded as well: a saver's store, a service's store. The
    object itself is changed and given back; others of its class stay as they are. To
    be called before the first use. Once is enough: again it does nothing.

    Args:
        target: A saver, a document store or a `DocumentService`.
        tracer_provider: The application's; None: the global one.
        meter_provider: The application's; None: the global one.

    Raises:
        InvalidRequestError: It is something else.
    """
    if not isinstance(
        target, DocumentCheckpointSaver | DocumentService | DocumentStore
    ):
        raise InvalidRequestError(
            "only a saver, a document store or a DocumentService can be instrumented, "
            f"not {type(target).__name__}"
        )
    _instrument(target, Telemetry(tracer_provider, meter_provider))
    return target


def _instrument(target: Any, telemetry: Telemetry) -> None:
    if isinstance(target, DocumentService):
        target = target._serving
        _instrument(target.store, telemetry)
        _become(target, TracedServing, telemetry)
    elif isinstance(target, DocumentCheckpointSaver):
        _instrument(target.store, telemetry)
        _become(target, traced_saver, telemetry)
    else:
        _become(target, traced_store, telemetry)
        for requests in _requests_of(target):
            requests.__class__ = CountedRequests


def _become(target: Any, kind: Any, telemetry: Telemetry) -> None:
    """Give an object its traced class; who is not asked for pays nothing."""
    if not hasattr(target, "_telemetry"):
        target._telemetry = telemetry
        target.__class__ = kind if isinstance(kind, type) else kind(type(target))


def _requests_of(store: Any) -> list[Requests]:
    """Where a store's requests to NATS go through; one in memory has none."""
    holders = (store, getattr(store, "_bucket", None))
    found = (getattr(holder, "_requests", None) for holder in holders)
    return [requests for requests in found if type(requests) is Requests]
