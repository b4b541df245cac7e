"""Where a coroutine is, and what it still holds: all that decides what it does next.

Two actors in the same state need not have had the same answers: what they have used
and let go of makes no difference any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Operation

from jskv_saver._portal import Portal
from jskv_saver.checkpoint.core import SaverCore
from jskv_saver.checkpoint.drafts import Draft
from jskv_saver.checkpoint.layout import Scope
from jskv_saver.checkpoint.litter import Litter
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.turns import Turns
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.document.model import Document

FIRST_VERSION = 1 << 40
"""Versions begin here in a game, so that no other number is one."""
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
        if value is None or isinstance(value, str | bytes | bool):
            return value
        if isinstance(value, int):
            if value < FIRST_VERSION:
                return value
            self.versions.append(value)
            return "version"
        # Times, which decide only how long somebody is patient.
        if isinstance(value, float):
            return "time"
        if isinstance(value, Actor):
            return value.name
        if isinstance(value, _CONSTANT):
            return type(value).__name__
        if id(value) in self._met:
            return ("again", self._met[id(value)])
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return (type(value).__name__, self._contents(value))

    def _contents(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return [(self.of(key), self.of(each)) for key, each in value.items()]
        if isinstance(value, AbstractSet):
            return [self.of(each) for each in sorted(value, key=repr)]
        if isinstance(value, Document):
            return [self.of(each) for each in (value.id, value.version, value.data)]
        if isinstance(value, Sequence):
            return [self.of(each) for each in value]
        if isinstance(value, CoroutineType):
            return self._frame(value.cr_frame), self.of(value.cr_await)
        if isinstance(value, GeneratorType):
            return self._frame(value.gi_frame), self.of(value.gi_yieldfrom)
        if isinstance(value, AsyncGeneratorType):
            return self._frame(value.ag_frame), self.of(value.ag_await)
        if isinstance(value, asyncio.Task):
            return self.of(value.get_coro())
        if isinstance(value, asyncio.Future):
            if not value.done() or value.cancelled():
                return value.done()
            return self.of(value.exception() or value.result())
        if isinstance(value, MethodType):
            return value.__name__, self.of(value.__self__)
        if isinstance(value, FunctionType):
            cells = value.__closure__ or ()
            return value.__qualname__, [self.of(_cell(cell)) for cell in cells]
        return self._attributes(value)

    def _frame(self, frame: FrameType | None) -> Any:
        if frame is None:
            return None
        held = [(name, self.of(each)) for name, each in frame.f_locals.items()]
        return frame.f_code.co_qualname, frame.f_lasti, held

    def _attributes(self, value: Any) -> Any:
        held = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            names = getattr(kind, "__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if hasattr(value, name) and not name.startswith("__"):
                    held[name] = getattr(value, name)
        return [(name, self.of(each)) for name, each in sorted(held.items())]


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
