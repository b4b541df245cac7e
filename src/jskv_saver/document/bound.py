"""A document store for one owner: the same primitives without the namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from jskv_saver.document.model import (
    CollectionSpec,
    Data,
    Document,
    DocumentId,
    Fence,
    Limits,
    Order,
    Page,
    Pattern,
    Predicate,
    ReadKey,
    Reads,
    Write,
)
from jskv_saver.document.names import check_namespace
from jskv_saver.document.port import DocumentStore


class BoundDocuments:
    """The documents of one namespace in a store; each method is the store's.

    It owns nothing and has no `close`: the store is closed by who opened it.

    Args:
        store: Any document store.
        namespace: The owner, for every call.

    Attributes:
        store: The store.
        namespace: The owner.

    Raises:
        InvalidRequestError: The namespace breaks a rule.
    """

    def __init__(self, store: DocumentStore, namespace: str) -> None:
        self.store = store
        self.namespace = check_namespace(namespace)

    @property
    def limits(self) -> Limits:
        """As of the store."""
        return self.store.limits

    async def ensure_collection(self, spec: CollectionSpec) -> None:
        """As of the store."""
        await self.store.ensure_collection(self.namespace, spec)

    async def drop_collection(self, name: str) -> None:
        """As of the store."""
        await self.store.drop_collection(self.namespace, name)

    async def collections(self) -> Sequence[str]:
        """As of the store."""
        return await self.store.collections(self.namespace)

    async def put(
        self,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        if_version: int | None = None,
        if_latest: Fence | None = None,
    ) -> Document:
        """As of the store."""
        return await self.store.put(
            self.namespace,
            collection,
            id,
            data,
            if_version=if_version,
            if_latest=if_latest,
        )

    async def get(self, collection: str, id: DocumentId) -> Document:
        """As of the store."""
        return await self.store.get(self.namespace, collection, id)

    async def delete(
        self,
        collection: str | Sequence[str],
        id: Pattern,
        *,
        if_version: int | None = None,
        subtree: bool = False,
        below: int | None = None,
    ) -> None:
        """As of the store."""
        await self.store.delete(
            self.namespace,
            collection,
            id,
            if_version=if_version,
            subtree=subtree,
            below=below,
        )

    async def find(
        self,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        limit: int = 100,
        cursor: str | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Page:
        """As of the store."""
        return await self.store.find(
            self.namespace,
            collection,
            where,
            order_by=order_by,
            limit=limit,
            cursor=cursor,
            within=within,
        )

    async def count(
        self,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """As of the store."""
        return await self.store.count(self.namespace, collection, where, within=within)

    async def put_many(
        self, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        """As of the store."""
        return await self.store.put_many(self.namespace, writes, exact=exact)

    async def get_many(self, reads: Reads) -> Mapping[ReadKey, Document]:
        """As of the store."""
        return await self.store.get_many(self.namespace, reads)

    async def delete_many(
        self,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """As of the store."""
        return await self.store.delete_many(
            self.namespace, collection, where, within=within
        )

    async def ids(
        self,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        """As of the store."""
        return await self.store.ids(self.namespace, collection, within=within)

    def iterate(
        self,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Document]:
        """As of the store."""
        return self.store.iterate(
            self.namespace,
            collection,
            where,
            order_by=order_by,
            within=within,
            page_size=page_size,
        )
