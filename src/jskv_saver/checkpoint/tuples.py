"""What was read → what LangGraph is given: deserialised, in its own types."""

from __future__ import annotations

import random
from typing import Any, cast

from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS

from jskv_saver.checkpoint.config import config_of
from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.history import ChannelHistory
from jskv_saver.checkpoint.writes import PendingWrite as StoredWrite


def tuple_of(loaded: Loaded, serde: SerializerProtocol) -> CheckpointTuple:
    """A checkpoint with its config, metadata and pending writes."""
    scope, record, loads = loaded.scope, loaded.record, serde.loads_typed
    values = {name: loads(value) for name, value in loaded.values.items()}
    versions: ChannelVersions = dict(record.versions)
    if loaded.sends:
        # Before format 4 they were writes of the parent; LangGraph now reads them
        # from a channel.
        values[TASKS] = [loads(value) for value in loaded.sends]
        present: list[Any] = list(versions.values())
        versions[TASKS] = max(present) if present else next_version(None)
    checkpoint = {
        **loads(loaded.skeleton),
        "id": record.id,
        "channel_versions": versions,
        "channel_values": values,
    }
    return CheckpointTuple(
        config=config_of(scope.thread, scope.ns, record.id),
        checkpoint=cast(Checkpoint, checkpoint),
        metadata=loads(loaded.metadata),
        parent_config=(
            config_of(scope.thread, scope.ns, record.parent) if record.parent else None
        ),
        pending_writes=[_write(write, serde) for write in loaded.writes],
    )


def histories_of(
    histories: dict[str, ChannelHistory], serde: SerializerProtocol
) -> dict[str, DeltaChannelHistory]:
    """The histories of some channels."""
    given: dict[str, DeltaChannelHistory] = {}
    for channel, history in histories.items():
        given[channel] = {"writes": [_write(write, serde) for write in history.writes]}
        if history.seed is not None:
            given[channel]["seed"] = serde.loads_typed(history.seed)
    return given


def next_version(current: Any) -> Any:
    """The version after `current`: of its own form, an int for a new channel.

    Text of the form `number.random`, as other savers write it, is continued.
    """
    if current is None:
        return 1
    if isinstance(current, str):
        number = int(current.split(".")[0]) + 1
        return f"{number:032}.{random.random():016}"
    return current + 1


def _write(write: StoredWrite, serde: SerializerProtocol) -> PendingWrite:
    return (write.task, write.channel, serde.loads_typed(write.value))
