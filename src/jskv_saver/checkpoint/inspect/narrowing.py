"""Choosing among threads, by what is known of their newest checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from jskv_saver.checkpoint.contents import Contents
from jskv_saver.checkpoint.inspect.preview import decoded
from jskv_saver.checkpoint.inspect.threads import ThreadInfo
from jskv_saver.checkpoint.layout import Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.document.port import DocumentStore

Sorting: TypeAlias = Literal["newest", "oldest", "name", "checkpoints"]


def idle(
    threads: Sequence[ThreadInfo], age: timedelta, now: datetime
) -> list[ThreadInfo]:
    """Those whose newest checkpoint was stored so long ago, or that have none."""
    return [t for t in threads if t.newest_at is None or now - t.newest_at >= age]


def in_order(threads: Sequence[ThreadInfo], by: Sorting) -> list[ThreadInfo]:
    """The threads sorted; by time as they were listed, the newest first."""
    if by == "oldest":
        return list(reversed(threads))
    if by == "name":
        return sorted(
            threads, key=lambda t: (t.ref.thread, t.ref.namespace, t.ref.agent)
        )
    if by == "checkpoints":
        return sorted(threads, key=lambda t: t.checkpoints, reverse=True)
    return list(threads)


async def with_metadata(
    store: DocumentStore, threads: Sequence[ThreadInfo], wanted: Mapping[str, Any]
) -> list[ThreadInfo]:
    """Those whose newest checkpoint has some metadata; one record is read for each.

    Metadata that cannot be opened, because it is encrypted and there is no key, fits
    nothing.

    Args:
        store: Where they are.
        threads: The threads.
        wanted: Keys of the metadata and their values.
    """
    opens = isinstance(store, SealedStore)
    fitting: set[int] = set()
    owners: dict[tuple[str, str], list[int]] = {}
    for at, info in enumerate(threads):
        if info.newest_id is not None and (opens or not info.encrypted):
            owners.setdefault((info.ref.namespace, info.ref.agent), []).append(at)
    for (namespace, agent), places in owners.items():
        contents = Contents(Partition(store, namespace, agent))
        for begin in range(0, len(places), PAGE):
            page = {_path(threads[at]): at for at in places[begin : begin + PAGE]}
            records = await contents.read_records(list(page))
            metadata = await contents.read_metadata(records)
            for (scope, record), typed in zip(records, metadata, strict=True):
                if typed is not None and _has(typed.kind, typed.content, wanted):
                    fitting.add(page[scope.record(record.id)])
    return [info for at, info in enumerate(threads) if at in fitting]


def _path(info: ThreadInfo) -> tuple[str, ...]:
    scope = Scope(info.ref.agent, info.ref.thread, info.newest_ns or "")
    return scope.record(info.newest_id or "")


def _has(kind: str, content: bytes, wanted: Mapping[str, Any]) -> bool:
    try:
        metadata = decoded(kind, content)
    except ValueError:
        return False
    if not isinstance(metadata, dict):
        return False
    return all(
        key in metadata
        and type(metadata[key]) is type(value)
        and metadata[key] == value
        for key, value in wanted.items()
    )
