"""A store whose every message waits at a gate until the schedule lets it through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.explorer.messages import Area, Message, area, name_of

from jskv_saver import MemoryDocumentStore
from jskv_saver.document.model import (
    Document,
    DocumentId,
    Limits,
    Page,
    ReadKey,
    Reads,
    Write,
)
from jskv_saver.document.port import DocumentStore

Wait = Callable[[Message], Awaitable[Any]]

SMALL = 6144
"""Bytes of a document: two KiB are a part, so that small states have several."""


class GatedStore(MemoryDocumentStore):
    """One actor's view of a shared store.

    A batch is an ordered prefix: each of its documents is a message of its own. A
    batch of reads is one message, or, torn, one for each key in any order.
    """

    def __init__(self, inner: DocumentStore, wait: Wait, *, torn: bool = False) -> None:
        super().__init__()
        self._inner = inner
        self._wait = wait
        self._torn = torn

    @property
    def limits(self) -> Limits:
        return Limits(data=SMALL)

    async def put(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Any,
        *,
        if_version: int | None = None,
        if_latest: Any = None,
    ) -> Document:
        condition = if_latest if if_version is None else if_version
        (stored,) = await self.put_many(namespace, [(collection, id, data, condition)])
        return stored

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        batch: tuple[Message, ...] = ()
        for write in reversed(list(writes)):
            batch = (self._put_message(namespace, write, batch), *batch)
        stored: list[Document] = [(await self._wait(each))[0] for each in batch]
        if exact:
            return stored
        return [*(replace(each, version=0) for each in stored[:-1]), *stored[-1:]]

    def _put_message(
        self, namespace: str, write: Write, rest: tuple[Message, ...]
    ) -> Message:
        collection, id, data, condition = write
        reads: tuple[Area, ...] = ()
        conditions: tuple[int, ...] = ()
        if isinstance(condition, int):
            reads, conditions = (area(collection, id),), (condition,)
        elif condition is not None:
            prefix, version = condition
            reads = (area(collection, prefix, deep=True),)
            conditions = (version,)
        return Message(
            f"put {name_of(collection, id)}",
            lambda: self._inner.put_many(namespace, [write]),
            reads=reads,
            puts=(area(collection, id),),
            conditions=conditions,
            data=sorted(data.items()),
            rest=rest,
        )

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        found: Document = await self._wait(
            Message(
                f"get {name_of(collection, id)}",
                lambda: self._inner.get(namespace, collection, id),
                reads=(area(collection, id),),
            )
        )
        return found

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        wanted = list(reads)
        found: dict[ReadKey, Document] = {}
        for group in [[each] for each in wanted] if self._torn else [wanted]:
            found |= await self._wait(
                Message(
                    "get " + " ".join(name_of(*each) for each in group),
                    lambda group=group: self._inner.get_many(namespace, group),  # type: ignore[misc]
                    reads=tuple(area(*each) for each in group),
                )
            )
        return found

    async def find(
        self, namespace: str, collection: Any, *args: Any, **how: Any
    ) -> Page:
        within = how["within"]
        page: Page = await self._wait(
            Message(
                f"last {name_of(collection, within)}",
                lambda: self._inner.find(namespace, collection, *args, **how),
                reads=(area(collection, within, deep=True),),
            )
        )
        return page

    async def ids(
        self, namespace: str, collection: str, *, within: Any = None
    ) -> Sequence[DocumentId]:
        found: Sequence[DocumentId] = await self._wait(
            Message(
                f"ids {name_of(collection, within)}",
                lambda: self._inner.ids(namespace, collection, within=within),
                reads=(area(collection, within, deep=True),),
            )
        )
        return found

    async def delete(
        self,
        namespace: str,
        collection: Any,
        id: Any,
        *,
        if_version: int | None = None,
        subtree: bool = False,
        below: int | None = None,
    ) -> None:
        names = collection if isinstance(collection, str) else "*"
        await self._wait(
            Message(
                f"purge {name_of(names, id)}{'/>' if subtree else ''}",
                lambda: self._inner.delete(
                    namespace,
                    collection,
                    id,
                    if_version=if_version,
                    subtree=subtree,
                    below=below,
                ),
                purges=(area(collection, id, deep=subtree),),
                conditions=() if below is None else (below,),
            )
        )
