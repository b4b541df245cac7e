"""Reads that are never wrong about absence, and removals that are never too much."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Entry
from jskv_saver.adapters.jetstream.catalog import Catalog, State, decode_catalog
from jskv_saver.errors import (
    CollectionNotFoundError,
    StoreUnavailableError,
    VersionConflictError,
)

CHUNK: Final = 256
"""Keys in one request of several."""

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05


class Attempts:
    """How long a definite refusal may be followed by another attempt.

    Args:
        seconds: Until the last attempt may begin.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + seconds
        self._longest = _FIRST_PAUSE

    async def pause(self) -> None:
        """Wait a random moment, longer each time.

        Raises:
            StoreUnavailableError: The time is over.
        """
        if self._loop.time() >= self._end:
            raise StoreUnavailableError(
                "other writers were faster each time until the deadline; nothing was "
                "written"
            )
        await asyncio.sleep(random.uniform(0, self._longest))
        self._longest = min(self._longest * 2, _LONGEST_PAUSE)


class Entries:
    """Entries of a bucket by key.

    Args:
        bucket: The bucket.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def read(self, wanted: Sequence[str]) -> dict[str, Entry]:
        """The entries of keys; one that is not there is absent for certain."""
        found: dict[str, Entry] = {}
        for start in range(0, len(wanted), CHUNK):
            chunk = wanted[start : start + CHUNK]
            for entry in await self._bucket.get_many(chunk):
                found[entry.key] = entry
        if self._bucket.replicated and len(found) < len(wanted):
            await self._ask_leader((key for key in wanted if key not in found), found)
        return found

    async def read_newest(self, wanted: Sequence[str]) -> dict[str, Entry]:
        """As `read`, and what is there is never stale."""
        await self._bucket.open()
        if not self._bucket.replicated:
            return await self.read(wanted)
        found: dict[str, Entry] = {}
        await self._ask_leader(wanted, found)
        return found

    async def _ask_leader(self, wanted: Iterable[str], found: dict[str, Entry]) -> None:
        entries = await asyncio.gather(*map(self._bucket.get_from_leader, wanted))
        found.update((entry.key, entry) for entry in entries if entry is not None)

    async def newest(self, filter: str) -> Entry | None:
        """The newest entry under a filter; a marker met there is removed."""
        while True:
            entry = await self._bucket.last(filter)
            if entry is None or not entry.marker:
                return entry
            if self._bucket.read_only:
                rest = await self._bucket.get_many([filter])
                return max(rest, key=lambda each: each.revision, default=None)
            await self._bucket.purge(entry.key, below=entry.revision + 1)

    async def newest_revision(self, filter: str) -> int:
        """Its revision; 0 when nothing is there."""
        entry = await self.newest(filter)
        return 0 if entry is None else entry.revision

    async def remove(self, key: str, revision: int) -> bool:
        """Remove an entry that was seen at this revision, unless it has changed.

        The purge of all that is not younger is a compare-and-set: the key has had
        this revision, so what it finds is this one or nothing. It leaves no trace.
        Where older revisions are kept it would find those, and a marker is needed.
        """
        if self._bucket.history != 1:
            try:
                await self._bucket.delete(key, revision)
            except VersionConflictError:
                return False
            return True
        return await self._bucket.purge(key, below=revision + 1) > 0

    async def remove_all(self, unwanted: Iterable[str]) -> None:
        """Remove keys that nobody else writes."""
        await asyncio.gather(*map(self._bucket.purge, unwanted))

    async def catalog(self, namespace: str, collection: str) -> Catalog | None:
        """A collection's catalog entry; None: not there, or dropped."""
        key = keys.catalog_key(namespace, collection)
        return catalog_in(await self.read_newest([key]), key)

    async def catalogs(
        self, namespace: str, collections: Iterable[str]
    ) -> dict[str, Catalog]:
        """The catalog entries of declared collections.

        Raises:
            CollectionNotFoundError: One of them is not declared.
        """
        wanted = {name: keys.catalog_key(namespace, name) for name in collections}
        found = await self.read_newest(list(wanted.values()))
        return {
            name: required(catalog_in(found, key), namespace, name)
            for name, key in wanted.items()
        }


def catalog_in(found: Mapping[str, Entry], key: str) -> Catalog | None:
    """The catalog among entries that were read; None: not there, or dropped."""
    entry = found.get(key)
    if entry is None:
        return None
    catalog = decode_catalog(entry)
    return None if catalog.state is State.DROPPED else catalog


def required(catalog: Catalog | None, namespace: str, collection: str) -> Catalog:
    """The catalog of a collection that has to be declared."""
    if catalog is None:
        raise CollectionNotFoundError(
            f"there is no collection {collection!r} in the namespace {namespace!r}: "
            "declare it with ensure_collection",
            namespace=namespace,
            collection=collection,
        )
    return catalog
