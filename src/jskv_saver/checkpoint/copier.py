"""Copying a thread: its checkpoints and writes, put again under another thread."""

from __future__ import annotations

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.drafts import Draft
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.layout import Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.checkpoint.writes import PendingWrite

_PAGE = 16


async def copy_thread(
    partition: Partition,
    writer: Writer,
    serde: SerializerProtocol,
    source: str,
    target: str,
    holding: Holding | None = None,
) -> None:
    """Copy all checkpoints and writes; parents first. Idempotent."""
    if source == target:
        return
    reader = Reader(partition)
    paths = await reader.names(source, None, None, None)
    writes = await reader.names_of_writes(source, None)
    paths.reverse()
    for at in range(0, len(paths), _PAGE):
        records = await reader.read_records(paths[at : at + _PAGE])
        for loaded in await reader.read_contents(records, writes):
            scope = Scope(loaded.scope.agent, target, loaded.scope.ns)
            for task, of_task in _by_task(loaded).items():
                await writer.put_writes(scope, loaded.record.id, task, of_task, holding)
            await writer.put(_draft(loaded, scope), serde, holding)


def _by_task(loaded: Loaded) -> dict[str, list[PendingWrite]]:
    by_task: dict[str, list[PendingWrite]] = {}
    for write in loaded.writes:
        by_task.setdefault(write.task, []).append(write)
    return by_task


def _draft(loaded: Loaded, scope: Scope) -> Draft:
    record = loaded.record
    return Draft(
        scope=scope,
        id=record.id,
        parent=record.parent,
        run=record.run,
        # Copying continues nobody's run: it is never in conflict.
        source=None,
        deltas=record.deltas,
        format=record.format,
        skeleton=loaded.skeleton,
        metadata=loaded.metadata,
        versions=record.versions,
        changed=frozenset(loaded.values),
        values=loaded.values,
        is_copy=True,
    )
