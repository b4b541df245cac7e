"""A document store that encrypts what it is given and decrypts what it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import ormsgpack

from jskv_saver.checkpoint.encryption import Encryption, encoded, owner_of
from jskv_saver.checkpoint.envelope import (
    OVERHEAD,
    SEALED,
    VARIABLE,
    envelope_of,
    is_sealed,
)
from jskv_saver.checkpoint.layout import key_of
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
    path_of,
)
from jskv_saver.document.port import DocumentStore
from jskv_saver.document.values import check_data
from jskv_saver.errors import (
    CorruptDocumentError,
    EncryptionError,
    InvalidRequestError,
)

_TIMES: Final = ormsgpack.OPT_DATETIME_AS_TIMESTAMP_EXT


class SealedStore:
    """A document store over another one, which sees no field of any document.

    Each document is encrypted with the key of its thread, and authenticated together
    with its collection, namespace and id: moved to another id it is refused. Ids,
    versions, times and sizes are the other store's, and so is every failure.

    Fields cannot be searched: whoever searches does so on what was read.

    Attributes:
        store: Where the documents go.
        encryption: The keys.
    """

    def __init__(self, store: DocumentStore, encryption: Encryption) -> None:
        self.store = store
        self.encryption = encryption

    @property
    def limits(self) -> Limits:
        """As of the store, less what encryption adds."""
        return Limits(data=self.store.limits.data - OVERHEAD)

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        """As of the store."""
        await self.store.ensure_collection(namespace, spec)

    async def drop_collection(self, namespace: str, name: str) -> None:
        """As of the store."""
        await self.store.drop_collection(namespace, name)

    async def collections(self, namespace: str) -> Sequence[str]:
        """As of the store."""
        return await self.store.collections(namespace)

    async def put(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        if_version: int | None = None,
        if_latest: Fence | None = None,
    ) -> Document:
        """As of the store, encrypted."""
        data = check_data(data)
        stored = await self.store.put(
            namespace,
            collection,
            id,
            self.sealed(namespace, collection, id, data),
            if_version=if_version,
            if_latest=if_latest,
        )
        return _with(stored, data)

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        """As of the store, decrypted."""
        found = await self.store.get(namespace, collection, id)
        return self.opened(namespace, collection, found)

    async def delete(
        self,
        namespace: str,
        collection: str | Sequence[str],
        id: Pattern,
        *,
        if_version: int | None = None,
        subtree: bool = False,
        below: int | None = None,
    ) -> None:
        """As of the store."""
        await self.store.delete(
            namespace,
            collection,
            id,
            if_version=if_version,
            subtree=subtree,
            below=below,
        )

    async def find(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        limit: int = 100,
        cursor: str | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Page:
        """As of the store, decrypted; without predicates."""
        page = await self.store.find(
            namespace,
            collection,
            _no_fields(where, order_by),
            order_by=order_by,
            limit=limit,
            cursor=cursor,
            within=within,
        )
        items = [self.opened(namespace, collection, found) for found in page.items]
        return Page(tuple(items), page.cursor)

    async def count(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """As of the store; without predicates."""
        return await self.store.count(
            namespace, collection, _no_fields(where), within=within
        )

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        """As of the store, encrypted."""
        sealed: list[Write] = []
        given: list[dict[str, Any]] = []
        for collection, id, data, condition in writes:
            given.append(check_data(data))
            document = self.sealed(namespace, collection, id, given[-1])
            sealed.append((collection, id, document, condition))
        stored = await self.store.put_many(namespace, sealed, exact=exact)
        return [_with(each, data) for each, data in zip(stored, given, strict=True)]

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        """As of the store, decrypted."""
        found = await self.store.get_many(namespace, reads)
        return {
            (collection, id): self.opened(namespace, collection, document)
            for (collection, id), document in found.items()
        }

    async def delete_many(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """As of the store; without predicates."""
        return await self.store.delete_many(
            namespace, collection, _no_fields(where), within=within
        )

    async def ids(
        self,
        namespace: str,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        """As of the store."""
        return await self.store.ids(namespace, collection, within=within)

    async def iterate(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Document]:
        """As of the store, decrypted; without predicates."""
        async for found in self.store.iterate(
            namespace,
            collection,
            _no_fields(where, order_by),
            order_by=order_by,
            within=within,
            page_size=page_size,
        ):
            yield self.opened(namespace, collection, found)

    async def close(self) -> None:
        """As of the store."""
        await self.store.close()

    def sealed(
        self, namespace: str, collection: str, id: DocumentId, data: dict[str, Any]
    ) -> dict[str, Any]:
        """The fields of a document, checked already, as they are stored."""
        path = path_of(id)
        return {
            SEALED: self.encryption.seal(
                encoded((collection, namespace, *path)),
                owner_of(namespace, path),
                ormsgpack.packb(data, option=_TIMES),
            )
        }

    def opened(self, namespace: str, collection: str, stored: Document) -> Document:
        """A document as it was given.

        Raises:
            EncryptionError: It is not encrypted, or with another key.
            CorruptDocumentError: It is not what was written under this id.
            UnsupportedFormatError: A newer release wrote it.
        """
        key = key_of(collection, stored.id)
        if not is_sealed(stored.data):
            if self.encryption.accept_plaintext:
                return stored
            raise EncryptionError(
                f"{key!r} is not encrypted, and a key was given: it is refused, for "
                "anybody may have put it there. Read it without encryption= (or "
                f"{VARIABLE}), or move to encryption with accept_plaintext=True",
                key=key,
            )
        path = path_of(stored.id)
        content = self.encryption.open(
            envelope_of(stored.data, key),
            encoded((collection, namespace, *path)),
            owner_of(namespace, path),
            key,
        )
        try:
            data = ormsgpack.unpackb(content, option=_TIMES)
        except ValueError as exc:
            raise CorruptDocumentError(
                f"what {key!r} holds, decrypted, is no document", key=key
            ) from exc
        return _with(stored, data)


def _with(stored: Document, data: dict[str, Any]) -> Document:
    return Document(
        stored.id, data, stored.version, stored.created_at, stored.updated_at
    )


def _no_fields(
    where: Iterable[Predicate], order_by: Order | None = None
) -> Sequence[Predicate]:
    if where := list(where):
        raise InvalidRequestError(
            f"encrypted fields cannot be searched: {where[0][0]!r}"
        )
    if order_by is not None and order_by[0] != "@version":
        raise InvalidRequestError(f"encrypted fields have no order: {order_by[0]!r}")
    return ()
