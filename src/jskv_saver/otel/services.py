"""A served call with a span around it, which continues the caller's trace."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jskv_saver.adapters.wire.serving import Call, Serving
from jskv_saver.otel.recording import Operation, Telemetry

SERVICE: Final = "jskv.v1"
"""The package of the wire contract."""
_W3C: Final = TraceContextTextMapPropagator()


class TracedServing(Serving):
    """Serves as it does, and records each call."""

    _telemetry: Telemetry


class _TracedCall(Call):
    __slots__ = ("_operation", "_size")

    async def _serve(self) -> None:
        telemetry = self._telemetry
        known = self.primitive in self._serving.stats
        # What anybody may have written must not become the name of a metric's series.
        primitive = self.primitive if known else "_OTHER"
        attributes = {
            "rpc.system.name": "jskv",
            "rpc.method": f"{SERVICE}/{primitive}",
        }
        # Nothing of this process is around it: it began with the caller.
        context = _W3C.extract(dict(self._msg.headers or {}), Context())
        self._size = 0
        operation = self._operation = telemetry.start(
            f"{SERVICE}/{primitive}",
            SpanKind.SERVER,
            {**attributes, "messaging.destination.name": self.subject},
            context,
        )
        try:
            with operation.going_on(alone=True):
                await super()._serve()
        finally:
            operation.span.set_attributes(
                {
                    "rpc.request.size": len(self._msg.data),
                    "rpc.response.size": self._size,
                    "jskv.round_trips": operation.cost.round_trips,
                }
            )
            if operation.error:
                attributes["error.type"] = operation.error
            telemetry.request_size.record(len(self._msg.data), attributes)
            telemetry.response_size.record(self._size, attributes)
            telemetry.served.record(operation.end(), attributes)

    @property
    def _telemetry(self) -> Telemetry:
        serving: Any = self._serving
        telemetry: Telemetry = serving._telemetry
        return telemetry

    async def _send(self, body: bytes) -> None:
        self._size = len(body)
        await super()._send(body)

    async def _fail(self, primitive: str, exc: Exception) -> None:
        operation: Operation | None = getattr(self, "_operation", None)
        if operation is not None:
            operation.failed(exc)
        await super()._fail(primitive, exc)


TracedServing.kind = _TracedCall
