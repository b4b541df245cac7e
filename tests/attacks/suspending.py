"""A store in memory that lets others in between any two messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from jskv_saver import MemoryDocumentStore
from jskv_saver.document.model import Document, DocumentId, ReadKey, Reads, Write

T = TypeVar("T")


async def _around(call: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
    await asyncio.sleep(0)
    result = await call(*args, **options)
    await asyncio.sleep(0)
    return result


class Suspending(MemoryDocumentStore):
    """Suspends before and after each message, as a server far away makes one do.

    A batch is stored one by one: a prefix at any time.
    """

    async def put(self, *args: Any, **options: Any) -> Document:
        return await _around(super().put, *args, **options)

    async def get(self, *args: Any) -> Document:
        return await _around(super().get, *args)

    async def delete(self, *args: Any, **options: Any) -> None:
        await _around(super().delete, *args, **options)

    async def find(self, *args: Any, **options: Any) -> Any:
        return await _around(super().find, *args, **options)

    async def ids(self, *args: Any, **options: Any) -> Sequence[DocumentId]:
        return await _around(super().ids, *args, **options)

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        return await _around(super().get_many, namespace, reads)

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        stored: list[Document] = []
        for write in writes:
            await asyncio.sleep(0)
            stored += await super().put_many(namespace, [write], exact=exact)
        await asyncio.sleep(0)
        return stored
