"""What the three views read in common."""

from __future__ import annotations

from collections.abc import Sequence

from jskv_saver.checkpoint.layout import EPOCH, RECORDS
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.port import DocumentStore

RECORD_SEGMENTS = 4
"""Segments of a record's id: agent, thread, checkpoint namespace, checkpoint."""


def is_record(path: Path) -> bool:
    """Whether this is the id of a checkpoint's record."""
    return len(path) == RECORD_SEGMENTS and path[-1] != EPOCH


def greatest_first(path: Path) -> tuple[str, Path]:
    """The sort key of a record's id, for a reversed sort."""
    return path[-1], path


async def record_paths(
    store: DocumentStore, namespace: str, within: Path
) -> list[Path]:
    """The ids of the records below a prefix, greatest checkpoint id first."""
    found = await store.ids(namespace, RECORDS, within=within)
    return sorted(
        filter(is_record, map(path_of, found)), key=greatest_first, reverse=True
    )


async def read(
    store: DocumentStore, namespace: str, wanted: Sequence[tuple[str, Path]]
) -> dict[Path, Document]:
    """Some documents of one collection by id, in pages; missing ones left out."""
    found: dict[Path, Document] = {}
    for at in range(0, len(wanted), PAGE):
        page = await store.get_many(namespace, wanted[at : at + PAGE])
        found.update((path_of(id), document) for (_, id), document in page.items())
    return found
