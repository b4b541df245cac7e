"""Which checkpoints hold tasks that were sent to their children, before format 4."""

from __future__ import annotations

from collections.abc import Mapping

from langgraph.checkpoint.serde.types import TASKS

from jskv_saver.checkpoint.layout import Record, Scope, had_sends
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.reader import Reader


async def senders_among(
    partition: Partition, scope: Scope, records: Mapping[str, Record]
) -> set[str]:
    """The parents of old-format records whose writes hold sent tasks."""
    parents = {
        record.parent
        for record in records.values()
        if record.parent and had_sends(record)
    }
    reader = Reader(partition)
    names = await reader.names_of_writes(scope.thread, scope.ns) if parents else {}
    writes = await reader.read_writes(
        [
            path
            for parent in parents & records.keys()
            for path in names.get(scope.record(parent), ())
        ]
    )
    return {
        id
        for (_, id), stored in writes.items()
        if any(write.channel == TASKS for write in stored)
    }
