"""One message of a saver to its store: what it touches, and what it would do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.explorer.contents import content_of, with_mentions

from jskv_saver.checkpoint.layout import DIGEST, EPOCH, RECORDS, WRITES
from jskv_saver.document.model import ANY, Pattern
from jskv_saver.document.port import DocumentStore

NO_ID = "00000000-0000-0000-0000-"
"""What the ids of all checkpoints of the scripts begin with."""


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


Areas = tuple[Area, ...]
Act = Callable[[DocumentStore, "Message"], Awaitable[Any]]


@dataclass(slots=True, eq=False)
class Message:
    """What waits at a gate.

    Attributes:
        text: What it is, shortly; without versions.
        act: Does it, in a store.
        target: The store that it is for.
        reads: What its answer, or its condition, depends on.
        puts: What it stores.
        purges: What it removes.
        conditions: The versions that it names.
        data: What it stores there.
        rest: Of a batch: the messages that follow, which are on their way as well.
    """

    text: str
    act: Act
    target: DocumentStore
    reads: Areas = ()
    puts: Areas = ()
    purges: Areas = ()
    conditions: tuple[int, ...] = ()
    data: Mapping[str, Any] | None = None
    rest: tuple[Message, ...] = ()

    def call(self) -> Awaitable[Any]:
        """Do it where it is for."""
        return self.act(self.target, self)

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return bool(self.puts or self.purges)

    @property
    def content(self) -> tuple[bytes, tuple[int, ...]]:
        """What it stores, without versions, and these."""
        if self.data is None:
            return b"", ()
        (put,) = self.puts
        (collection,) = put.collections
        return content_of(collection, put.path, self.data)

    def plain(self) -> tuple[Any, ...]:
        """What it is, without versions."""
        rest = tuple(each.plain() for each in self.rest)
        return self.text, self.content[0], rest

    def versions(self) -> tuple[int, ...]:
        """The versions in it, and in what follows it."""
        found = self.conditions + self.content[1]
        for each in self.rest:
            found += each.versions()
        return found

    def with_versions(self, versions: Iterator[int]) -> Message:
        """The same with other versions, in the order of `versions`."""
        conditions = tuple(next(versions) for _ in self.conditions)
        mentioned = tuple(next(versions) for _ in self.content[1])
        data = with_mentions(self.data, mentioned) if mentioned else self.data
        rest = tuple(each.with_versions(versions) for each in self.rest)
        return replace(self, conditions=conditions, data=data, rest=rest)

    @property
    def nature(self) -> tuple[Areas, Areas, Areas]:
        """All that decides what it commutes with."""
        return self.reads, self.puts, self.purges

    def commutes(self, other: Message) -> bool:
        """Whether the order of the two makes no difference to anybody."""
        if not self.changes and not other.changes:
            return True
        key = self.nature, other.nature
        known = _COMMUTE.get(key)
        if known is None:
            known = _COMMUTE[key] = _commute(self, other)
        return known

    def compares(self, other: Message) -> bool:
        """Whether somebody may compare the versions of what the two store."""
        for mine in self.puts:
            if mine.collections != {RECORDS}:
                continue
            for theirs in other.puts:
                # An epoch decides about all that is older, and a record that is put
                # again about the writes of its first life.
                if mine.path[-1] == EPOCH or (
                    theirs.collections == {WRITES} and theirs.path[3] == mine.path[3]
                ):
                    return True
        return False


_COMMUTE: dict[Any, bool] = {}


def _commute(one: Message, other: Message) -> bool:
    if one.compares(other) or other.compares(one):
        return False
    mine, theirs = one.puts + one.purges, other.puts + other.purges
    if any(a.meets(b) for a in mine for b in other.reads):
        return False
    if any(a.meets(b) for a in theirs for b in one.reads):
        return False
    if any(a.meets(b) for a in one.puts for b in theirs):
        return False
    return not any(a.meets(b) for a in other.puts for b in mine)


def name_of(collection: str, path: str | Pattern) -> str:
    """A document's or an area's name in a trace: without agent, thread, namespace.

    What differs has another name: it is all that tells where a read of many is.
    """
    segments = (path,) if isinstance(path, str) else tuple(path)
    rest = ["*" if each is ANY else _shown(each) for each in segments[3:]]
    return "/".join([collection, *rest])


def _shown(segment: str) -> str:
    """A checkpoint id as scripts have it, the beginning of a digest, or a name."""
    if segment.startswith(NO_ID):
        return segment.removeprefix(NO_ID).lstrip("0") or "0"
    return (segment[:8] if len(segment) == 2 * DIGEST else segment) or "-"
