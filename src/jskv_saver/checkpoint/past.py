"""What was read of a checkpoint namespace, and is given again as long as it is right.

A record never changes while its namespace's fence holds, but writes come to it at any
time. So first the store tells all writes since, and then whether the fence still holds:
if it does, no removal had begun when they were told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jskv_saver.checkpoint.layout import Record
from jskv_saver.checkpoint.writes import PendingWrite, group_writes, incomplete
from jskv_saver.document.model import Document, Path, path_of

MAX_PAST = 8 * 1024 * 1024
"""Bytes of one namespace's past that are remembered."""
_RECORD_BYTES = 1024
_DOCUMENT_BYTES = 768
"""Bytes that a record, and a document of writes, take beside their contents."""

Checkpoint = tuple[Record, Sequence[PendingWrite]]


class Past:
    """Checkpoints of a namespace, each with all writes up to a version.

    Args:
        since: The version of the newest write before any of them is read; 0: there was
            none, and nothing is remembered.

    Attributes:
        since: The same, moved on by `take`.
        size: Bytes that it holds in memory, about.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.size = 0
        self._records: dict[str, Record] = {}
        self._documents: dict[str, dict[Path, Document]] = {}
        self._writes: dict[str, Sequence[PendingWrite]] = {}

    def get(self, id: str) -> Checkpoint | None:
        """A checkpoint and its writes, in order; None: it is not remembered."""
        record = self._records.get(id)
        if record is None:
            return None
        writes = self._writes.get(id)
        if writes is None:
            documents = self._documents[id].values()
            if incomplete(documents):
                # A part of a large one was not told: whoever wrote it is about to.
                self.forget(id)
                return None
            writes = next(iter(group_writes(documents).values()), ())
            self._writes[id] = writes
        return record, writes

    def add(self, record: Record, documents: Iterable[Document]) -> None:
        """Remember a checkpoint and all its writes, read after `since` was there."""
        if not self.since:
            return
        self.forget(record.id)
        held = {path_of(document.id): document for document in documents}
        size = _record_size(record) + sum(map(_size, held.values()))
        if self.size + size <= MAX_PAST:
            self.size += size
            self._records[record.id] = record
            self._documents[record.id] = held

    def take(self, newer: Iterable[Document]) -> None:
        """All writes of the namespace since."""
        for document in newer:
            path = path_of(document.id)
            self.since = max(self.since, document.version)
            held = self._documents.get(path[3])
            if held is None:
                continue
            before = held.get(path)
            if before is not None:
                if before.version >= document.version:
                    continue
                self.size -= _size(before)
            held[path] = document
            self.size += _size(document)
            self._writes.pop(path[3], None)
            if self.size > MAX_PAST:
                self.forget(path[3])

    def forget(self, id: str) -> None:
        """Forget a checkpoint."""
        record = self._records.pop(id, None)
        if record is not None:
            held = self._documents.pop(id)
            self._writes.pop(id, None)
            self.size -= _record_size(record) + sum(map(_size, held.values()))


def _record_size(record: Record) -> int:
    return _RECORD_BYTES + len(record.inline) + len(record.own) + 3 * len(record.table)


def _size(document: Document) -> int:
    return _DOCUMENT_BYTES + 2 * sum(
        len(value) for value in document.data.values() if isinstance(value, bytes)
    )
