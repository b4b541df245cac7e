"""One checkpoint, with everything that is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from langgraph.checkpoint.base import ChannelVersions

from jskv_saver.checkpoint.inspect.history import source_and_step
from jskv_saver.checkpoint.inspect.preview import is_encrypted, preview
from jskv_saver.checkpoint.inspect.reading import record_paths
from jskv_saver.checkpoint.inspect.threads import ThreadRef
from jskv_saver.checkpoint.layout import (
    PARTS,
    RECORDS,
    Record,
    Scope,
    decode_record,
    key_of,
)
from jskv_saver.checkpoint.partition import scope_of
from jskv_saver.checkpoint.parts import Parts
from jskv_saver.checkpoint.values import (
    Entry,
    join,
)
from jskv_saver.checkpoint.writes import (
    PendingWrite,
    decode_writes,
    part_names,
    sizes_of,
)
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    InvalidRequestError,
)

PREVIEW = 300
"""Characters of a value that are shown, unless told otherwise."""
_OPENED = 262_144
"""Bytes above which a value is not opened: only its beginning is shown."""
_TASK_SEGMENTS = 5


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A stored value, for people.

    Attributes:
        kind: The serialiser's name of its format, e.g. `msgpack`.
        size: Its bytes.
        parts: How many stored parts it is made of; 0: it is in the record itself.
        preview: How it looks, nothing of it constructed.
        missing: A part that is not stored any more, so that it cannot be read; None.
    """

    kind: str
    size: int
    parts: int
    preview: str
    missing: str | None = None

    @property
    def encrypted(self) -> bool:
        """Whether it is encrypted."""
        return is_encrypted(self.kind)


@dataclass(frozen=True, slots=True)
class WriteInfo:
    """A pending write of a task, in the order that LangGraph applies them.

    Attributes:
        task: The task.
        path: The task's path.
        idx: The write's number in the task; below 0 for the special ones.
        channel: Where it goes.
        value: What it is.
    """

    task: str
    path: str
    idx: int
    channel: str
    value: ValueInfo


@dataclass(frozen=True, slots=True)
class CheckpointDetail:
    """A checkpoint.

    Attributes:
        ref: Its thread.
        ns: Its checkpoint namespace.
        id: Its id.
        parent: The id of the one before it, or None.
        stored_at: When it was stored.
        version: The version of its record; on KV the revision.
        format: The checkpoint's own format.
        source: `input`, `loop`, `update` or `fork`; None where that cannot be read.
        step: Its number; None where that cannot be read.
        run: The run that wrote it, or None.
        versions: Its channel versions.
        channels: Its channel values.
        metadata: Its metadata.
        deltas: Channels whose value is made of the history of changes.
        writes: Its pending writes.
    """

    ref: ThreadRef
    ns: str
    id: str
    parent: str | None
    stored_at: datetime
    version: int
    format: int
    source: str | None
    step: int | None
    run: str | None
    versions: ChannelVersions
    channels: Mapping[str, ValueInfo]
    metadata: ValueInfo
    deltas: tuple[str, ...]
    writes: tuple[WriteInfo, ...]


async def checkpoint_detail(
    store: DocumentStore,
    ref: ThreadRef,
    id: str | None = None,
    *,
    ns: str | None = None,
    limit: int = PREVIEW,
) -> CheckpointDetail:
    """One checkpoint of a thread.

    Values above 256 KiB are not opened: their beginning is shown.

    Args:
        store: Where it is.
        ref: The thread.
        id: Its id; None: the greatest of its checkpoint namespace.
        ns: Its checkpoint namespace; None: the one that has the id, or the root.
        limit: Characters of each value that are shown.

    Raises:
        DocumentNotFoundError: It does not exist.
        InvalidRequestError: Several checkpoint namespaces have this id.
    """
    path = await _choose(store, ref, id, ns)
    if path is not None:
        key = (RECORDS, path)
        found = await store.get_many(
            ref.namespace, [key, *scope_of(path).writes(path[-1])]
        )
        if key in found:
            writes = [document for at, document in found.items() if at != key]
            return await _detail(store, ref, found[key], writes, limit)
    what = "no checkpoint" if id is None else f"no checkpoint {id!r}"
    where = "" if ns is None else f" in checkpoint namespace {ns!r}"
    raise DocumentNotFoundError(
        f"thread {ref.thread!r} has {what}{where}", collection=RECORDS, id=id
    )


async def _choose(
    store: DocumentStore, ref: ThreadRef, id: str | None, ns: str | None
) -> Path | None:
    within = ref.prefix if ns is None else (*ref.prefix, ns)
    paths = await record_paths(store, ref.namespace, within)
    if id is None:
        in_root = [path for path in paths if path[2] == ""]
        return next(iter(in_root or paths), None)
    chosen = [path for path in paths if path[-1] == id]
    if len(chosen) > 1:
        places = ", ".join(repr(path[2]) for path in sorted(chosen))
        raise InvalidRequestError(
            f"checkpoint {id!r} is in several checkpoint namespaces: {places}; "
            "say which one is meant with ns (--ns)"
        )
    return next(iter(chosen), None)


async def _detail(
    store: DocumentStore,
    ref: ThreadRef,
    document: Document,
    writes: Sequence[Document],
    limit: int,
) -> CheckpointDetail:
    record, scope = decode_record(document), scope_of(document.id)
    wanted = {
        run.part
        for entry in record.entries()
        for run in (entry.runs if entry.length <= _OPENED else entry.runs[:1])
        if run.part
    }
    found = Parts()
    found.at_hand(scope, record)
    found.want(scope, record, wanted)
    await found.read(store, ref.namespace)
    parts = found.of(scope)
    source, step = source_and_step(record, parts)
    return CheckpointDetail(
        ref=ref,
        ns=scope.ns,
        id=record.id,
        parent=record.parent,
        stored_at=document.created_at,
        version=document.version,
        format=record.format,
        source=source,
        step=step,
        run=record.run,
        versions=record.versions,
        channels={
            name: _value(scope, record, entry, parts, limit)
            for name, entry in record.channels.items()
        },
        metadata=_value(scope, record, record.metadata, parts, limit),
        deltas=tuple(record.deltas),
        writes=_writes(writes, limit),
    )


def _value(
    scope: Scope,
    record: Record,
    entry: Entry,
    parts: Mapping[bytes, bytes],
    limit: int,
) -> ValueInfo:
    names = {run.part for run in entry.runs if run.part}
    size = entry.length
    runs = entry.runs if size <= _OPENED else entry.runs[:1]
    try:
        content = join(Entry(entry.kind, runs), record.inline, parts)
    except KeyError as exc:
        key = key_of(PARTS, scope.part(exc.args[0]))
        return ValueInfo(entry.kind, size, len(names), "", key)
    shown = preview(entry.kind, content, limit, size)
    return ValueInfo(entry.kind, size, len(names), shown)


def _writes(documents: Sequence[Document], limit: int) -> tuple[WriteInfo, ...]:
    by_path = {path_of(document.id): document for document in documents}
    shown: list[tuple[PendingWrite, WriteInfo]] = []
    for path, task in by_path.items():
        if len(path) > _TASK_SEGMENTS:
            continue
        names, missing = part_names(task), None
        parts = {name: by_path.get((*path, name)) for name in names}
        try:
            whole = decode_writes(task, {n: p for n, p in parts.items() if p})
            writes = [(write, len(write.value.content)) for write in whole]
        except CorruptDocumentError as exc:
            writes, missing = sizes_of(task), exc.key
        for write, size in writes:
            kind, content = write.value
            text = "" if missing else preview(kind, content[:_OPENED], limit, size)
            value = ValueInfo(kind, size, len(names), text, missing)
            info = WriteInfo(write.task, write.path, write.idx, write.channel, value)
            shown.append((write, info))
    shown.sort(key=lambda pair: pair[0].sort_key)
    return tuple(info for _, info in shown)
