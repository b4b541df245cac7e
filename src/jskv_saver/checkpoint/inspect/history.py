"""The checkpoints of a thread, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jskv_saver.checkpoint.inspect.preview import decoded
from jskv_saver.checkpoint.inspect.reading import (
    RECORD_SEGMENTS,
    read,
    record_paths,
)
from jskv_saver.checkpoint.inspect.threads import ThreadRef
from jskv_saver.checkpoint.layout import (
    EPOCH,
    RECORDS,
    WRITES,
    Record,
    decode_record,
)
from jskv_saver.checkpoint.partition import scope_of
from jskv_saver.checkpoint.parts import Parts
from jskv_saver.checkpoint.values import (
    join,
)
from jskv_saver.checkpoint.writes import sizes_of
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.port import DocumentStore


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint in a history.

    Attributes:
        ns: Its checkpoint namespace.
        id: Its id.
        parent: The id of the one before it, or None.
        stored_at: When it was stored.
        source: `input`, `loop`, `update` or `fork`; None where that cannot be read.
        step: Its number; None where that cannot be read.
        run: The run that wrote it, or None.
        channels: Size of each channel's value, in bytes.
        writes: How many pending writes it has.
        new_bytes: What it stores itself.
        shared_bytes: What it shares with its parent.
    """

    ns: str
    id: str
    parent: str | None
    stored_at: datetime
    source: str | None
    step: int | None
    run: str | None
    channels: Mapping[str, int]
    writes: int
    new_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """The checkpoints of a thread.

    Attributes:
        ref: Which thread.
        total: How many checkpoints there are.
        checkpoints: The newest of them, greatest id first.
    """

    ref: ThreadRef
    total: int
    checkpoints: tuple[CheckpointInfo, ...]


async def thread_history(
    store: DocumentStore,
    ref: ThreadRef,
    *,
    ns: str | None = None,
    limit: int | None = None,
) -> ThreadHistory:
    """The checkpoints of a thread, greatest id first.

    Args:
        store: Where they are.
        ref: The thread.
        ns: Only this checkpoint namespace; None: all.
        limit: How many to give at most; None: all.
    """
    within = ref.prefix if ns is None else (*ref.prefix, ns)
    names = await record_paths(store, ref.namespace, within)
    chosen = names[:limit]
    documents = await read(store, ref.namespace, [(RECORDS, path) for path in chosen])
    records = {path: decode_record(document) for path, document in documents.items()}
    parents = {
        (*path[:3], record.parent)
        for path, record in records.items()
        if record.parent is not None
    }
    older = await read(
        store, ref.namespace, [(RECORDS, path) for path in parents - records.keys()]
    )
    bases = records | {path: decode_record(found) for path, found in older.items()}
    parts = Parts()
    for path, record in records.items():
        named = [run.part for run in record.metadata.runs if run.part]
        parts.at_hand(scope_of(path), record)
        parts.want(scope_of(path), record, named)
    await parts.read(store, ref.namespace)
    writes = await _write_counts(store, ref.namespace, within, set(records))
    return ThreadHistory(
        ref,
        len(names),
        tuple(
            _info(
                path,
                records[path],
                documents[path],
                bases.get((*path[:3], records[path].parent or EPOCH)),
                parts.of(scope_of(path)),
                writes.get(path, 0),
            )
            for path in chosen
            if path in records
        ),
    )


async def _write_counts(
    store: DocumentStore, namespace: str, within: Path, wanted: set[Path]
) -> dict[Path, int]:
    names = map(path_of, await store.ids(namespace, WRITES, within=within))
    tasks = [
        (WRITES, path)
        for path in names
        if len(path) == RECORD_SEGMENTS + 1 and path[:4] in wanted
    ]
    counts: dict[Path, int] = {}
    for path, document in (await read(store, namespace, tasks)).items():
        counts[path[:4]] = counts.get(path[:4], 0) + len(sizes_of(document))
    return counts


def _info(
    path: Path,
    record: Record,
    document: Document,
    base: Record | None,
    parts: Mapping[bytes, bytes],
    writes: int,
) -> CheckpointInfo:
    source, step = source_and_step(record, parts)
    old = {*base.digests()} if base else set()
    own: Any = document.data
    new, shared = sum(map(len, own.values())), 0
    for entry in record.entries():
        for run in entry.runs:
            if run.part in old:
                shared += run.length
            elif run.part and run.part not in record.brought:
                new += run.length
    return CheckpointInfo(
        ns=path[2],
        id=record.id,
        parent=record.parent,
        stored_at=document.created_at,
        source=source,
        step=step,
        run=record.run,
        channels={name: entry.length for name, entry in record.channels.items()},
        writes=writes,
        new_bytes=new,
        shared_bytes=shared,
    )


def source_and_step(
    record: Record, parts: Mapping[bytes, bytes]
) -> tuple[str | None, int | None]:
    """The source and the step in a record's metadata; None where unreadable."""
    try:
        content = join(record.metadata, record.inline, parts)
        metadata = decoded(record.metadata.kind, content)
    except (KeyError, ValueError):
        return None, None
    if not isinstance(metadata, dict):
        return None, None
    source, step = metadata.get("source"), metadata.get("step")
    return (
        source if isinstance(source, str) else None,
        step if type(step) is int else None,
    )
