"""What a prune or a retention removed, or would remove."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jskv_saver.checkpoint.layout import Record


@dataclass(frozen=True, slots=True)
class PrunedNamespace:
    """One checkpoint namespace of a thread.

    Attributes:
        thread_id: The thread.
        checkpoint_ns: The checkpoint namespace; the root's is empty.
        removed: The ids of the checkpoints that go, ascending.
        kept: How many stay.
        bytes: What is stored for the removed ones only, about: their records and parts
            of values, without pending writes.
    """

    thread_id: str
    checkpoint_ns: str
    removed: tuple[str, ...]
    kept: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a prune or a retention removed, or with `dry_run` would remove.

    Attributes:
        dry_run: Whether it only looked.
        pruned: The namespaces that lose checkpoints.
        erased: The threads that go as a whole.
        pinned: The threads that a retention left alone because they are pinned.
        damaged: The threads that a retention would leave as they are because they are
            damaged. One that removes raises at its end instead.
    """

    dry_run: bool
    pruned: tuple[PrunedNamespace, ...] = ()
    erased: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def checkpoints(self) -> int:
        """How many checkpoints go, those of erased threads not counted."""
        return sum(len(each.removed) for each in self.pruned)

    @property
    def bytes(self) -> int:
        """What is stored for these only, about."""
        return sum(each.bytes for each in self.pruned)


def bytes_of_records(records: Iterable[Record]) -> int:
    """Bytes of some records and of the parts that they refer to, each part once."""
    extents: dict[bytes, int] = {}
    size = 0
    for record in records:
        size += len(record.inline)
        for entry in record.entries():
            for part, offset, length in entry.pieces():
                if part:
                    extents[part] = max(extents.get(part, 0), offset + length)
    return size + sum(extents.values())
