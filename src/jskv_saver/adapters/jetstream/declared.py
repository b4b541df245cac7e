"""Puts into declared collections: document, hints, constraints, declaration."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import Attempts, Entries
from jskv_saver.adapters.jetstream.fences import Fences, Sight
from jskv_saver.adapters.jetstream.indexes import (
    HINT,
    Hints,
    Lookup,
    keep_all,
    plan_hints,
)
from jskv_saver.adapters.jetstream.intents import (
    CREATES,
    FENCED,
    REPLACES,
    Intents,
)
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.adapters.jetstream.records import (
    NOWHERE,
    decode_record,
    encode_record,
)
from jskv_saver.adapters.jetstream.reserved import conflict
from jskv_saver.document.declarations import check_declared, unique_key
from jskv_saver.document.model import Document, id_of
from jskv_saver.document.requests import PutRequest
from jskv_saver.errors import (
    DocumentTooLargeError,
    StorageFullError,
    StoreUnavailableError,
    UniqueViolationError,
    UnknownOutcomeError,
    VersionConflictError,
)

_NOTHING_STORED: Final = (
    VersionConflictError,
    DocumentTooLargeError,
    StorageFullError,
)


class DeclaredPuts:
    """Puts into collections of users.

    What announces a document (an intent, hints) is stored before it, what it made
    stale is removed after it. Where the server has fast batches, it is one round trip
    with the document; not all or nothing, but an ordered prefix, which is enough. A
    put is refused, and tried again, unless it replaces the version that it read under
    the declaration that it read; in a collection with unique constraints, unless
    nothing in it has changed.

    Args:
        bucket: The bucket.
        entries: Its entries.
        reading: Its documents.
        fences: What is seen before a write.
        intents: What announces a write.
        patience: Seconds for which a definite refusal may be followed by another try.
    """

    def __init__(
        self,
        bucket: Bucket,
        entries: Entries,
        reading: Reading,
        fences: Fences,
        intents: Intents,
        patience: float,
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._reading = reading
        self._fences = fences
        self._intents = intents
        self._patience = patience
        self._under_way: set[asyncio.Task[int]] = set()

    async def put(self, namespace: str, request: PutRequest) -> Document:
        """Store a document as its collection is declared."""
        attempts = Attempts(self._patience)
        fenced = request.if_latest is not None
        async with self._fences.turn(namespace, request.collection, fenced=fenced):
            while True:
                document = await self._attempt(namespace, request)
                if document is not None:
                    return document
                await attempts.pause()

    async def _attempt(self, namespace: str, request: PutRequest) -> Document | None:
        """Store a document, or None when something has changed meanwhile."""
        collection, path = request.collection, request.path
        fenced = request.if_latest is not None
        sight = await self._fences.see(namespace, collection, path, fenced=fenced)
        await self._check(namespace, request, sight)
        catalog, replaced = sight.catalog, sight.record
        hints = plan_hints(
            namespace,
            collection,
            path,
            catalog.indexes,
            catalog.birth,
            request.data,
            replaced,
            carry=catalog.unique or not fenced,
        )
        now = datetime.now(UTC)
        created = now
        if replaced is not None and request.keeps_creation:
            created = replaced.document.created_at
        origin = hints.origin if catalog.indexes else NOWHERE
        value = encode_record(request.data, created, now, path, origin)
        write = _document_write(namespace, request, sight, value)
        intent: Put | None = None
        if not catalog.unique:
            kind = FENCED if fenced else CREATES if replaced is None else REPLACES
            intent = self._intents.begin(namespace, catalog, write.key, kind)
        try:
            version = await self._to_the_end(self._store(intent, hints, write))
        except VersionConflictError:
            # A marker of another tool may have stood in the way: it is removed.
            await self._entries.newest(write.expected_filter or write.key)
            return None
        return Document(id_of(path), request.data, version, created, now)

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
        hinted.pop(own, None)
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

    async def _store(self, intent: Put | None, hints: Hints, write: Put) -> int:
        """Store what announces a document and the document; remove what is stale."""
        ahead = [Put(hint, HINT) for hint in hints.new]
        if intent is not None:
            ahead.insert(0, intent)
        try:
            revisions = await self._bucket.put_many([*ahead, write], exact=False)
        except _NOTHING_STORED:
            await self._entries.remove_all(hints.new)
            if intent is not None:
                self._intents.over(intent)
            raise
        if intent is not None:
            self._intents.over(intent)
        with suppress(StoreUnavailableError, UnknownOutcomeError):
            # The document is stored: what is stale does no harm.
            await self._entries.remove_all(hints.stale)
        return revisions[-1]

    async def _to_the_end(self, storing: Coroutine[Any, Any, int]) -> int:
        """Let a write be settled even if its caller is cancelled."""
        task = asyncio.create_task(storing)
        self._under_way.add(task)
        task.add_done_callback(self._settled)
        return await asyncio.shield(task)

    def _settled(self, task: asyncio.Task[int]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Marks an exception as seen when the caller has given up.
            task.exception()


def _document_write(
    namespace: str, request: PutRequest, sight: Sight, value: bytes
) -> Put:
    """The message of the document itself, with its condition."""
    key = keys.document_key(namespace, request.collection, request.path)
    if sight.fence is not None:
        everything = keys.collection_filter(namespace, request.collection)
        return Put(key, value, sight.fence, everything)
    if sight.record is not None:
        return Put(key, value, sight.version)
    return Put(key, value, sight.bar, keys.bar_filter(key))
