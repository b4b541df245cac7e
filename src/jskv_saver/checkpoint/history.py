"""The history of delta channels: a walk along the parents, in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from jskv_saver.checkpoint.layout import (
    RECORDS,
    Record,
    Scope,
    key_of,
)
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import (
    Typed,
)
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.document.model import Path
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError

_FIRST_BATCH = 32
_LARGEST_BATCH = 512


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
    names = await partition.names(scope)
    target = id if id is not None else (names[-1] if names else None)
    if target is None or target not in names:
        return {channel: ChannelHistory() for channel in channels}
    try:
        return await _walk(partition, scope, names, target, channels)
    except CorruptDocumentError:
        records, _ = await partition.records(scope, [target])
        if target in records:
            raise
        raise DocumentNotFoundError(
            f"checkpoint {target!r} of thread {scope.thread!r} was removed while its "
            "history was read",
            collection=RECORDS,
            id=scope.record(target),
        ) from None


async def _walk(
    partition: Partition,
    scope: Scope,
    known: Sequence[str],
    target: str,
    channels: Sequence[str],
) -> dict[str, ChannelHistory]:
    reader = Reader(partition)
    histories = {channel: ChannelHistory() for channel in channels}
    remaining = set(channels)
    path: list[Record] = []
    ends: list[frozenset[str]] = []
    async for record in _ancestors(partition, scope, known, target):
        if not remaining:
            break
        path.append(record)
        ends.append(frozenset(remaining & record.channels.keys()))
        remaining -= ends[-1]
        if not remaining:
            break
    if not path:
        return histories
    names = await reader.names_of_writes(scope.thread, scope.ns)
    open_channels = set(channels)
    for at in range(0, len(path), _LARGEST_BATCH):
        batch = path[at : at + _LARGEST_BATCH]
        await _collect(
            reader,
            scope,
            batch,
            ends[at : at + _LARGEST_BATCH],
            names,
            open_channels,
            histories,
        )
    for history in histories.values():
        history.writes.reverse()
    return histories


async def _collect(
    reader: Reader,
    scope: Scope,
    path: Sequence[Record],
    ends: Sequence[frozenset[str]],
    names: dict[Path, list[Path]],
    open_channels: set[str],
    histories: dict[str, ChannelHistory],
) -> None:
    writes = await reader.read_writes(
        [name for record in path for name in names.get(scope.record(record.id), ())]
    )
    for record, ending in zip(path, ends, strict=True):
        for write in reversed(writes.get((scope, record.id), ())):
            if write.channel in open_channels:
                histories[write.channel].writes.append(write)
        if ending:
            seeds = await reader.read_values(scope, record, ending)
            for channel, value in seeds.items():
                histories[channel].seed = value
            open_channels -= ending


async def _ancestors(
    partition: Partition, scope: Scope, names: Sequence[str], target: str
) -> AsyncIterator[Record]:
    """The ancestors of a checkpoint, nearest first, itself left out."""
    at_hand, _ = await partition.records(scope, [target])
    if target not in at_hand:
        return
    wanted, child = at_hand[target].parent, target
    size = _FIRST_BATCH
    while wanted is not None:
        if wanted not in at_hand:
            at_hand = await _batch(partition, scope, names, wanted, size)
            size = min(size * 2, _LARGEST_BATCH)
        if wanted not in at_hand:
            key = key_of(RECORDS, scope.record(wanted))
            raise CorruptDocumentError(
                f"checkpoint {child!r} of thread {scope.thread!r} continues {key!r}, "
                "which is not stored: the history of its delta channels is not whole",
                key=key,
            )
        record = at_hand[wanted]
        yield record
        wanted, child = record.parent, record.id


async def _batch(
    partition: Partition, scope: Scope, names: Sequence[str], wanted: str, size: int
) -> dict[str, Record]:
    """The record that is wanted, and those whose ids precede it: likely ancestors."""
    older = [name for name in names if name < wanted][-(size - 1) :]
    records, _ = await partition.records(scope, [*older, wanted])
    return records
