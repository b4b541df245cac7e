"""Which documents a thread, its checkpoints and their writes become. Pure.

    cp  agent, thread, ns, checkpoint id     one record, immutable
    cp  agent, thread, ns, ""                the epoch: opens it, names the dead
    bl  agent, thread, ns, digest            a part of channel values
    wr  agent, thread, ns, checkpoint, task  the pending writes of one task
    wr  …, task, part name                   a part of large writes
    th  agent, thread, ns                    index: this thread has this namespace
    rn  agent, thread, run, ns               index: this run wrote here

A record is a document of byte fields: `l` its layout as MessagePack, `k` the greatest
ids known beside its own, `d` the digests of the parts that it refers to, 16 bytes
each, and `b` its own inline bytes. A few new bytes are a part that the record brings
itself: `p` is its content, and the first of `d` its digest. Descendants refer to it
where it is: `r` has the ids of the records that bring the next of `d`, 16 bytes each.
Before such a record is purged, the part that it brings is stored by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from langgraph.checkpoint.base import ChannelVersions

from jskv_saver.checkpoint.envelope import locked
from jskv_saver.checkpoint.values import (
    USUAL,
    Entries,
    Entry,
    bytes_of,
    greatest,
    pack,
    read_entry,
    unpack,
    uuid_of,
)
from jskv_saver.document.model import ANY, Document, Path, Pattern
from jskv_saver.errors import CorruptDocumentError, JskvError

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
NEVER: Final = datetime.min.replace(tzinfo=UTC)


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
        others: The greatest ids of the namespace when it was written, beside its own,
            as they are stored; `known` gives them with it.
        run: The run that wrote it, or None.
        deltas: Channels whose value only the history holds, each with the number of
            steps since a checkpoint that has it whole; 0 where that is not known.
        format: The checkpoint's own format, its `v`.
        versions: Its channel versions.
        skeleton: The checkpoint without its channel values and versions.
        metadata: Its metadata.
        channels: Its channel values.
        inline: The bytes of the runs that name no part.
        table: The digests of the parts that it refers to, in a row: first that of the
            part that it brings itself, then those that other records bring.
        own: The content of the part that it brings itself; empty: it brings none.
        bringers: The ids of the records that bring the next parts of the table, as 16
            bytes each, in a row.
        version: The document's version.
        stored_at: When it was stored, by the clock of who did; `NEVER` before that.
    """

    id: str
    parent: str | None
    others: tuple[str, ...] | bytes
    run: str | None
    deltas: Mapping[str, int]
    format: int
    versions: ChannelVersions
    skeleton: Entry
    metadata: Entry
    channels: Mapping[str, Entry]
    inline: bytes
    table: bytes = b""
    own: bytes = b""
    bringers: bytes = b""
    version: int = 0
    stored_at: datetime = NEVER

    @property
    def known(self) -> tuple[str, ...]:
        """The greatest ids when it was written, greatest first, itself included."""
        others = self.others
        if isinstance(others, bytes):
            others = tuple(
                [uuid_of(others[at : at + 16]) for at in range(0, len(others), 16)]
            )
        return greatest(others, self.id)

    def entries(self) -> Iterable[Entry]:
        """All values of the record."""
        yield self.skeleton
        yield self.metadata
        yield from self.channels.values()

    def digests(self) -> list[bytes]:
        """The parts that it refers to."""
        table = self.table
        return [table[at : at + DIGEST] for at in range(0, len(table), DIGEST)]

    @property
    def brought(self) -> dict[bytes, bytes]:
        """The part that it brings itself, by digest."""
        return {self.table[:DIGEST]: self.own} if self.own else {}

    @property
    def located(self) -> dict[bytes, bytes]:
        """Of the parts that it refers to, those that records bring, and whose."""
        if not (self.own or self.bringers):
            return {}
        ids = bytes_of(self.id) + self.bringers if self.own else self.bringers
        table = self.table
        return {table[at : at + 16]: ids[at : at + 16] for at in range(0, len(ids), 16)}


def digest_of(content: bytes) -> bytes:
    """The name of a part with this content."""
    return blake2b(content, digest_size=DIGEST).digest()


def table_of(
    entries: Iterable[Entry], own: bytes, located: Mapping[bytes, bytes]
) -> tuple[bytes, bytes]:
    """The table of a record and the ids of those that bring its parts, as in `Record`.

    Args:
        entries: All its values.
        own: The digest of the part that it brings itself; empty: it brings none.
        located: Parts that records bring, with the bytes of their ids.
    """
    digests = dict.fromkeys([part for e in entries for part, _, _ in e.pieces()])
    digests.pop(b"", None)
    digests.pop(own, None)
    there = [digest for digest in digests if digest in located]
    apart = [digest for digest in digests if digest not in located]
    bringers = [located[digest] for digest in there]
    return b"".join([own, *there, *apart]), b"".join(bringers)


def encode_record(record: Record) -> dict[str, Any]:
    """The document of a record."""
    table = {digest: at for at, digest in enumerate(record.digests())}
    table[b""] = -1

    def flat(entry: Entry) -> list[Any]:
        kind = entry.kind
        out: list[Any] = [0 if kind == USUAL else kind]
        for part, offset, length in entry.pieces():
            out += (table[part], offset, length)
        return out

    names: tuple[str, ...] = ()
    raw = record.others
    if not isinstance(raw, bytes):
        packed = [bytes_of(id) for id in raw]
        if b"" in packed:
            names, raw = raw, b""
        else:
            raw = b"".join(packed)
    channels, versions = record.channels, record.versions
    layout = (
        record.parent,
        names,
        record.run,
        dict(record.deltas),
        record.format,
        [versions.get(name) for name in channels],
        {name: v for name, v in versions.items() if name not in channels},
        flat(record.skeleton),
        flat(record.metadata),
        {name: flat(entry) for name, entry in channels.items()},
    )
    data = {"l": pack(layout), "k": raw, "d": record.table, "b": record.inline}
    if record.own:
        data["p"] = record.own
    if record.bringers:
        data["r"] = record.bringers
    return data


def decode_record(document: Document) -> Record:
    """The record of a document.

    Raises:
        CorruptDocumentError: The document is not a record.
        EncryptionError: It is encrypted, and no key was given.
    """
    try:
        data, id = document.data, document.id[-1]
        digests = data["d"]
        layout = unpack(data["l"])
        parent, names, run, deltas, format, *of_channels = layout[:-4]
        versions, skeleton, metadata, channels = layout[-4:]
        # Records of before have all versions in one map.
        for known in of_channels:
            for name, version in zip(channels, known, strict=True):
                if version is not None:
                    versions[name] = version
        table = [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]
        # At -1: the record's own bytes.
        table.append(b"")
        return Record(
            id=id,
            parent=parent,
            others=tuple(names) or data["k"],
            run=run,
            deltas=deltas,
            format=format,
            versions=versions,
            skeleton=read_entry(skeleton, table),
            metadata=read_entry(metadata, table),
            channels=Entries(channels, table),
            inline=data["b"],
            table=digests,
            own=data.get("p", b""),
            bringers=data.get("r", b""),
            version=document.version,
            stored_at=document.updated_at,
        )
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as exc:
        what = f"the checkpoint record {document.id!r} is not readable: {exc!r}"
        raise unreadable(RECORDS, document, what) from exc


def had_sends(record: Record) -> bool:
    """Whether the tasks that its parent sent are among its parent's writes."""
    return record.format < _SENDS_IN_CHANNEL and record.parent is not None


def is_epoch(document: Document) -> bool:
    """Whether a document of the records' collection is an epoch."""
    return document.id[-1] == EPOCH


def content_of(collection: str, document: Document) -> bytes:
    """The bytes of a part.

    Raises:
        CorruptDocumentError: The document is not a part.
        EncryptionError: It is encrypted, and no key was given.
    """
    try:
        content: bytes = document.data["b"]
    except KeyError as exc:
        what = f"the part {document.id!r} is not readable: {exc!r}"
        raise unreadable(collection, document, what) from exc
    return content


def unreadable(collection: str, document: Document, what: str) -> JskvError:
    """The error of a document that is not what it should be: maybe it is encrypted."""
    key = key_of(collection, document.id)
    return locked(document.data, key) or CorruptDocumentError(what, key=key)


def key_of(collection: str, id: object) -> str:
    """How errors name a stored document: its collection and segments."""
    path = (id,) if isinstance(id, str) else id
    return "/".join((collection, *path)) if isinstance(path, tuple) else collection
