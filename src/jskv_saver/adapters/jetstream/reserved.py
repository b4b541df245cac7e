"""Writes into the saver's collections: one message each, nothing read before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.adapters.jetstream.entries import Attempts, Entries
from jskv_saver.adapters.jetstream.records import encode_record
from jskv_saver.document.model import Document, id_of
from jskv_saver.document.names import PatternPath, is_exact
from jskv_saver.document.requests import DeleteRequest, PutRequest
from jskv_saver.errors import JskvError, VersionConflictError

_log: Final = logging.getLogger(__name__)


class ReservedWrites:
    """Puts and deletes in the saver's collections.

    Args:
        bucket: The bucket.
        entries: Its entries.
        patience: Seconds for which a definite refusal may be followed by another try.
    """

    def __init__(self, bucket: Bucket, entries: Entries, patience: float) -> None:
        self._bucket = bucket
        self._entries = entries
        self._patience = patience

    async def put(
        self, namespace: str, request: PutRequest, ttl: float | None = None
    ) -> Document:
        """One message, which expires after `ttl` seconds."""
        now = datetime.now(UTC)
        write = _write(namespace, request, now)._replace(ttl=ttl)
        try:
            revision = await self._put(write)
        except VersionConflictError:
            revision = await self._put_again(write)
        return Document(id_of(request.path), request.data, revision, now, now)

    async def _put(self, write: Put) -> int:
        return await self._bucket.put(
            write.key,
            write.value,
            expected=write.expected,
            expected_filter=write.expected_filter,
            ttl=write.ttl,
        )

    async def put_many(
        self, namespace: str, requests: Sequence[PutRequest], *, exact: bool = True
    ) -> list[Document]:
        """One batch, in order."""
        now = datetime.now(UTC)
        writes = [_write(namespace, request, now) for request in requests]
        try:
            revisions = await self._bucket.put_many(writes, exact=exact)
        except VersionConflictError:
            # Which one it was is not known; a marker that stood in the way goes, so
            # that what the caller reads now is what the next condition is held to.
            conditional = [w for w in writes if w.expected is not None]
            for filter in {w.expected_filter or w.key: None for w in conditional}:
                await self._entries.newest(filter)
            raise
        return [
            Document(id_of(request.path), request.data, revision, now, now)
            for request, revision in zip(requests, revisions, strict=True)
        ]

    async def delete(self, namespace: str, request: DeleteRequest) -> None:
        """One purge, of a document or of a subtree in one collection or in all."""
        prefix = request.prefix
        names = [name for name in request.collections if name in keys.RESERVED]
        if request.subtree:
            if len(names) == len(keys.RESERVED):
                await self._delete_thread(namespace, prefix, request.below)
                return
            filters = [
                keys.document_filter(namespace, name, prefix, deep=True)
                for name in names
            ]
            await asyncio.gather(
                *(self._bucket.purge(filter, below=request.below) for filter in filters)
            )
            return
        if not names:
            return
        assert is_exact(prefix)
        key = keys.document_key(namespace, names[0], prefix)
        if request.if_version is None:
            await self._bucket.purge(key, below=request.below)
        else:
            await self.delete_version(key, request.if_version)

    async def _delete_thread(
        self, namespace: str, prefix: PatternPath, below: int | None
    ) -> None:
        """One purge, and where that removed something a marker that tells of it."""
        removed = await self._bucket.purge(
            keys.thread_filter(namespace, prefix), below=below
        )
        if not removed or below is not None or not is_exact(prefix):
            return
        now = datetime.now(UTC)
        value = b""
        if keys.needs_path(prefix):
            value = encode_record({}, now, now, prefix)
        try:
            await self._bucket.announce(keys.removal_key(namespace, prefix), value)
        except JskvError as exc:
            # What was asked for is done, also where the bucket takes nothing more.
            _log.debug("the removal of a thread is not announced: %s", exc)

    async def delete_version(self, key: str, version: int) -> None:
        """Remove a key if this is its revision, or raise `VersionConflictError`."""
        entry = (await self._entries.read_newest([key])).get(key)
        actual = 0 if entry is None else entry.revision
        if version == 0 or actual != version:
            raise conflict(version, actual)
        if not await self._entries.remove(key, version):
            raise conflict(version, None)

    async def _put_again(self, write: Put) -> int:
        """Find out why a put was refused, and put again if its condition holds."""
        attempts = Attempts(self._patience)
        while True:
            filter = write.expected_filter or write.key
            actual = await self._entries.newest_revision(filter)
            if actual != write.expected:
                raise conflict(write.expected, actual)
            # A marker stood in the way and is gone now.
            try:
                return await self._put(write)
            except VersionConflictError:
                await attempts.pause()


def _write(namespace: str, request: PutRequest, now: datetime) -> Put:
    key = keys.document_key(namespace, request.collection, request.path)
    value = encode_record(request.data, now, now, request.path)
    if request.if_latest is None:
        return Put(key, value, request.if_version)
    prefix, version = request.if_latest
    filter = keys.document_filter(namespace, request.collection, prefix, deep=True)
    return Put(key, value, version, filter)


def conflict(expected: int | None, actual: int | None) -> VersionConflictError:
    """The error of a condition that does not hold."""
    if actual is None:
        message = f"version {expected} was replaced or removed by another writer"
    else:
        message = f"the stored version is {actual or 'none'}, not {expected or 'none'}"
    return VersionConflictError(message, expected=expected, actual=actual)
