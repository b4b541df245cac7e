"""The history of delta channels: a walk along the parents, in batches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from jskv_saver.checkpoint.contents import Ancestors
from jskv_saver.checkpoint.layout import (
    RECORDS,
    Record,
    Scope,
    key_of,
)
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.past import Past
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import (
    Typed,
)
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError

_FIRST_BATCH = 32
_LARGEST_BATCH = 128


@dataclass(slots=True)
class ChannelHistory:
    """What the ancestors of a checkpoint contributed to one channel.

    Attributes:
        writes: Oldest first.
        seed: The value of the nearest ancestor that has one, or None.
    """

    writes: list[PendingWrite] = field(default_factory=list)
    seed: Typed | None = None


async def channel_histories(
    partition: Partition, scope: Scope, id: str | None, channels: Sequence[str]
) -> dict[str, ChannelHistory]:
    """The history of some channels before a checkpoint.

    Args:
        partition: Where it is.
        scope: The checkpoint's namespace.
        id: The checkpoint; None: the latest.
        channels: The channels.

    Raises:
        DocumentNotFoundError: The checkpoint was removed while this was read.
        CorruptDocumentError: An ancestor that a channel still needs is not stored.
    """
    past = await partition.past(scope)
    target = await _target(partition, scope, id, past)
    if target is None:
        return {channel: ChannelHistory() for channel in channels}
    try:
        return await _walk(partition, scope, target, channels, past)
    except CorruptDocumentError:
        records, _ = await partition.records(scope, [target.id])
        if target.id in records:
            raise
        raise DocumentNotFoundError(
            f"checkpoint {target.id!r} of thread {scope.thread!r} was removed while "
            "its history was read",
            collection=RECORDS,
            id=scope.record(target.id),
        ) from None


async def _target(
    partition: Partition, scope: Scope, id: str | None, past: Past | None
) -> Record | None:
    """The checkpoint with an id, or the latest."""
    if id is None:
        loaded = await Reader(partition).latest(scope)
        return None if loaded is None else loaded.record
    if past is not None:
        if base := partition.heads.base(scope, id):
            return base.record
        if known := past.get(id):
            return known[0]
    records, _ = await partition.records(scope, [id])
    return records.get(id)


async def _walk(
    partition: Partition,
    scope: Scope,
    target: Record,
    channels: Sequence[str],
    past: Past | None,
) -> dict[str, ChannelHistory]:
    reader = Reader(partition)
    histories = {channel: ChannelHistory() for channel in channels}
    remaining = set(channels)
    ids: Sequence[str] | None = None
    at_hand: Ancestors = {}
    child, size = target, _first_batch(target, channels)
    met = {target.id}
    while remaining and child.parent is not None:
        known = past.get(child.parent) if past is not None else None
        if known is not None:
            at_hand[child.parent] = known
        elif child.parent not in at_hand:
            if ids is None:
                ids = await partition.all_ids(scope)
            # Those whose ids precede it are likely to be its ancestors.
            end = bisect_left(ids, child.parent)
            batch = [*ids[max(end - size + 1, 0) : end], child.parent]
            at_hand = await reader.records_with_writes(scope, batch, past)
            size = min(size * 2, _LARGEST_BATCH)
        if child.parent not in at_hand or child.parent in met:
            key = key_of(RECORDS, scope.record(child.parent))
            what = "comes after it" if child.parent in met else "is not stored"
            raise CorruptDocumentError(
                f"checkpoint {child.id!r} of thread {scope.thread!r} continues "
                f"{key!r}, which {what}: the history of its delta channels is not "
                "whole",
                key=key,
            )
        met.add(child.parent)
        record, writes = at_hand[child.parent]
        for write in reversed(writes):
            if write.channel in remaining:
                histories[write.channel].writes.append(write)
        # Not by `&`, which is slow for a mapping that is no dict.
        if ending := {channel for channel in remaining if channel in record.channels}:
            seeds = await reader.read_values(scope, record, ending)
            for channel, value in seeds.items():
                histories[channel].seed = value
            remaining -= ending
        child = record
    for history in histories.values():
        history.writes.reverse()
    return histories


def _first_batch(target: Record, channels: Sequence[str]) -> int:
    """How far back the values are, as far as the checkpoint says."""
    steps = max((target.deltas.get(channel, 0) for channel in channels), default=0)
    # One more than the steps: where a step is counted differs by one.
    return min(steps + 1, _LARGEST_BATCH) if steps else _FIRST_BATCH
