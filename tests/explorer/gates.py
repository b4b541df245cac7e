"""A store whose every message waits at a gate until the schedule lets it through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.explorer.messages import Area, Message, area, name_of
from tests.explorer.sizes import DOCUMENT

from jskv_saver import MemoryDocumentStore
from jskv_saver.document.model import (
    Condition,
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
        return Limits(data=DOCUMENT)

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

    async def put_expiring(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Any,
        *,
        ttl: float,
        if_version: int | None = None,
    ) -> Document:
        """It expires when somebody of the scenario says so."""
        return await self.put(namespace, collection, id, data, if_version=if_version)

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        batch: tuple[Message, ...] = ()
        for write in reversed(list(writes)):
            batch = (self._put_message(namespace, write, batch), *batch)
        stored: list[Document] = []
        for each in batch:
            (document,) = await self._wait(each)
            last = each is batch[-1]
            stored.append(document if exact or last else replace(document, version=0))
        return stored

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

        def act(store: DocumentStore, message: Message) -> Awaitable[Any]:
            held: Condition = None
            if isinstance(condition, int):
                (held,) = message.conditions
            elif condition is not None:
                held = condition[0], message.conditions[0]
            assert message.data is not None
            return store.put_many(namespace, [(collection, id, message.data, held)])

        return Message(
            f"put {name_of(collection, id)}",
            act,
            self._inner,
            reads=reads,
            puts=(area(collection, id),),
            conditions=conditions,
            data=dict(data),
            rest=rest,
        )

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        found: Document = await self._wait(
            Message(
                f"get {name_of(collection, id)}",
                lambda store, _: store.get(namespace, collection, id),
                self._inner,
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
                    lambda store, _, group=group: store.get_many(  # type: ignore[misc]
                        namespace, group
                    ),
                    self._inner,
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
                lambda store, _: store.find(namespace, collection, *args, **how),
                self._inner,
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
                lambda store, _: store.ids(namespace, collection, within=within),
                self._inner,
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
        assert if_version is None, "savers purge what is below a version"
        names = collection if isinstance(collection, str) else "*"
        await self._wait(
            Message(
                f"purge {name_of(names, id)}{'/>' if subtree else ''}",
                lambda store, message: store.delete(
                    namespace,
                    collection,
                    id,
                    subtree=subtree,
                    below=message.conditions[0] if message.conditions else None,
                ),
                self._inner,
                purges=(area(collection, id, deep=subtree),),
                conditions=() if below is None else (below,),
            )
        )
