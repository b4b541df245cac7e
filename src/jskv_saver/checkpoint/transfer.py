"""Threads out to an archive and in from one, without deserialising a value.

What is written goes the way of every put: the fence, the same content again accepted,
other content under a stored id refused. So an import can be repeated, broken off, and
done beside running graphs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, BinaryIO, Final

from jskv_saver.checkpoint.archive import ARCHIVE, ArchiveReader, ArchiveWriter
from jskv_saver.checkpoint.archived import (
    ArchivedCheckpoint,
    ArchivedThread,
    ArchivedWrites,
    Totals,
)
from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.drafts import Draft
from jskv_saver.checkpoint.inspect.threads import ThreadRef
from jskv_saver.checkpoint.layout import RECORDS, Scope, key_of
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import CorruptDocumentError

Progress = Callable[[Totals], None]
"""Called after each thing that is done, with what is done by then."""

_PAGE: Final = 16


class _Bytes:
    """A serialiser for what is serialised: a value is its type and its bytes."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        """The type and the bytes."""
        kind, content = value
        return kind, content

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The type and the bytes."""
        return tuple(data)


async def export_threads(
    store: DocumentStore,
    threads: Iterable[ThreadRef],
    stream: BinaryIO,
    progress: Progress = lambda totals: None,
) -> Totals:
    """Write threads to an archive: all namespaces, checkpoints and pending writes.

    Beside running graphs: what is put meanwhile may be in it or not, each checkpoint
    whole or not at all, and never without the parent that it was put after.

    Args:
        store: Where they are.
        threads: The threads.
        stream: Where to.
        progress: Called after each checkpoint.
    """
    writer = ArchiveWriter(stream)
    for ref in threads:
        writer.thread(ArchivedThread(ref.namespace, ref.agent, ref.thread))
        async for item in _items(store, ref):
            if isinstance(item, ArchivedWrites):
                writer.writes(item)
            else:
                writer.checkpoint(item)
            progress(writer.totals)
    return writer.end()


async def _items(
    store: DocumentStore, ref: ThreadRef
) -> AsyncIterator[ArchivedCheckpoint | ArchivedWrites]:
    reader = Reader(Partition(store, ref.namespace, ref.agent))
    paths = await reader.names(ref.thread, None, None, None)
    # By namespace, then by id: a checkpoint's parent is the one before, mostly.
    paths.sort()
    # After the names: what is written to one of them before it is read is among them.
    writes = await reader.names_of_writes(ref.thread, None)
    for at in range(0, len(paths), _PAGE):
        records = await reader.read_records(paths[at : at + _PAGE])
        for loaded in await reader.read_contents(records, writes):
            yield archived(loaded)
    known = set(paths)
    for record in sorted(writes.keys() - known):
        early = await reader.read_writes(writes[record])
        for (scope, id), found in early.items():
            yield ArchivedWrites(scope.ns, id, found)


def archived(loaded: Loaded) -> ArchivedCheckpoint:
    """A checkpoint that was read, as an archive has it."""
    record = loaded.record
    return ArchivedCheckpoint(
        ns=loaded.scope.ns,
        id=record.id,
        parent=record.parent,
        run=record.run,
        format=record.format,
        deltas=record.deltas,
        versions=record.versions,
        skeleton=loaded.skeleton,
        metadata=loaded.metadata,
        values=loaded.values,
        writes=loaded.writes,
    )


def check_archive(stream: BinaryIO) -> Totals:
    """Read an archive to its end, and say what it holds.

    Raises:
        CorruptDocumentError: It is damaged, or not whole.
        UnsupportedFormatError: A newer release wrote it.
    """
    reader = ArchiveReader(stream)
    for _ in reader:
        pass
    return reader.totals


async def import_threads(
    store: DocumentStore,
    stream: BinaryIO,
    *,
    namespace: str | None = None,
    agent: str | None = None,
    check: bool = False,
    progress: Progress = lambda totals: None,
) -> Totals:
    """Put what is in an archive. Idempotent; parents come first.

    Args:
        store: Where to.
        stream: The archive, at its beginning; check it before.
        namespace: In the place of each thread's own.
        agent: In the place of each thread's own.
        check: Put nothing, and compare what is stored with the archive.
        progress: Called after each checkpoint.

    Raises:
        DivergentCheckpointError: Other content is stored under the id of one of the
            checkpoints; those before it are there.
        CorruptDocumentError: The archive is damaged, or a comparison failed.
    """
    reader = ArchiveReader(stream)
    into: Importing | None = None
    for item in reader:
        if isinstance(item, ArchivedThread):
            into = Importing(store, namespace or item.namespace, agent or item.agent)
            into.thread = item.thread
        elif into is None:
            raise CorruptDocumentError(
                "the archive does not say whose checkpoints it holds", key=ARCHIVE
            )
        else:
            await (into.check(item) if check else into.put(item))
            progress(reader.totals)
    return reader.totals


class Importing:
    """Puts what was archived to the threads of one namespace and agent.

    Attributes:
        thread: Where the next one goes.
    """

    def __init__(self, store: DocumentStore, namespace: str, agent: str) -> None:
        partition = Partition(store, namespace, agent)
        self._writer = Writer(partition, "fork")
        self._agent = agent
        self._reader = Reader(partition)
        self.thread = ""

    async def put(self, item: ArchivedCheckpoint | ArchivedWrites) -> None:
        """Put one checkpoint with its writes, or writes alone."""
        scope = Scope(self._agent, self.thread, item.ns)
        by_task: dict[str, list[PendingWrite]] = {}
        for write in item.writes:
            by_task.setdefault(write.task, []).append(write)
        for task, writes in by_task.items():
            await self._writer.put_writes(scope, item.id, task, writes)
        if isinstance(item, ArchivedCheckpoint):
            await self._writer.put(_draft(scope, item), _Bytes())

    async def check(self, item: ArchivedCheckpoint | ArchivedWrites) -> None:
        """Read back what was put.

        Raises:
            CorruptDocumentError: It is not stored as it is in the archive.
        """
        scope = Scope(self._agent, self.thread, item.ns)
        if isinstance(item, ArchivedCheckpoint):
            loaded = await self._reader.by_id(scope, item.id)
            wrong = "it is not there"
            if loaded is not None:
                wrong = _difference(item, archived(loaded))
        else:
            tasks = {scope.task(item.id, write.task) for write in item.writes}
            found = await self._reader.read_writes(sorted(tasks))
            wrong = _missing(item.writes, found.get((scope, item.id), ()))
        if wrong:
            raise CorruptDocumentError(
                f"checkpoint {item.id!r} of thread {self.thread!r} is not what the "
                f"archive holds: {wrong}",
                key=key_of(RECORDS, scope.record(item.id)),
            )


def _difference(wanted: ArchivedCheckpoint, stored: ArchivedCheckpoint) -> str:
    for name in ("parent", "run", "format", "skeleton", "metadata"):
        if getattr(wanted, name) != getattr(stored, name):
            return f"its {name} is another one"
    if dict(wanted.versions) != dict(stored.versions):
        return "its channel versions are others"
    if dict(wanted.values) != dict(stored.values):
        return "its values are others"
    return _missing(wanted.writes, stored.writes)


def _missing(wanted: Sequence[PendingWrite], stored: Sequence[PendingWrite]) -> str:
    present = set(stored)
    if all(write in present for write in wanted):
        return ""
    return "other pending writes were there before, or replaced them since"


def _draft(scope: Scope, item: ArchivedCheckpoint) -> Draft:
    return Draft(
        scope=scope,
        id=item.id,
        parent=item.parent,
        run=item.run,
        # Nobody's run is continued: it is never in conflict.
        source=None,
        deltas=item.deltas,
        format=item.format,
        skeleton=item.skeleton,
        metadata=item.metadata,
        versions=dict(item.versions),
        changed=frozenset(item.values),
        values=item.values,
        is_copy=True,
    )
