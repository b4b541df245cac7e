"""A store in memory that lets others in between any two of its messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jskv_saver import MemoryDocumentStore
from jskv_saver.document.model import (
    Document,
    DocumentId,
    Pattern,
    ReadKey,
    Reads,
    Write,
)


class Interleaving(MemoryDocumentStore):
    """Lets others in between any two messages; a batch is not atomic here."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice

    async def _pause(self) -> None:
        for _ in range(self._dice.choice((0, 0, 1, 1, 2, 5))):
            await asyncio.sleep(0)

    async def put(self, *args: Any, **options: Any) -> Document:
        await self._pause()
        stored = await super().put(*args, **options)
        await self._pause()
        return stored

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        stored: list[Document] = []
        for write in writes:
            await self._pause()
            stored += await super().put_many(namespace, [write], exact=exact)
        await self._pause()
        return stored

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        found: dict[ReadKey, Document] = {}
        for read in reads:
            await self._pause()
            found |= await super().get_many(namespace, [read])
        return found

    async def find(self, *args: Any, **options: Any) -> Any:
        await self._pause()
        found = await super().find(*args, **options)
        await self._pause()
        return found

    @property
    def finds_newer(self) -> bool:
        return True

    async def newer(
        self, namespace: str, collection: str, within: Pattern, since: int
    ) -> Sequence[Document] | None:
        """As a bucket does; sometimes there are too many."""
        await self._pause()
        page = await super().find(
            namespace,
            collection,
            order_by=("@version", "asc"),
            limit=1000,
            within=within,
        )
        await self._pause()
        if self._dice.random() < 0.1:
            return None
        told = [document for document in page.items if document.version >= since]
        return told if told and told[0].version == since else None

    async def ids(self, *args: Any, **options: Any) -> Sequence[DocumentId]:
        await self._pause()
        found = await super().ids(*args, **options)
        await self._pause()
        return found

    async def delete(self, *args: Any, **options: Any) -> None:
        await self._pause()
        await super().delete(*args, **options)
        await self._pause()
