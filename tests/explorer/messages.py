"""One message of a saver to its store: what it touches, and what it would do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jskv_saver.checkpoint.layout import EPOCH, RECORDS
from jskv_saver.document.model import ANY, Pattern

Call = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Area:
    """Some documents: one path or pattern, or all strictly below a prefix."""

    collections: frozenset[str]
    path: tuple[Any, ...]
    deep: bool = False

    def meets(self, other: Area) -> bool:
        """Whether a document may be in both."""
        if not self.collections & other.collections:
            return False
        mine, theirs = len(self.path), len(other.path)
        if not self.deep and not other.deep and mine != theirs:
            return False
        # What is below a prefix is longer than the prefix.
        if self.deep and not other.deep and theirs <= mine:
            return False
        if other.deep and not self.deep and mine <= theirs:
            return False
        return all(
            a == b or a is ANY or b is ANY
            for a, b in zip(self.path, other.path, strict=False)
        )


def area(
    collections: str | Sequence[str], path: str | Pattern, *, deep: bool = False
) -> Area:
    """An area of one collection, or of several."""
    names = (collections,) if isinstance(collections, str) else collections
    segments = (path,) if isinstance(path, str) else tuple(path)
    return Area(frozenset(names), segments, deep)


@dataclass(frozen=True, slots=True)
class Message:
    """What waits at a gate.

    Attributes:
        text: What it is, shortly; without versions.
        reads: What its answer, or its condition, depends on.
        puts: What it stores.
        purges: What it removes.
        call: Does it.
        conditions: The versions that it names.
        data: What it stores there.
        rest: Of a batch: the messages that follow, which are on their way as well.
    """

    text: str
    call: Call
    reads: tuple[Area, ...] = ()
    puts: tuple[Area, ...] = ()
    purges: tuple[Area, ...] = ()
    conditions: tuple[int, ...] = ()
    data: Any = None
    rest: tuple[Message, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return bool(self.puts or self.purges)

    @property
    def _is_epoch(self) -> bool:
        return any(
            each.collections == {RECORDS} and each.path[-1] == EPOCH
            for each in self.puts
        )

    def commutes(self, other: Message) -> bool:
        """Whether the order of the two makes no difference to anybody."""
        if not self.changes and not other.changes:
            return True
        if (self._is_epoch and other.puts) or (other._is_epoch and self.puts):
            # Whether a document is older than an epoch decides what becomes of it.
            return False
        mine, theirs = self.puts + self.purges, other.puts + other.purges
        if any(a.meets(b) for a in mine for b in other.reads):
            return False
        if any(a.meets(b) for a in theirs for b in self.reads):
            return False
        if any(a.meets(b) for a in self.puts for b in theirs):
            return False
        return not any(a.meets(b) for a in other.puts for b in mine)


def name_of(collection: str, path: str | Pattern) -> str:
    """A document's or an area's name in a trace: without agent, thread, namespace."""
    segments = (path,) if isinstance(path, str) else tuple(path)
    rest = ["*" if each is ANY else each[:8] or "-" for each in segments[3:]]
    return "/".join([collection, *rest])
