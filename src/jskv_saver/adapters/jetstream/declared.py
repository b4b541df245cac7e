"""Puts into declared collections: document, hints, constraints, declaration."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.deletes import DeclaredDeletes
from jskv_saver.adapters.jetstream.entries import (
    Attempts,
    Entries,
    catalog_in,
    required,
)
from jskv_saver.adapters.jetstream.fences import Fences, Sight
from jskv_saver.adapters.jetstream.indexes import (
    HINT,
    Hints,
    Lookup,
    keep_all,
    plan_hints,
)
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.adapters.jetstream.records import (
    Record,
    decode_record,
    encode_record,
)
from jskv_saver.adapters.jetstream.reserved import conflict
from jskv_saver.document.declarations import check_declared, unique_key
from jskv_saver.document.model import Document, id_of
from jskv_saver.document.requests import PutRequest
from jskv_saver.errors import (
    CollectionNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    StorageFullError,
    UniqueViolationError,
    VersionConflictError,
)

_NOTHING_STORED: Final = (
    VersionConflictError,
    DocumentTooLargeError,
    StorageFullError,
)


class DeclaredPuts:
    """Puts into collections of users.

    Hints are stored before their document and removed after it, in one batch with it
    where the server has that. A put is refused, and tried again, unless it replaces
    the version that it read; in a collection with unique constraints, unless nothing
    in it has changed.

    Args:
        bucket: The bucket.
        entries: Its entries.
        reading: Its documents.
        fences: What is seen before a write.
        deletes: Removals, for what has to be taken back.
        patience: Seconds for which a definite refusal may be followed by another try.
    """

    def __init__(
        self,
        bucket: Bucket,
        entries: Entries,
        reading: Reading,
        fences: Fences,
        deletes: DeclaredDeletes,
        patience: float,
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._reading = reading
        self._fences = fences
        self._deletes = deletes
        self._patience = patience

    async def put(self, namespace: str, request: PutRequest) -> Document:
        """Store a document as its collection is declared."""
        attempts = Attempts(self._patience)
        async with self._fences.turn(namespace, request.collection):
            return await self._put(namespace, request, None, attempts)

    async def _put(
        self,
        namespace: str,
        request: PutRequest,
        created: datetime | None,
        attempts: Attempts,
    ) -> Document:
        while True:
            sight = await self._fences.see(namespace, request.collection, request.path)
            await self._check(namespace, request, sight)
            hints = plan_hints(
                namespace,
                request.collection,
                request.path,
                sight.catalog.indexes,
                sight.catalog.birth,
                request.data,
                sight.record,
                carry=sight.fence is not None or request.if_latest is None,
            )
            now = datetime.now(UTC)
            if created is not None:
                first = created
            elif sight.record is not None and request.keeps_creation:
                first = sight.record.document.created_at
            else:
                first = now
            write = self._write(namespace, request, sight, hints, first, now)
            try:
                version = await self._store(hints, write)
            except VersionConflictError:
                await self._explain(request, sight, write)
                await attempts.pause()
                continue
            document = Document(id_of(request.path), request.data, version, first, now)
            return await self._settle(
                namespace, request, sight, hints, document, attempts
            )

    async def _check(self, namespace: str, request: PutRequest, sight: Sight) -> None:
        """Raise if the document may not be stored."""
        check_declared(sight.catalog.spec, request.data)
        if request.if_version is not None and request.if_version != sight.version:
            raise conflict(request.if_version, sight.version)
        if sight.fence is None:
            return
        if request.if_latest is not None:
            prefix, expected = request.if_latest
            actual = await self._entries.newest_revision(
                keys.document_filter(namespace, request.collection, prefix, deep=True)
            )
            if actual != expected:
                raise conflict(expected, actual)
        await self._refuse_duplicate(namespace, request, sight.catalog)

    async def _refuse_duplicate(
        self, namespace: str, request: PutRequest, catalog: Catalog
    ) -> None:
        lookups = [
            Lookup(index, tokens, keep_all)
            for index in catalog.indexes
            if (tokens := index.unique_tokens(request.data)) is not None
        ]
        own = keys.document_key(namespace, request.collection, request.path)
        hinted = await self._reading.hinted(namespace, request.collection, lookups)
        hinted.discard(own)
        if not hinted:
            return
        found = await self._entries.read_newest(sorted(hinted))
        others = [decode_record(entry).document for entry in found.values()]
        for lookup in lookups:
            fields = lookup.index.fields
            mine = unique_key(fields, request.data)
            for other in others:
                if unique_key(fields, other.data) == mine:
                    raise UniqueViolationError(
                        f"another document has the same {', '.join(fields)}",
                        fields=fields,
                        document=other.id,
                    )

    def _write(
        self,
        namespace: str,
        request: PutRequest,
        sight: Sight,
        hints: Hints,
        created: datetime,
        now: datetime,
    ) -> Put:
        """The message of the document itself, with its condition."""
        collection = request.collection
        key = keys.document_key(namespace, collection, request.path)
        if not sight.catalog.indexes:
            value = encode_record(request.data, created, now, request.path)
        else:
            value = encode_record(
                request.data, created, now, request.path, hints.origin
            )
        if sight.fence is not None:
            everything = keys.collection_filter(namespace, collection)
            return Put(key, value, sight.fence, everything)
        if request.if_latest is not None:
            prefix, version = request.if_latest
            below = keys.document_filter(namespace, collection, prefix, deep=True)
            return Put(key, value, version, below)
        return Put(key, value, sight.version)

    async def _store(self, hints: Hints, write: Put) -> int:
        """Store hints and document in this order; take the hints back if refused."""
        if not hints.new:
            return await self._bucket.put(
                write.key,
                write.value,
                expected=write.expected,
                expected_filter=write.expected_filter,
            )
        ahead = [Put(hint, HINT) for hint in hints.new]
        try:
            revisions = await self._bucket.put_many([*ahead, write], exact=False)
        except _NOTHING_STORED:
            await self._entries.remove_all(hints.new)
            raise
        return revisions[-1]

    async def _explain(self, request: PutRequest, sight: Sight, write: Put) -> None:
        """After a refusal: remove a marker in the way; raise if the caller's is over.

        Its own version is compared by the next attempt.
        """
        actual = await self._entries.newest_revision(write.expected_filter or write.key)
        if (
            sight.fence is None
            and request.if_latest is not None
            and actual != write.expected
        ):
            raise conflict(write.expected, actual)

    async def _settle(
        self,
        namespace: str,
        request: PutRequest,
        sight: Sight,
        hints: Hints,
        document: Document,
        attempts: Attempts,
    ) -> Document:
        """Remove what the stored document made stale; see that its declaration held.

        A fenced put has proved that; the others ask, for a declaration that came
        after they read it and before they were stored knows nothing of them.
        """
        stale = self._entries.remove_all(hints.stale)
        if sight.fence is not None:
            await stale
            return document
        key = keys.catalog_key(namespace, request.collection)
        _, found = await asyncio.gather(stale, self._entries.read_newest([key]))
        catalog = catalog_in(found, key)
        if catalog is not None and catalog.asks_the_same(sight.catalog):
            return document
        again = replace(request, if_version=document.version, if_latest=None)
        try:
            required(catalog, namespace, request.collection)
            return await self._put(namespace, again, document.created_at, attempts)
        except VersionConflictError:
            # Replaced or removed meanwhile, by someone who has seen to it.
            return document
        except CollectionNotFoundError:
            own = keys.document_key(namespace, request.collection, request.path)
            await self._entries.remove(own, document.version)
            await self._entries.remove_all(hints.new)
            raise
        except (UniqueViolationError, InvalidRequestError):
            await self._undo(namespace, again, sight.record, attempts)
            raise

    async def _undo(
        self,
        namespace: str,
        request: PutRequest,
        replaced: Record | None,
        attempts: Attempts,
    ) -> None:
        """Take back a document that the new declaration refuses."""
        try:
            if replaced is not None:
                before = replaced.document
                former = replace(request, data=before.data)
                await self._put(namespace, former, before.created_at, attempts)
                return
        except (UniqueViolationError, InvalidRequestError):
            pass
        except (VersionConflictError, CollectionNotFoundError):
            return
        version = request.if_version
        with suppress(VersionConflictError, CollectionNotFoundError):
            await self._deletes.remove(
                namespace, request.collection, request.path, attempts, version
            )
