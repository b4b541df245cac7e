"""Where a coroutine is, and what it still holds: all that decides what it does next.

Two actors in the same state need not have had the same answers: what they have used
and let go of makes no difference any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
)
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.explorer.actors import Actor
from tests.explorer.answers import told
from tests.explorer.contents import digest
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Operation
from tests.explorer.versions import FIRST_VERSION

from jskv_saver._portal import Portal
from jskv_saver.checkpoint.core import SaverCore
from jskv_saver.checkpoint.drafts import Draft
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, Scope
from jskv_saver.checkpoint.litter import Litter
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.turns import Turns
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.document.model import Document, path_of

_CONSTANT = (
    # These hold nothing that changes but the heads, which are looked at by themselves.
    SaverCore,
    Partition,
    Writer,
    Reader,
    Pruner,
    Litter,
    # What a script puts follows from where it is.
    Draft,
    Scope,
    Operation,
    GatedStore,
    Portal,
    Turns,
    JsonPlusSerializer,
    asyncio.AbstractEventLoop,
    type,
)
_OF_GATES = {Actor.wait.__code__.co_filename, GatedStore.get.__code__.co_filename}
_HELD_AT_GATES = ("stored", "found")
"""What a store holds while it waits; its messages are looked at by themselves."""
Local = tuple[bytes, tuple[int, ...]]
"""A name for all that decides what an actor does next, and the versions in it."""


def local_of(actor: Actor, task: asyncio.Task[None], drawn: int) -> Local:
    """The state of an actor.

    Args:
        actor: The actor.
        task: Where it follows its script.
        drawn: How many names it has drawn.
    """
    if actor.ended:
        return digest(("ended", type(actor.failure).__name__)), ()
    frames = Frames()
    held: list[Any] = [actor.current, drawn]
    held.append(frames.of(actor.memory))
    held.append(frames.of(actor.holding))
    held.append(frames.of(task))
    versions = frames.versions
    for answer, seen in sorted(actor.unused, key=lambda each: repr(each[0])):
        held.append(answer)
        versions += seen
    for message in actor.messages:
        held.append(message.plain())
        versions += message.versions()
    return digest(held), tuple(versions)


class Frames:
    """Takes the state of coroutines apart.

    Attributes:
        versions: The versions that they hold, in the order in which they were met.
    """

    def __init__(self) -> None:
        self.versions: list[int] = []
        self._met: dict[int, int] = {}
        # What was met stays, or another one could get its address.
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        """What a value is, in plain values without versions."""
        kind = type(value)
        if value is None or kind is str or kind is bytes or kind is bool:
            return value
        if kind is int:
            if value < FIRST_VERSION:
                return value
            self.versions.append(value)
            return "version"
        # Times, which decide only how long somebody is patient.
        if kind is float:
            return "time"
        if kind is tuple:
            return ("tuple", [self.of(each) for each in value])
        way = _WAYS.get(kind)
        if way is None:
            way = _WAYS[kind] = _way(kind)
        if way is _constant:
            return value.name if isinstance(value, Actor) else kind.__name__
        if id(value) in self._met:
            return ("again", self._met[id(value)])
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return (kind.__name__, way(self, value))

    def frame(self, frame: FrameType | None) -> Any:
        if frame is None:
            return None
        code = frame.f_code
        names: Any = frame.f_locals
        if code.co_filename in _OF_GATES:
            names = {name: names[name] for name in _HELD_AT_GATES if name in names}
        # In the order of their names: that of the frame tells when it was looked at.
        held = [(name, self.of(names[name])) for name in sorted(names)]
        return code.co_qualname, frame.f_lasti, held


def _constant(frames: Frames, value: Any) -> Any:
    raise AssertionError("its name is enough")


def _mapping(frames: Frames, value: Any) -> Any:
    return [(frames.of(key), frames.of(each)) for key, each in value.items()]


def _set(frames: Frames, value: Any) -> Any:
    return [frames.of(each) for each in sorted(value, key=repr)]


def _document(frames: Frames, value: Document) -> Any:
    path = path_of(value.id)
    # Of the epochs alone it matters here where they are kept.
    collection = RECORDS if path[-1] == EPOCH and "e" in value.data else ""
    named, versions = told(collection, value)
    held = [each for each in versions if each >= FIRST_VERSION]
    frames.versions += held
    return named, len(held)


def _sequence(frames: Frames, value: Any) -> Any:
    return [frames.of(each) for each in value]


def _coroutine(frames: Frames, value: Any) -> Any:
    return frames.frame(value.cr_frame), frames.of(value.cr_await)


def _generator(frames: Frames, value: Any) -> Any:
    return frames.frame(value.gi_frame), frames.of(value.gi_yieldfrom)


def _async_generator(frames: Frames, value: Any) -> Any:
    return frames.frame(value.ag_frame), frames.of(value.ag_await)


def _task(frames: Frames, value: Any) -> Any:
    return frames.of(value.get_coro())


def _future(frames: Frames, value: Any) -> Any:
    if not value.done() or value.cancelled():
        return value.done()
    return frames.of(value.exception() or value.result())


def _method(frames: Frames, value: Any) -> Any:
    return value.__name__, frames.of(value.__self__)


def _function(frames: Frames, value: Any) -> Any:
    cells = value.__closure__ or ()
    return value.__qualname__, [frames.of(_cell(cell)) for cell in cells]


def _attributes(frames: Frames, value: Any) -> Any:
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        names = getattr(kind, "__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(value, name) and not name.startswith("__"):
                held[name] = getattr(value, name)
    return [(name, frames.of(each)) for name, each in sorted(held.items())]


def _plain(frames: Frames, value: Any) -> Any:
    return frames.of(
        {str: str, bytes: bytes, int: int, float: float}[_base(value)](value)
    )


def _base(value: Any) -> Any:
    return next(each for each in (str, bytes, int, float) if isinstance(value, each))


Way = Callable[[Frames, Any], Any]
_WAYS: dict[type, Way] = {}
_BY_KIND: tuple[tuple[Any, Way], ...] = (
    (str | bytes | int | float, _plain),
    ((Actor, *_CONSTANT), _constant),
    (Mapping, _mapping),
    (AbstractSet, _set),
    (Document, _document),
    (Sequence, _sequence),
    (CoroutineType, _coroutine),
    (GeneratorType, _generator),
    (AsyncGeneratorType, _async_generator),
    (asyncio.Task, _task),
    (asyncio.Future, _future),
    (MethodType, _method),
    (FunctionType, _function),
)


def _way(kind: type) -> Way:
    """How values of a type are taken apart."""
    for kinds, way in _BY_KIND:
        if issubclass(kind, kinds):
            return way
    return _attributes


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
