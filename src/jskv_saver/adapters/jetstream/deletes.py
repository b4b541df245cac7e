"""Removals from declared collections: document, hints, fences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import Attempts, Entries
from jskv_saver.adapters.jetstream.fences import Fences
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.adapters.jetstream.records import Record
from jskv_saver.adapters.jetstream.reserved import conflict
from jskv_saver.document.model import Path
from jskv_saver.document.names import PatternPath, is_exact, is_reserved
from jskv_saver.document.requests import DeleteRequest
from jskv_saver.errors import VersionConflictError

_AT_ONCE: Final = 16


class DeclaredDeletes:
    """Removals from collections of users.

    Args:
        bucket: The bucket.
        entries: Its entries.
        reading: Its documents.
        fences: What is seen before a write.
        patience: Seconds for which a definite refusal may be followed by another try.
    """

    def __init__(
        self,
        bucket: Bucket,
        entries: Entries,
        reading: Reading,
        fences: Fences,
        patience: float,
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._reading = reading
        self._fences = fences
        self._patience = patience

    async def delete(
        self, namespace: str, request: DeleteRequest, catalogs: dict[str, Catalog]
    ) -> None:
        """Remove a document, or subtrees of the collections that `catalogs` names."""
        if request.subtree:
            for name, catalog in catalogs.items():
                await self._delete_subtree(
                    namespace, catalog, name, request.prefix, request.below
                )
            return
        (name,) = request.collections
        assert is_exact(request.prefix)
        async with self._fences.turn(namespace, name):
            await self.remove(
                namespace,
                name,
                request.prefix,
                Attempts(self._patience),
                request.if_version,
                request.below,
            )

    async def remove(
        self,
        namespace: str,
        collection: str,
        path: Path,
        attempts: Attempts,
        if_version: int | None = None,
        below: int | None = None,
    ) -> None:
        """Remove one document with its hints; none is no error without a version."""
        while True:
            sight = await self._fences.see(namespace, collection, path)
            record = sight.record
            if if_version is not None and (
                record is None or record.version != if_version
            ):
                raise conflict(if_version, sight.version)
            if record is None or (below is not None and record.version >= below):
                return
            if sight.fence is not None:
                try:
                    await self._fences.remove_fenced(
                        namespace, collection, sight, record
                    )
                    return
                except VersionConflictError:
                    pass
            elif await self._fences.remove(namespace, sight.catalog, record):
                return
            await attempts.pause()

    async def remove_seen(
        self, namespace: str, collection: str, records: AsyncIterator[Record]
    ) -> int:
        """Remove documents at the versions that were seen; how many were."""
        removed = 0
        batch: list[Record] = []
        async for record in records:
            batch.append(record)
            if len(batch) == _AT_ONCE:
                removed += await self._remove_batch(namespace, collection, batch)
                batch = []
        return removed + await self._remove_batch(namespace, collection, batch)

    async def _remove_batch(
        self, namespace: str, collection: str, batch: list[Record]
    ) -> int:
        if is_reserved(collection):
            done = [self._entries.remove(each.key, each.version) for each in batch]
        else:
            done = [self._remove_version(namespace, collection, each) for each in batch]
        return sum(await asyncio.gather(*done))

    async def _remove_version(
        self, namespace: str, collection: str, record: Record
    ) -> bool:
        attempts = Attempts(self._patience)
        async with self._fences.turn(namespace, collection):
            try:
                await self.remove(
                    namespace, collection, record.path, attempts, record.version
                )
            except VersionConflictError:
                return False
        return True

    async def _delete_subtree(
        self,
        namespace: str,
        catalog: Catalog,
        collection: str,
        prefix: PatternPath,
        below: int | None,
    ) -> None:
        filter = keys.document_filter(namespace, collection, prefix, deep=True)
        if not catalog.indexes:
            await self._bucket.purge(filter, below=below)
            return
        # Each document's hints are its own, so each has to be read.
        names = await self._bucket.names([filter])
        batch: list[Record] = []
        async for record in self._reading.records(names):
            batch.append(record)
            if len(batch) == _AT_ONCE:
                await self._remove_below(namespace, collection, batch, below)
                batch = []
        await self._remove_below(namespace, collection, batch, below)

    async def _remove_below(
        self, namespace: str, collection: str, batch: list[Record], below: int | None
    ) -> None:
        await asyncio.gather(
            *(
                self.remove(
                    namespace,
                    collection,
                    record.path,
                    Attempts(self._patience),
                    below=below,
                )
                for record in batch
                if below is None or record.version < below
            )
        )
