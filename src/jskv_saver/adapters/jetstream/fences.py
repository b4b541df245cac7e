"""What a writer sees of a declared collection before it writes.

In a collection with a unique constraint all writes are *fenced*: a put is refused if
anything at all has changed in the collection since its fence was read, the newest
revision under `<collection>./<ns>.>`. So what the writer looked up in between (that no
other document has these values, that the document has this version) still holds when
its message is stored. A removal leaves no revision, and would let the fence return to
an old value; therefore it is announced before it is done, by a fenced write of the
collection's tick, which names the document and its version. Whoever sees an announced
removal finishes it first. So at most the last one is ever unfinished.

In other collections writes are held to one version of one document, and announced by
an intent (see `intents`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from jskv_saver.adapters.jetstream import codec, keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Entry
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import Entries, catalog_in, required
from jskv_saver.adapters.jetstream.indexes import hints_of
from jskv_saver.adapters.jetstream.intents import REPLACES, Intents
from jskv_saver.adapters.jetstream.records import Record, decode_record
from jskv_saver.document.model import Path
from jskv_saver.errors import VersionConflictError


@dataclass(frozen=True, slots=True)
class Sight:
    """A collection's declaration and one of its documents, as they were.

    Attributes:
        catalog: The declaration.
        record: The document; None: absent.
        fence: In a collection with unique constraints, or if asked for, the newest
            revision in it before the rest was read; else None.
        bar: Without a fence: revision of what bars late creations (see `intents`).
    """

    catalog: Catalog
    record: Record | None
    fence: int | None
    bar: int = 0

    @property
    def version(self) -> int:
        """The document's version; 0: absent."""
        return 0 if self.record is None else self.record.version


class Fences:
    """Reads before writes, and the removals that a fence must not miss.

    Args:
        bucket: The bucket.
        entries: Its entries.
        intents: Its intents.
        patience: Seconds to wait for one's turn.
    """

    def __init__(
        self, bucket: Bucket, entries: Entries, intents: Intents, patience: float
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._intents = intents
        self._patience = patience
        # Which collections were fenced when last seen: what to read, not what holds.
        self._fenced: set[tuple[str, str]] = set()
        self._known: set[tuple[str, str]] = set()
        self._finished: dict[str, int] = {}
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def see(
        self, namespace: str, collection: str, path: Path, *, fenced: bool = False
    ) -> Sight:
        """Read fence, declaration and document, in this order.

        Args:
            namespace: The owner.
            collection: The collection.
            path: The document's path.
            fenced: Whether a fence is wanted in any case.

        Raises:
            CollectionNotFoundError: The collection is not declared.
        """
        key = keys.document_key(namespace, collection, path)
        catalog_key = keys.catalog_key(namespace, collection)
        tick_key = keys.tick_key(namespace, collection)
        bar_key = keys.bar_key(key)
        everything = keys.collection_filter(namespace, collection)
        while True:
            fence: int | None = None
            # As it is before the document is read: a removal finished after that may
            # be of this very document.
            finished = self._finished.get(tick_key)
            wanted = [catalog_key, key]
            if fenced or (namespace, collection) in self._fenced:
                fence = await self._entries.newest_revision(everything)
                wanted.append(tick_key)
            else:
                wanted.append(bar_key)
            found = await self._entries.read_newest(wanted)
            catalog = required(catalog_in(found, catalog_key), namespace, collection)
            if not catalog.unique:
                self._fenced.discard((namespace, collection))
                if fence is not None and not fenced:
                    continue
            elif fence is None:
                self._fenced.add((namespace, collection))
                continue
            elif tick_key in found and found[tick_key].revision != finished:
                await self._finish(namespace, catalog, found[tick_key])
                continue
            record = decode_record(found[key], path) if key in found else None
            bar = found[bar_key].revision if bar_key in found else 0
            return Sight(catalog, record, fence, bar)

    async def remove(self, namespace: str, catalog: Catalog, record: Record) -> bool:
        """Remove a document that is still as it was seen, then its hints.

        Not in a collection with unique constraints.
        """
        intent = self._intents.begin(namespace, catalog, record.key, REPLACES)
        try:
            await self._bucket.put(
                intent.key,
                intent.value,
                expected=intent.expected,
                expected_filter=intent.expected_filter,
            )
            removed = await self._remove(namespace, catalog, record)
        except VersionConflictError:
            removed = False
        self._intents.over(intent)
        return removed

    async def _remove(self, namespace: str, catalog: Catalog, record: Record) -> bool:
        if not await self._entries.remove(record.key, record.version):
            return False
        await self._entries.remove_all(
            hints_of(
                namespace, catalog.spec.name, record, catalog.indexes, catalog.birth
            )
        )
        return True

    async def remove_fenced(
        self, namespace: str, collection: str, sight: Sight, record: Record
    ) -> None:
        """Announce and remove a document.

        Raises:
            VersionConflictError: The collection has changed; nothing was removed.
        """
        now = datetime.now(UTC)
        key = keys.tick_key(namespace, collection)
        value = codec.encode({"key": record.key, "version": record.version}, now, now)
        revision = await self._bucket.put(
            key,
            value,
            expected=sight.fence,
            expected_filter=keys.collection_filter(namespace, collection),
        )
        await self._remove(namespace, sight.catalog, record)
        self._finished[key] = revision

    @asynccontextmanager
    async def turn(
        self, namespace: str, collection: str, *, fenced: bool = False
    ) -> AsyncIterator[None]:
        """Take turns with this process's other writers whose writes are fenced.

        They would refuse each other; right they are without it too.
        """
        if (namespace, collection) not in self._known:
            # Else all that are waiting for their first look would set out at once.
            catalog = await self._entries.catalog(namespace, collection)
            self._known.add((namespace, collection))
            if catalog is not None and catalog.unique:
                self._fenced.add((namespace, collection))
        if not fenced and (namespace, collection) not in self._fenced:
            yield
            return
        lock = self._turns.setdefault((namespace, collection), asyncio.Lock())
        try:
            async with asyncio.timeout(self._patience):
                await lock.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            lock.release()

    async def _finish(self, namespace: str, catalog: Catalog, tick: Entry) -> None:
        """Finish the removal that a tick announces.

        Its deleter has died, or is about to do the same, or has done it.
        """
        announced = codec.decode(tick.key, tick.value).data
        key, version = announced["key"], announced["version"]
        entry = (await self._entries.read_newest([key])).get(key)
        if entry is not None and entry.revision == version:
            await self._remove(namespace, catalog, decode_record(entry))
        self._finished[tick.key] = tick.revision
