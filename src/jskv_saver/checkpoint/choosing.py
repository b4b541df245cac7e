"""Which checkpoints a prune may remove: never what a survivor needs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from jskv_saver.checkpoint.layout import Record, had_sends

Choose = Callable[[Mapping[str, Record], AbstractSet[str]], set[str]]
"""From all records, and the ids whose writes hold sent tasks, the ids to remove."""


def all_but_latest(
    records: Mapping[str, Record], senders: AbstractSet[str]
) -> set[str]:
    """All but the greatest id and what it needs."""
    if not records:
        return set()
    kept = max(records)
    return records.keys() - {kept} - needed(records, [kept], senders)


def all_but_newest(count: int, before: datetime | None = None) -> Choose:
    """All but some of the greatest ids, and what these need.

    Args:
        count: How many stay, at least 1.
        before: What was stored at this moment or later stays as well.
    """

    def choose(records: Mapping[str, Record], senders: AbstractSet[str]) -> set[str]:
        kept = set(sorted(records)[-count:])
        if before is not None:
            kept |= {id for id, each in records.items() if each.stored_at >= before}
        return records.keys() - kept - needed(records, kept, senders)

    return choose


def none(records: Mapping[str, Record], senders: AbstractSet[str]) -> set[str]:
    """Nobody: what an earlier removal left is finished, and no more."""
    return set()


def of_runs(runs: frozenset[str]) -> Choose:
    """The checkpoints of some runs, but for what the others need."""

    def choose(records: Mapping[str, Record], senders: AbstractSet[str]) -> set[str]:
        dead = {id for id, record in records.items() if record.run in runs}
        return dead - needed(records, records.keys() - dead, senders)

    return choose


def needed(
    records: Mapping[str, Record], kept: Iterable[str], senders: AbstractSet[str]
) -> set[str]:
    """The ancestors without which some records could not be given whole.

    Those that hold the history of their delta channels; and, of checkpoints of a
    format before 4, a parent whose writes hold tasks that were sent.

    Args:
        records: All records.
        kept: The ids of those that stay.
        senders: The ids whose writes hold sent tasks.
    """
    found: set[str] = set()
    visited: set[tuple[str, str]] = set()
    for id in kept:
        record = records[id]
        while had_sends(record) and record.parent in senders & records.keys():
            found.add(record.parent)
            record = records[record.parent]
        for channel in records[id].deltas:
            parent = records[id].parent
            while parent and parent in records and (parent, channel) not in visited:
                visited.add((parent, channel))
                found.add(parent)
                if channel in records[parent].channels:
                    break
                parent = records[parent].parent
    return found


def children_first(records: Mapping[str, Record]) -> list[list[str]]:
    """The ids in groups to remove one after the other.

    Whatever part of it is done, a delta channel's history of what is still there is
    whole; where there is no delta channel the order does not matter.
    """
    if not any(record.deltas for record in records.values()):
        return [list(records)]
    depths: dict[str, int] = {}
    for id in records:
        path: list[str] = []
        at: str | None = id
        while at is not None and at in records and at not in depths:
            path.append(at)
            at = records[at].parent if records[at].parent not in path else None
        depth = depths[at] + 1 if at is not None and at in depths else 0
        for ancestor in reversed(path):
            depths[ancestor] = depth
            depth += 1
    groups: dict[int, list[str]] = {}
    for id, depth in depths.items():
        groups.setdefault(depth, []).append(id)
    return [groups[depth] for depth in sorted(groups, reverse=True)]
