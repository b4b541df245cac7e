"""Which documents a thread, its checkpoints and their writes become. Pure.

    cp  agent, thread, ns, checkpoint id     one record, immutable
    cp  agent, thread, ns, ""                the epoch: opens it, names the dead
    bl  agent, thread, ns, digest            a part of channel values
    wr  agent, thread, ns, checkpoint, task  the pending writes of one task
    wr  …, task, part name                   a part of large writes
    th  agent, thread, ns                    index: this thread has this namespace
    rn  agent, thread, run, ns               index: this run wrote here

A record is a document of three byte fields: `l` its layout as MessagePack, `d` the
digests of the parts that it refers to, 16 bytes each, and `b` its own inline bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import ormsgpack
from langgraph.checkpoint.base import ChannelVersions

from jskv_saver.checkpoint.increments import Run
from jskv_saver.document.model import ANY, Document, Path, Pattern
from jskv_saver.errors import CorruptDocumentError

RECORDS: Final = "cp"
WRITES: Final = "wr"
PARTS: Final = "bl"
THREADS: Final = "th"
RUNS: Final = "rn"

EPOCH: Final = ""
"""The reserved last segment; LangGraph reads an empty checkpoint id as "none"."""
DIGEST: Final = 16
"""Bytes of a part's digest."""
_SENDS_IN_CHANNEL: Final = 4
"""The checkpoint format from which on sent tasks are a channel's value."""


class Typed(NamedTuple):
    """A value as LangGraph's serde gives it."""

    kind: str
    content: bytes


class Entry:
    """Where a value of a record is: its serde type and its runs.

    One that was read makes its runs when they are asked for: a listing reads many, and
    joins them without.

    Args:
        kind: The serde type.
        runs: The runs.
        flat: In their place: part number, offset and length of each, in a row.
        table: The names of the parts, by number; the record itself is the last one.
    """

    __slots__ = ("_flat", "_runs", "_table", "kind")

    def __init__(
        self,
        kind: str,
        runs: tuple[Run, ...] | None = None,
        flat: Sequence[int] = (),
        table: Sequence[bytes] = (),
    ) -> None:
        self.kind = kind
        self._runs = runs
        self._flat = flat
        self._table = table

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return self.kind == other.kind and self.runs == other.runs

    def __hash__(self) -> int:
        return hash((self.kind, self.runs))

    def __repr__(self) -> str:
        return f"Entry({self.kind!r}, {self.runs!r})"

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, in order."""
        if self._runs is None:
            self._runs = tuple([Run(*piece) for piece in self.pieces()])
        return self._runs

    def pieces(self) -> Iterable[tuple[bytes, int, int]]:
        """The runs, in order, as plain tuples."""
        if self._runs is not None:
            return self._runs
        flat, table = self._flat, self._table
        names = [table[at] for at in flat[::3]]
        return zip(names, flat[1::3], flat[2::3], strict=True)

    @property
    def length(self) -> int:
        """The value's size in bytes."""
        if self._runs is None:
            return sum(self._flat[2::3])
        return sum([run.length for run in self._runs])


class Scope(NamedTuple):
    """A checkpoint namespace of a thread of an agent: what is fenced as one."""

    agent: str
    thread: str
    ns: str

    @property
    def prefix(self) -> Path:
        """The prefix of its records."""
        return tuple(self)

    def record(self, id: str) -> Path:
        """The id of a record's document."""
        return (self.agent, self.thread, self.ns, id)

    def part(self, digest: bytes) -> Path:
        """The id of a part's document."""
        return (self.agent, self.thread, self.ns, digest.hex())

    def task(self, id: str, task: str) -> Path:
        """The id of the document with the writes of a task."""
        return (self.agent, self.thread, self.ns, id, task)

    def task_part(self, id: str, task: str, name: str) -> Path:
        """The id of a part of the writes of a task."""
        return (self.agent, self.thread, self.ns, id, task, name)

    def writes(self, id: str) -> list[tuple[str, Pattern]]:
        """Patterns of all writes to a checkpoint, parts included, for `get_many`."""
        tasks: Pattern = (*self.record(id), ANY)
        return [(WRITES, tasks), (WRITES, (*tasks, ANY))]

    def run(self, run: str) -> Path:
        """The id of the index document of a run."""
        return (self.agent, self.thread, run, self.ns)


class Record(NamedTuple):
    """A checkpoint as it is stored; its values are not deserialised.

    Attributes:
        id: The checkpoint id.
        parent: The id of the parent, or None.
        known: The greatest id of the namespace when it was written: its own, or that
            of an earlier one.
        run: The run that wrote it, or None.
        deltas: Channels whose value only the history holds.
        format: The checkpoint's own format, its `v`.
        versions: Its channel versions.
        skeleton: The checkpoint without its channel values and versions.
        metadata: Its metadata.
        channels: Its channel values.
        inline: The bytes of the runs that name no part.
        version: The document's version.
    """

    id: str
    parent: str | None
    known: str
    run: str | None
    deltas: tuple[str, ...]
    format: int
    versions: ChannelVersions
    skeleton: Entry
    metadata: Entry
    channels: Mapping[str, Entry]
    inline: bytes
    version: int = 0

    def entries(self) -> Iterable[Entry]:
        """All values of the record."""
        yield self.skeleton
        yield self.metadata
        yield from self.channels.values()

    def digests(self) -> set[bytes]:
        """The parts that it refers to."""
        found = {part for entry in self.entries() for part, _, _ in entry.pieces()}
        found.discard(b"")
        return found


@dataclass(frozen=True, slots=True)
class Epoch:
    """The last prune of a namespace, or its opening.

    Attributes:
        known: The greatest surviving id; empty: there is none; None: look at the
            names.
        dead: Ids that are to be removed, with the versions of their records.
        version: The document's version.
    """

    known: str | None
    dead: Mapping[str, int]
    version: int = 0

    def kills(self, record: Record) -> bool:
        """Whether a record was to be removed; one that was put again is not."""
        return record.version <= self.dead.get(record.id, -1)


def digest_of(content: bytes) -> bytes:
    """The name of a part with this content."""
    return blake2b(content, digest_size=DIGEST).digest()


def encode_record(record: Record) -> dict[str, Any]:
    """The document of a record."""
    table: dict[bytes, int] = {}

    def flat(entry: Entry) -> list[Any]:
        out: list[Any] = [entry.kind]
        for part, offset, length in entry.runs:
            at = table.setdefault(part, len(table)) if part else -1
            out += (at, offset, length)
        return out

    layout = (
        record.parent,
        None if record.known == record.id else record.known,
        record.run,
        record.deltas,
        record.format,
        record.versions,
        flat(record.skeleton),
        flat(record.metadata),
        {name: flat(entry) for name, entry in record.channels.items()},
    )
    return {"l": pack(layout), "d": b"".join(table), "b": record.inline}


def decode_record(document: Document) -> Record:
    """The record of a document.

    Raises:
        CorruptDocumentError: The document is not a record.
    """
    try:
        data, id = document.data, document.id[-1]
        digests = data["d"]
        parent, known, run, deltas, format, versions, skeleton, metadata, channels = (
            unpack(data["l"])
        )
        table = [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]
        # At -1: the record's own bytes.
        table.append(b"")
        return Record(
            id=id,
            parent=parent,
            known=id if known is None else known,
            run=run,
            deltas=tuple(deltas),
            format=format,
            versions=versions,
            skeleton=_entry(skeleton, table),
            metadata=_entry(metadata, table),
            channels={name: _entry(flat, table) for name, flat in channels.items()},
            inline=data["b"],
            version=document.version,
        )
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as exc:
        raise CorruptDocumentError(
            f"the checkpoint record {document.id!r} is not readable: {exc!r}",
            key=key_of(RECORDS, document.id),
        ) from exc


def _entry(flat: list[Any], table: list[bytes]) -> Entry:
    kind, *places = flat
    numbers = places[::3]
    if numbers and not -1 <= min(numbers) <= max(numbers) < len(table) - 1:
        raise IndexError("a value names a part that its record does not")
    if len(places) % 3:
        raise ValueError("a value is not where it should be")
    return Entry(kind, None, places, table)


def encode_epoch(
    known: str | None, dead: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Any]:
    """The document of an epoch."""
    return {"e": pack((known, sorted(dead.items())))}


def decode_epoch(document: Document) -> Epoch:
    """The epoch of a document.

    Raises:
        CorruptDocumentError: The document is not an epoch.
    """
    try:
        known, dead = unpack(document.data["e"])
        return Epoch(known, dict(dead), document.version)
    except (KeyError, ValueError, TypeError) as exc:
        raise CorruptDocumentError(
            f"the epoch {document.id!r} is not readable: {exc!r}",
            key=key_of(RECORDS, document.id),
        ) from exc


def had_sends(record: Record) -> bool:
    """Whether the tasks that its parent sent are among its parent's writes."""
    return record.format < _SENDS_IN_CHANNEL and record.parent is not None


def is_epoch(document: Document) -> bool:
    """Whether a document of the records' collection is an epoch."""
    return document.id[-1] == EPOCH


def join(entry: Entry, inline: bytes, parts: Mapping[bytes, bytes]) -> bytes:
    """The bytes of a value, from the record's own and those of its parts.

    Raises:
        KeyError: A part is missing; its digest.
    """
    pieces = list(entry.pieces())
    if len(pieces) == 1:
        part, offset, length = pieces[0]
        source = parts[part] if part else inline
        if length == len(source):
            return source
        return source[offset : offset + length]
    return b"".join(
        [
            (parts[part] if part else inline)[offset : offset + length]
            for part, offset, length in pieces
        ]
    )


def key_of(collection: str, id: object) -> str:
    """How errors name a stored document: its collection and segments."""
    path = (id,) if isinstance(id, str) else id
    return "/".join((collection, *path)) if isinstance(path, tuple) else collection


def pack(layout: object) -> bytes:
    """A layout as MessagePack; as JSON where it has what that cannot (surrogates)."""
    try:
        return ormsgpack.packb(layout)
    except TypeError:
        return json.dumps(layout, separators=(",", ":")).encode()


def unpack(packed: bytes) -> Any:
    """What `pack` was given, tuples as lists.

    Raises:
        ValueError: It is neither.
    """
    # No layout is the number that begins with this byte in MessagePack.
    if packed.startswith(b"["):
        return json.loads(packed)
    return ormsgpack.unpackb(packed)
