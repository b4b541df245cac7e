"""A document store's primitives with a span around each, and its requests counted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jskv_saver._nats.requests import Requests
from jskv_saver._nats.waiting import Message, Numbered
from jskv_saver.otel.recording import COSTS, SYSTEM, Telemetry, refused

_PRIMITIVES: Final = (
    "ensure_collection",
    "drop_collection",
    "collections",
    "put",
    "get",
    "delete",
    "find",
    "count",
    "put_many",
    "get_many",
    "delete_many",
    "ids",
)

_W3C: Final = TraceContextTextMapPropagator()


@functools.cache
def traced_store(kind: type[Any]) -> type[Any]:
    """A subclass whose calls are recorded."""
    wrapped = {name: _around(getattr(kind, name), name) for name in _PRIMITIVES}
    wrapped["__module__"] = kind.__module__
    wrapped["__qualname__"] = kind.__qualname__
    wrapped["__doc__"] = kind.__doc__
    return type(kind.__name__, (kind,), wrapped)


def _around(method: Callable[..., Any], primitive: str) -> Any:
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        telemetry: Telemetry = self._telemetry
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            given = {}  # The method says what is wrong.
        attributes = _attributes(primitive, given)
        name = " ".join(filter(None, (primitive, attributes.get("db.collection.name"))))
        recorded = telemetry.start(name, SpanKind.CLIENT, attributes)
        try:
            with recorded.going_on():
                return await method(self, *args, **kwargs)
        except Exception as exc:
            if refused(exc):
                for cost in COSTS.get():
                    cost.retries += 1
            raise
        finally:
            recorded.span.set_attribute("jskv.round_trips", recorded.cost.round_trips)
            if recorded.error:
                attributes["error.type"] = recorded.error
            telemetry.calls.record(recorded.end(), attributes)

    return called


def _attributes(primitive: str, given: Mapping[str, Any]) -> dict[str, str]:
    attributes = {"db.system.name": SYSTEM, "db.operation.name": primitive}
    if isinstance(namespace := given.get("namespace"), str):
        attributes["db.namespace"] = namespace
    collection = given.get("collection") or given.get("name")
    if isinstance(collection, str):
        attributes["db.collection.name"] = collection
    return attributes


class CountedRequests(Requests):
    """Requests whose number and bytes are added to the operation they belong to."""

    async def _exchange(self, kind: Any, message: Message, write: bool) -> Any:
        if issubclass(kind, Numbered):
            # To a service of ours. What is stored keeps its own headers.
            headers: dict[str, str] = dict(message.headers or {})
            _W3C.inject(headers)
            message = message._replace(headers=headers or None)
        sent(1, len(message.payload))
        answer = await super()._exchange(kind, message, write)
        received(answer if isinstance(answer, list) else [answer])
        return answer

    async def fast_batch(self, messages: Sequence[Message]) -> Any:
        """As it is, counted as one."""
        sent(1, sum(len(message.payload) for message in messages))
        return await super().fast_batch(messages)


def sent(round_trips: int, size: int) -> None:
    """Add to what goes on here."""
    for cost in COSTS.get():
        cost.round_trips += round_trips
        cost.sent += size


def received(answers: Sequence[Any]) -> None:
    """Add to what goes on here."""
    size = sum(len(answer.data) for answer in answers)
    for cost in COSTS.get():
        cost.received += size
