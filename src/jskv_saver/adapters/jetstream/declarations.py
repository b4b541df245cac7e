"""Declaring, extending, dropping and listing collections.

A declaration that asks something of present documents is carried out in steps, each
of them a compare-and-set of the catalog entry, and any process may finish what another
one began:

1. look whether the documents allow it, and change nothing if not;
2. store it as *building*: from here on writers keep its indexes and constraints;
3. end the writes that were begun under the former declaration and may still arrive
   (see `intents`), and write the hints that documents lack;
4. with a new constraint: store it once more, so that all fences fall that were read
   before the hints were complete, and look at the documents again;
5. store it as *ready*: queries use the indexes.

A drop stores the entry as *dropped*: all that is older than that revision belongs to
the collection that was, all that is younger to the next one of that name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.adapters.jetstream.catalog import (
    Catalog,
    State,
    born,
    decode_catalog,
    encode_catalog,
)
from jskv_saver.adapters.jetstream.entries import CHUNK, Attempts, Entries, required
from jskv_saver.adapters.jetstream.indexes import HINT, backfill
from jskv_saver.adapters.jetstream.intents import Intents
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.document.declarations import (
    merge,
    mistyped_field,
    unique_constraints,
    unique_key,
)
from jskv_saver.document.model import CollectionSpec, DocumentId
from jskv_saver.errors import IncompatibleDeclarationError, VersionConflictError


class Declarations:
    """The catalog of collections.

    Args:
        bucket: The bucket.
        entries: Its entries.
        reading: Its documents.
        intents: Its intents.
        patience: Seconds for which a definite refusal may be followed by another try.
    """

    def __init__(
        self,
        bucket: Bucket,
        entries: Entries,
        reading: Reading,
        intents: Intents,
        patience: float,
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._reading = reading
        self._intents = intents
        self._patience = patience

    async def ensure(self, namespace: str, added: CollectionSpec) -> None:
        """Declare or extend a collection; the declaration in canonical form."""
        attempts = Attempts(self._patience)
        key = keys.catalog_key(namespace, added.name)
        everything = keys.collection_filter(namespace, added.name)
        while True:
            # First this, then the entry: if that is absent, what is not younger than
            # this was left by a collection that was dropped.
            newest = await self._entries.newest_revision(everything)
            entry = (await self._entries.read_newest([key])).get(key)
            stored = None if entry is None else decode_catalog(entry)
            try:
                if stored is None:
                    await self._create(namespace, added, newest, 0)
                elif stored.state is State.DROPPED:
                    await self._end(namespace, stored)
                    await self._create(
                        namespace, added, stored.revision - 1, stored.revision
                    )
                else:
                    merged = merge(stored.spec, added)
                    if merged == stored.spec and stored.state is State.READY:
                        return
                    await self._extend(namespace, stored, merged)
                return
            except VersionConflictError:
                await attempts.pause()

    async def drop(self, namespace: str, name: str) -> None:
        """Remove a collection, or raise `CollectionNotFoundError`."""
        attempts = Attempts(self._patience)
        while True:
            catalog = required(
                await self._entries.catalog(namespace, name), namespace, name
            )
            try:
                revision = await self._store(
                    namespace, catalog.dropped(), catalog.revision
                )
            except VersionConflictError:
                await attempts.pause()
                continue
            await self._end(namespace, catalog.dropped().at(revision))
            await self._sweep(namespace, name, revision - 1)
            await self._entries.remove(keys.catalog_key(namespace, name), revision)
            return

    async def finish(self, namespace: str, catalog: Catalog) -> None:
        """Carry out to its end what somebody has begun, and died."""
        name = catalog.spec.name
        if catalog.state is State.BUILDING:
            # If present documents do not allow it, it is taken back.
            with suppress(IncompatibleDeclarationError):
                await self.ensure(namespace, catalog.spec)
        elif catalog.state is State.DROPPED:
            await self._end(namespace, catalog)
            await self._sweep(namespace, name, catalog.revision - 1)
            key = keys.catalog_key(namespace, name)
            await self._entries.remove(key, catalog.revision)

    async def clear(self, namespace: str, name: str) -> None:
        """Remove what is left of a collection that is not declared."""
        # First this, then the entry, as in `ensure`.
        newest = await self._entries.newest_revision(
            keys.collection_filter(namespace, name)
        )
        hints = keys.index_filter(namespace, name)
        newest = max(newest, await self._entries.newest_revision(hints))
        key = keys.catalog_key(namespace, name)
        if not await self._entries.read_newest([key]):
            await self._sweep(namespace, name, newest)

    async def names(self, namespace: str) -> list[str]:
        """The declared collections, sorted."""
        found = await self._entries.read(
            await self._bucket.names([keys.catalog_filter(namespace)])
        )
        catalogs = map(decode_catalog, found.values())
        return sorted(
            catalog.spec.name
            for catalog in catalogs
            if catalog.state is not State.DROPPED
        )

    async def _create(
        self, namespace: str, added: CollectionSpec, swept: int, expected: int
    ) -> None:
        """Create a collection, removing first what an older one has left."""
        spec = merge(None, added)
        await self._sweep(namespace, added.name, swept)
        await self._store(namespace, born(spec), expected)

    async def _sweep(self, namespace: str, name: str, newest: int) -> None:
        """Remove what a dropped collection has left, up to a revision.

        Bars stay: what they bar may still arrive.
        """
        left = (
            keys.document_filter(namespace, name, (), deep=True),
            keys.tick_key(namespace, name),
            keys.index_filter(namespace, name),
        )
        if newest > 0:
            await asyncio.gather(
                *(self._bucket.purge(filter, below=newest + 1) for filter in left)
            )

    async def _end(self, namespace: str, catalog: Catalog) -> None:
        """End the writes that were begun before this declaration."""
        await self._intents.end(
            namespace,
            catalog.spec.name,
            catalog.revision,
            replacing=catalog.state is not State.DROPPED,
        )

    async def _extend(
        self, namespace: str, stored: Catalog, merged: CollectionSpec
    ) -> None:
        """Carry out an extended declaration, or one that somebody began to."""
        former = stored.previous if stored.state is State.BUILDING else stored.spec
        constraints = set(unique_constraints(merged))
        if former is not None:
            constraints -= set(unique_constraints(former))
        try:
            await self._inspect(namespace, merged)
        except IncompatibleDeclarationError:
            if stored.state is State.BUILDING and merged == stored.spec:
                await self._take_back(namespace, stored)
            raise
        building = stored.building(merged)
        revision = await self._store(namespace, building, stored.revision)
        building = building.at(revision)
        try:
            await self._end(namespace, building)
            await self._backfill(namespace, building)
            if constraints:
                revision = await self._store(namespace, building, revision)
                building = building.at(revision)
            await self._inspect(namespace, merged)
        except IncompatibleDeclarationError:
            await self._take_back(namespace, building)
            raise
        await self._store(namespace, building.built(), revision)

    async def _take_back(self, namespace: str, building: Catalog) -> None:
        """Return to the former declaration.

        The hints of the other one stay, of no use and no harm: writers who are under
        way rely upon theirs. A later declaration completes them.
        """
        await self._store(namespace, building.restored(), building.revision)

    async def _inspect(self, namespace: str, spec: CollectionSpec) -> None:
        """Raise if a present document breaks the declaration."""
        constraints = unique_constraints(spec)
        holders: dict[tuple[int, bytes], DocumentId] = {}
        async for record in self._reading.everything(namespace, spec.name):
            document = record.document
            wrong = mistyped_field(spec, document.data)
            for position, constraint in enumerate(constraints):
                key = unique_key(constraint, document.data)
                if key is None:
                    continue
                holder = holders.setdefault((position, key), document.id)
                if holder != document.id:
                    wrong = f"its {', '.join(constraint)} is that of another"
            if wrong is not None:
                raise IncompatibleDeclarationError(
                    f"{document.id!r} in {spec.name!r} breaks the declaration: {wrong}",
                    collection=spec.name,
                    document=document.id,
                )

    async def _backfill(self, namespace: str, catalog: Catalog) -> None:
        """Write the hints that documents lack, even where they name them."""
        name = catalog.spec.name
        if not catalog.indexes:
            return
        there = set(await self._bucket.names([keys.index_filter(namespace, name)]))
        missing: list[str] = []
        async for record in self._reading.everything(namespace, name):
            needed = backfill(namespace, name, record, catalog.indexes, catalog.birth)
            missing += [key for key in needed if key not in there]
            if len(missing) >= CHUNK:
                await self._write_hints(missing)
                missing = []
        await self._write_hints(missing)

    async def _write_hints(self, missing: Iterable[str]) -> None:
        writes = [Put(key, HINT) for key in missing]
        if writes:
            await self._bucket.put_many(writes, exact=False, relaxed=True)

    async def _store(self, namespace: str, catalog: Catalog, expected: int) -> int:
        return await self._bucket.put(
            keys.catalog_key(namespace, catalog.spec.name),
            encode_catalog(catalog),
            expected=expected,
        )
