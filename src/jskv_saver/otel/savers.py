"""A saver's methods with a span around each, as a subclass of its class."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final

from opentelemetry.trace import SpanKind

from jskv_saver.errors import DivergentCheckpointError, WriterConflictError
from jskv_saver.otel.recording import Attributes, Operation, Telemetry

_LEFT_OUT: Final = frozenset({"close", "get", "setup", "lease", "watch"})
# Where methods say which thread they are about.
_THREAD: Final = ("thread_id", "source_thread_id")
_CONFLICTS: Final = (DivergentCheckpointError, WriterConflictError)


@functools.cache
def traced_saver(kind: type[Any]) -> type[Any]:
    """A subclass whose operations are recorded."""
    wrapped: dict[str, Any] = {}
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        operation = name.removeprefix("a") if name.startswith("a") else name
        if not name.startswith("a") or not hasattr(kind, operation):
            # The blocking twin of an asynchronous one, or no operation at all.
            operation = name
            if not hasattr(kind, f"a{name}"):
                continue
        if operation in _LEFT_OUT or not inspect.isfunction(method):
            continue
        wrapped[name] = _around(method, operation)
    wrapped["__module__"] = kind.__module__
    wrapped["__qualname__"] = kind.__qualname__
    wrapped["__doc__"] = kind.__doc__
    return type(kind.__name__, (kind,), wrapped)


def _around(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    signature = inspect.signature(method)

    def begin(saver: Any, args: Any, kwargs: Any) -> Operation:
        try:
            given = signature.bind(saver, *args, **kwargs).arguments
        except TypeError:
            given = {}  # The method says what is wrong.
        telemetry: Telemetry = saver._telemetry
        attributes = _common(saver, operation) | _details(given)
        return telemetry.start(operation, SpanKind.INTERNAL, attributes)

    if inspect.isasyncgenfunction(method):

        @functools.wraps(method)
        async def listing(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            recorded = begin(self, args, kwargs)
            found = method(self, *args, **kwargs)
            try:
                while True:
                    with recorded.going_on():
                        item = await anext(found, _END)
                    if item is _END:
                        return
                    yield item
            finally:
                await found.aclose()
                _end(self, operation, recorded)

        return listing

    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def pulled(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            recorded = begin(self, args, kwargs)
            found = method(self, *args, **kwargs)
            try:
                while True:
                    with recorded.going_on():
                        item = next(found, _END)
                    if item is _END:
                        return
                    yield item
            finally:
                found.close()
                _end(self, operation, recorded)

        return pulled

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorded = begin(self, args, kwargs)
            try:
                with recorded.going_on():
                    return await method(self, *args, **kwargs)
            finally:
                _end(self, operation, recorded)

        return awaited

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorded = begin(self, args, kwargs)
        try:
            with recorded.going_on():
                return method(self, *args, **kwargs)
        finally:
            _end(self, operation, recorded)

    return called


_END: Final = object()


def _common(saver: Any, operation: str) -> dict[str, str]:
    return {
        "jskv.operation": operation,
        "jskv.namespace": saver.namespace,
        "jskv.agent": saver.agent_id,
    }


def _details(given: Mapping[str, Any]) -> dict[str, str | int]:
    """What the arguments tell: thread, checkpoint namespace and checkpoint."""
    found: dict[str, str | int] = {}
    config = given.get("config")
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if isinstance(configurable, Mapping):
        found |= {
            attribute: str(configurable[name])
            for name, attribute in (
                ("thread_id", "jskv.thread.id"),
                ("checkpoint_ns", "jskv.checkpoint.namespace"),
                ("checkpoint_id", "jskv.checkpoint.id"),
            )
            if configurable.get(name)
        }
    for name in _THREAD:
        if isinstance(given.get(name), str | int):
            found["jskv.thread.id"] = str(given[name])
    for name in ("thread_ids", "run_ids"):
        if isinstance(given.get(name), list | tuple):
            found[f"jskv.{name.removesuffix('s')}.count"] = len(given[name])
    return found


def _end(saver: Any, operation: str, recorded: Operation) -> None:
    telemetry: Telemetry = saver._telemetry
    cost, span = recorded.cost, recorded.span
    span.set_attributes(
        {
            "jskv.round_trips": cost.round_trips,
            "jskv.bytes.sent": cost.sent,
            "jskv.bytes.received": cost.received,
            "jskv.retries": cost.retries,
        }
    )
    attributes: Attributes = _common(saver, operation)
    conflict = recorded.error in {kind.__qualname__ for kind in _CONFLICTS}
    if conflict:
        telemetry.conflicts.add(1, attributes)
    if cost.retries:
        telemetry.retries.add(cost.retries, attributes)
    for direction, size in (("transmit", cost.sent), ("receive", cost.received)):
        if size:
            telemetry.io.add(size, {**attributes, "network.io.direction": direction})
    telemetry.round_trips.record(cost.round_trips, attributes)
    if recorded.error:
        attributes = {**attributes, "error.type": recorded.error}
    telemetry.duration.record(recorded.end(), attributes)
