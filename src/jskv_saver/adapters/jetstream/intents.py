"""Writes under way, announced so that a change of the declaration can end them.

A write into a collection without unique constraints is held to the version that it
replaces, and that says nothing about the declaration; one message carries one
condition. Therefore its first message is an *intent*, which the server takes only
while the declaration is the one that the writer read:

    ix.//<ns>.<collection>.<slot>

It names the document. A slot is one writer's own, and is written again by its next
write, not removed: that would cost more than the intent itself.

So whoever has changed the declaration finds, among the intents that are older than the
change, all writes under the former one that may still arrive: late, or never, their
writer being slow, stopped or dead. It *ends* them, so that they do nothing whenever
they arrive:

- what replaces a version: that version is written again, as it is;
- what creates: a *bar*, `<collection>./<ns>.b.<path…>`, moves what is newest under
  `<collection>./<ns>.*.<path…>`, to which a creation is held. It stays, for what it
  bars may arrive at any time; later creations are held to the bar's revision.

Where there is a unique constraint every write is fenced on all of the collection, the
declaration included, and needs no intent.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Final

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Entry, Put
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import Entries
from jskv_saver.errors import VersionConflictError

CREATES: Final = b"0"
REPLACES: Final = b"1"
FENCED: Final = b"2"
"""Of a write that is fenced on all of the collection: it is ended by the change."""

_BAR: Final = b"1"
_AT_ONCE: Final = 16


class Intents:
    """The intents of a bucket.

    Args:
        bucket: The bucket.
        entries: Its entries.
    """

    def __init__(self, bucket: Bucket, entries: Entries) -> None:
        self._bucket = bucket
        self._entries = entries
        self._free: dict[str, list[str]] = {}

    def begin(
        self, namespace: str, catalog: Catalog, document: str, kind: bytes
    ) -> Put:
        """The first message of a write to the document with this key."""
        declaration = keys.catalog_key(namespace, catalog.spec.name)
        free = self._free.get(declaration)
        name = catalog.spec.name
        return Put(
            free.pop() if free else keys.intent_key(namespace, name, token_hex(6)),
            kind + document.encode(),
            catalog.revision,
            declaration,
        )

    def over(self, intent: Put) -> None:
        """The write has an outcome: its slot may be used again."""
        declaration = intent.expected_filter
        assert declaration is not None
        self._free.setdefault(declaration, []).append(intent.key)

    async def clear(self) -> None:
        """Remove the slots that are free, for nobody will use them again."""
        slots = [slot for free in self._free.values() for slot in free]
        self._free = {}
        if slots and self._bucket.client.is_connected:
            await self._entries.remove_all(slots)

    async def pending(self, namespace: str, collection: str) -> set[str]:
        """The keys of all documents that writes may be under way to."""
        return {
            intent.value[1:].decode()
            for intent in await self._all(namespace, collection)
        }

    async def end(
        self, namespace: str, collection: str, before: int, *, replacing: bool = True
    ) -> None:
        """End the writes that were begun before a revision of the catalog entry.

        Args:
            namespace: The owner.
            collection: The collection.
            before: The revision.
            replacing: Also those that replace a version; else all versions go anyway.
        """
        found = await self._all(namespace, collection)
        old = [intent for intent in found if intent.revision < before]
        for start in range(0, len(old), _AT_ONCE):
            await asyncio.gather(
                *(self._end(each, replacing) for each in old[start : start + _AT_ONCE])
            )

    async def _all(self, namespace: str, collection: str) -> list[Entry]:
        names = await self._bucket.names([keys.intent_filter(namespace, collection)])
        return list((await self._entries.read_newest(names)).values())

    async def _end(self, intent: Entry, replacing: bool) -> None:
        kind, key = intent.value[:1], intent.value[1:].decode()
        if kind == CREATES:
            await self._bar(key)
        elif kind == REPLACES and replacing:
            await self._write_again(key, intent.revision)
        await self._bucket.purge(intent.key, below=intent.revision + 1)

    async def _bar(self, key: str) -> None:
        """Move what is newest under a document's key and its bar's."""
        filter = keys.bar_filter(key)
        while True:
            newest = await self._entries.newest_revision(filter)
            try:
                await self._bucket.put(
                    keys.bar_key(key), _BAR, expected=newest, expected_filter=filter
                )
                return
            except VersionConflictError:
                # It has been written, barred or removed in between.
                continue

    async def _write_again(self, key: str, before: int) -> None:
        """Give a document a new version, unless it has changed since a revision."""
        entry = (await self._entries.read_newest([key])).get(key)
        if entry is None or entry.revision > before:
            return
        try:
            await self._bucket.put(key, entry.value, expected=entry.revision)
        except VersionConflictError:
            # Replaced or removed: in any case the version is gone.
            return
