"""Which documents a thread, its checkpoints and their writes become. Pure.

    cp  agent, thread, ns, checkpoint id     one record, immutable
    cp  agent, thread, ns, ""                the epoch: opens it, names the dead
    bl  agent, thread, ns, digest            a part of channel values
    wr  agent, thread, ns, checkpoint, task  the pending writes of one task
    wr  …, task, part name                   a part of large writes
    th  agent, thread, ns                    index: this thread has this namespace
    rn  agent, thread, run, ns               index: this run wrote here

A record is a document of three byte fields: `l` its layout as JSON, `d` the digests
of the parts that it refers to, 16 bytes each, and `b` its own inline bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

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
KNOWN: Final = 8
"""How many of the greatest ids a record names."""
DIGEST: Final = 16
"""Bytes of a part's digest."""
_SENDS_IN_CHANNEL: Final = 4
"""The checkpoint format from which on sent tasks are a channel's value."""


class Typed(NamedTuple):
    """A value as LangGraph's serde gives it."""

    kind: str
    content: bytes


class Entry(NamedTuple):
    """Where a value of a record is: its serde type and its runs."""

    kind: str
    runs: tuple[Run, ...]

    @property
    def length(self) -> int:
        """The value's size in bytes."""
        return sum(run.length for run in self.runs)


@dataclass(frozen=True, slots=True)
class Scope:
    """A checkpoint namespace of a thread of an agent: what is fenced as one."""

    agent: str
    thread: str
    ns: str

    @property
    def prefix(self) -> Path:
        """The prefix of its records."""
        return (self.agent, self.thread, self.ns)

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


@dataclass(frozen=True, slots=True)
class Record:
    """A checkpoint as it is stored; its values are not deserialised.

    Attributes:
        id: The checkpoint id.
        parent: The id of the parent, or None.
        known: The greatest ids of the namespace when it was written, greatest first,
            itself included.
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
    known: tuple[str, ...]
    run: str | None
    deltas: tuple[str, ...]
    format: int
    versions: ChannelVersions
    skeleton: Entry
    metadata: Entry
    channels: Mapping[str, Entry]
    inline: bytes = field(repr=False)
    version: int = 0

    def entries(self) -> Iterable[Entry]:
        """All values of the record."""
        yield self.skeleton
        yield self.metadata
        yield from self.channels.values()

    def digests(self) -> set[bytes]:
        """The parts that it refers to."""
        return {run.part for entry in self.entries() for run in entry.runs if run.part}


@dataclass(frozen=True, slots=True)
class Epoch:
    """The last prune of a namespace, or its opening.

    Attributes:
        known: The greatest surviving ids, greatest first; None: look at the names.
        dead: Ids that are to be removed.
        version: The document's version.
    """

    known: tuple[str, ...] | None
    dead: frozenset[str]
    version: int = 0

    def kills(self, record: Record) -> bool:
        """Whether a record was to be removed; one put again afterwards was not."""
        return record.id in self.dead and record.version < self.version


def digest_of(content: bytes) -> bytes:
    """The name of a part with this content."""
    return blake2b(content, digest_size=DIGEST).digest()


def greatest(known: Iterable[str], *more: str) -> tuple[str, ...]:
    """The `KNOWN` greatest of some ids, greatest first."""
    return tuple(sorted({*known, *more}, reverse=True)[:KNOWN])


def encode_record(record: Record) -> dict[str, Any]:
    """The document of a record."""
    table: dict[bytes, int] = {}

    def flat(entry: Entry) -> list[Any]:
        out: list[Any] = [entry.kind]
        for part, offset, length in entry.runs:
            out += (
                (table.setdefault(part, len(table)), offset, length)
                if part
                else (-1, offset, length)
            )
        return out

    layout = {
        "p": record.parent,
        "k": record.known,
        "r": record.run,
        "x": record.deltas,
        "f": record.format,
        "v": record.versions,
        "s": flat(record.skeleton),
        "m": flat(record.metadata),
        "c": {name: flat(entry) for name, entry in record.channels.items()},
    }
    return {"l": _dump(layout), "d": b"".join(table), "b": record.inline}


def decode_record(document: Document) -> Record:
    """The record of a document.

    Raises:
        CorruptDocumentError: The document is not a record.
    """
    try:
        digests = document.data["d"]
        layout = json.loads(document.data["l"])

        def entry(flat: list[Any]) -> Entry:
            return Entry(
                flat[0],
                tuple(
                    Run(
                        b"" if at < 0 else digests[at * DIGEST : (at + 1) * DIGEST],
                        offset,
                        length,
                    )
                    for at, offset, length in zip(
                        flat[1::3], flat[2::3], flat[3::3], strict=True
                    )
                ),
            )

        return Record(
            id=document.id[-1],
            parent=layout["p"],
            known=tuple(layout["k"]),
            run=layout["r"],
            deltas=tuple(layout["x"]),
            format=layout["f"],
            versions=layout["v"],
            skeleton=entry(layout["s"]),
            metadata=entry(layout["m"]),
            channels={name: entry(flat) for name, flat in layout["c"].items()},
            inline=document.data["b"],
            version=document.version,
        )
    except (KeyError, ValueError, TypeError, IndexError) as exc:
        raise CorruptDocumentError(
            f"the checkpoint record {document.id!r} is not readable: {exc!r}",
            key=key_of(RECORDS, document.id),
        ) from exc


def encode_epoch(
    known: Sequence[str] | None, dead: Iterable[str] = ()
) -> dict[str, Any]:
    """The document of an epoch."""
    return {"e": _dump({"k": known, "d": sorted(dead)})}


def decode_epoch(document: Document) -> Epoch:
    """The epoch of a document.

    Raises:
        CorruptDocumentError: The document is not an epoch.
    """
    try:
        layout = json.loads(document.data["e"])
        known = layout["k"]
        return Epoch(
            None if known is None else tuple(known),
            frozenset(layout["d"]),
            document.version,
        )
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
    runs = entry.runs
    if len(runs) == 1:
        part, offset, length = runs[0]
        source = parts[part] if part else inline
        if length == len(source):
            return source
        return source[offset : offset + length]
    return b"".join(
        [
            (parts[part] if part else inline)[offset : offset + length]
            for part, offset, length in runs
        ]
    )


def key_of(collection: str, id: object) -> str:
    """How errors name a stored document: its collection and segments."""
    path = (id,) if isinstance(id, str) else id
    return "/".join((collection, *path)) if isinstance(path, tuple) else collection


def _dump(layout: object) -> bytes:
    return json.dumps(layout, separators=(",", ":")).encode()
