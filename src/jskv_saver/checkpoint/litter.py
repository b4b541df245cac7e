"""What writers that died left behind: bytes that nothing refers to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jskv_saver.checkpoint.layout import PARTS, WRITES, Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.patience import gather_some
from jskv_saver.checkpoint.writes import part_names
from jskv_saver.document.model import Document, DocumentId, Path, path_of

_TASK = 5
"""Segments of the id of a task's document; its parts have one more."""


class Litter:
    """Finds what no record and no task's document names.

    What a living writer is about to name looks the same. It may be removed if it is
    older than an epoch: the epoch breaks the writer's fence, and he stores it again.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace

    async def parts(self, scope: Scope, records: Iterable[Record]) -> list[DocumentId]:
        """The parts of channel values that none of the records refers to."""
        marked = {digest.hex() for each in records for digest in each.digests()}
        stored = await self._store.ids(self._namespace, PARTS, within=scope.prefix)
        return [id for id in stored if path_of(id)[-1] not in marked]

    async def writes(self, scope: Scope) -> tuple[list[Path], list[Document]]:
        """Parts of writes that no whole document names, and documents that lack one."""
        stored = await self._store.ids(self._namespace, WRITES, within=scope.prefix)
        parts = [path for path in map(path_of, stored) if len(path) > _TASK]
        tasks = [path for path in map(path_of, stored) if len(path) == _TASK]
        # Read after the names: what is named by now is no litter.
        found = await self._documents(tasks)
        names = {
            path: [(*path, name) for name in part_names(task)]
            for path, task in found.items()
        }
        present = set(parts)
        # One that was replaced while this was read has parts that were not listed.
        present |= (
            await self._documents(
                name for own in names.values() for name in own if name not in present
            )
        ).keys()
        torn = [path for path, own in names.items() if not present.issuperset(own)]
        for path in torn:
            names.pop(path)
        named = {name for own in names.values() for name in own}
        return [path for path in parts if path not in named], [
            found[path] for path in torn
        ]

    async def lies_about(self, scope: Scope, records: Mapping[str, Record]) -> bool:
        """Whether there is any."""
        return bool(
            await self.parts(scope, records.values()) or any(await self.writes(scope))
        )

    async def remove_writes(self, scope: Scope, epoch: int) -> None:
        """Parts that no task's document names, and documents that lack a part.

        Their writers died, or find that out and store them again.
        """
        parts, torn = await self.writes(scope)
        await gather_some(
            self._store.delete(self._namespace, WRITES, path, below=epoch)
            for path in parts
        )
        await gather_some(
            self._store.delete(self._namespace, WRITES, task.id, below=task.version + 1)
            for task in torn
        )

    async def _documents(self, paths: Iterable[Path]) -> Mapping[Path, Document]:
        reads = [(WRITES, path) for path in paths]
        if not reads:
            return {}
        found = await self._store.get_many(self._namespace, reads)
        return {path_of(document.id): document for document in found.values()}
