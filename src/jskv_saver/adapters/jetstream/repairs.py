"""Removing hints that no document has, and that none will come to have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import Entries
from jskv_saver.adapters.jetstream.indexes import Index, says
from jskv_saver.adapters.jetstream.intents import Intents
from jskv_saver.adapters.jetstream.records import decode_record


class Repairs:
    """What readers do about hints that a dead writer has left.

    Args:
        bucket: The bucket.
        entries: Its entries.
        intents: Its intents.
    """

    def __init__(self, bucket: Bucket, entries: Entries, intents: Intents) -> None:
        self._bucket = bucket
        self._entries = entries
        self._intents = intents

    async def remove(
        self,
        namespace: str,
        catalog: Catalog,
        index: Index,
        suspects: Mapping[str, str],
    ) -> None:
        """Remove those of the suspected hints that are stale for good.

        A hint is older than the document that it announces, so one without it may be
        of a writer who is under way. He is not if, after the hint was seen, there is
        no intent of his, or his fence has fallen. What the document says after that
        is final as far as this hint is concerned: nobody else uses it.

        Args:
            namespace: The owner.
            catalog: The declaration, read before the hints were listed.
            index: The index that the hints are of.
            suspects: Hints and the keys of the documents they are about.
        """
        name = catalog.spec.name
        hints = await self._entries.read_newest(list(suspects))
        declaration = await self._entries.catalog(namespace, name)
        if declaration is None or declaration.revision != catalog.revision:
            return
        if catalog.unique:
            everything = keys.collection_filter(namespace, name)
            fallen = await self._entries.newest_revision(everything)
            settled = [hint for hint in hints.values() if hint.revision < fallen]
        else:
            pending = await self._intents.pending(namespace, name)
            settled = [
                hint for hint in hints.values() if suspects[hint.key] not in pending
            ]
        wanted = {suspects[hint.key] for hint in settled}
        documents = {
            key: decode_record(entry).document.data
            for key, entry in (await self._entries.read_newest(list(wanted))).items()
        }
        await asyncio.gather(
            *(
                self._bucket.purge(hint.key, below=hint.revision + 1)
                for hint in settled
                if not says(index, hint.key, documents.get(suspects[hint.key]))
            )
        )
