"""Documents in dicts: the port's reference behaviour, and a store for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from types import TracebackType
from weakref import WeakSet

from jskv_saver.adapters.memory.changes import MemoryChanges
from jskv_saver.adapters.memory.collection import Collection
from jskv_saver.adapters.memory.expiry import Expirations
from jskv_saver.document import paging, requests
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.declarations import merge, parse_spec
from jskv_saver.document.model import (
    Change,
    CollectionSpec,
    Data,
    Document,
    DocumentId,
    Fence,
    Limits,
    Order,
    Page,
    Path,
    Pattern,
    Predicate,
    ReadKey,
    Reads,
    Write,
    id_of,
    path_of,
)
from jskv_saver.document.names import (
    RESERVED_COLLECTIONS,
    check_collection,
    check_declarable,
    check_namespace,
    is_exact,
    is_reserved,
    parse_prefixes,
)
from jskv_saver.document.port import Changes
from jskv_saver.document.query import Query
from jskv_saver.document.requests import DeleteRequest, PutRequest
from jskv_saver.document.values import copy_data, estimated_size
from jskv_saver.errors import (
    CollectionNotFoundError,
    DocumentNotFoundError,
    DocumentTooLargeError,
    StoreClosedError,
)


class MemoryDocumentStore:
    """A document store that lives and dies with its process.

    Nothing in it belongs to an event loop: any loop and any thread may use it, also
    several at a time. It needs no opening; `async with` closes it.

    Args:
        max_document_bytes: Refuse data that would be larger than this when encoded.
    """

    def __init__(self, *, max_document_bytes: int = 1_000_000) -> None:
        self._limits = Limits(data=max_document_bytes)
        self._collections: dict[tuple[str, str], Collection] = {}
        self._version = 0
        self._closed = False
        self._followed: WeakSet[MemoryChanges] = WeakSet()
        self._expirations = Expirations()
        # Held within one operation only, never across an await.
        self._lock = Lock()

    async def __aenter__(self) -> MemoryDocumentStore:
        self._check_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def bind(self, namespace: str) -> BoundDocuments:
        """The same primitives without the namespace argument."""
        return BoundDocuments(self, namespace)

    @property
    def limits(self) -> Limits:
        return self._limits

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        self._check_open()
        check_namespace(namespace)
        added = parse_spec(spec)
        key = namespace, added.name
        with self._lock:
            present = self._collections.get(key)
            if present is None:
                self._collections[key] = Collection(merge(None, added))
            else:
                present.extend(merge(present.spec, added))

    async def drop_collection(self, namespace: str, name: str) -> None:
        self._check_open()
        check_namespace(namespace)
        check_declarable(name)
        with self._lock:
            self._collection(namespace, name)
            del self._collections[namespace, name]

    async def collections(self, namespace: str) -> Sequence[str]:
        self._check_open()
        check_namespace(namespace)
        with self._lock:
            return sorted(
                name
                for owner, name in self._collections
                if owner == namespace and not is_reserved(name)
            )

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
        self._check_open()
        request = requests.check_put(
            namespace, collection, id, data, if_version, if_latest
        )
        with self._lock:
            return _copied(self._put(namespace, request))

    async def put_expiring(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        ttl: float,
        if_version: int | None = None,
    ) -> Document:
        self._check_open()
        request = requests.check_put_expiring(
            namespace, collection, id, data, ttl, if_version
        )
        with self._lock:
            stored = self._put(namespace, request)
            document = (namespace, collection, request.path, stored.version)
            self._expirations.add(document, ttl)
            return _copied(stored)

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        self._check_open()
        path = requests.check_get(namespace, collection, id)
        with self._lock:
            document = self._collection(namespace, collection).documents.get(path)
        if document is None:
            raise DocumentNotFoundError(
                f"no document {id_of(path)!r} in {collection!r}",
                collection=collection,
                id=id_of(path),
            )
        return _copied(document)

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
        self._check_open()
        request = requests.check_delete(
            namespace, collection, id, if_version, subtree, below
        )
        with self._lock:
            found = [self._collection(namespace, name) for name in request.collections]
            removed = sum([each.delete(request) for each in found])
            if removed and len(found) == len(RESERVED_COLLECTIONS):
                self._tell_removal(namespace, request)

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
        self._check_open()
        query = Query.parse(
            namespace, collection, where, order_by, limit, cursor, within
        )
        with self._lock:
            matching = self._collection(namespace, collection).matching(query)
            page = query.page(matching if query.by_id else query.sort(matching))
        return Page(tuple(map(_copied, page.items)), page.cursor)

    async def count(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        self._check_open()
        query = Query.parse(namespace, collection, where, within=within)
        with self._lock:
            found = self._collection(namespace, collection)
            return sum(1 for _ in found.matching(query))

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        self._check_open()
        parsed = requests.check_put_many(namespace, writes)
        with self._lock:
            return [_copied(self._put(namespace, request)) for request in parsed]

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        self._check_open()
        parsed = requests.check_get_many(namespace, reads)
        with self._lock:
            found = [
                (name, document)
                for name, pattern in parsed
                for document in self._collection(namespace, name).fitting(pattern)
            ]
        return {(name, document.id): _copied(document) for name, document in found}

    async def delete_many(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        self._check_open()
        query = Query.parse(namespace, collection, where, within=within)
        with self._lock:
            found = self._collection(namespace, collection)
            doomed = [path_of(document.id) for document in found.matching(query)]
            found.remove(doomed)
        return len(doomed)

    async def ids(
        self,
        namespace: str,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        self._check_open()
        check_namespace(namespace)
        check_collection(collection)
        prefixes = parse_prefixes(within)
        with self._lock:
            found = self._collection(namespace, collection)
            return [id_of(path) for path in found.within(prefixes)]

    def iterate(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Document]:
        return paging.iterate(
            self.find,
            namespace,
            collection,
            where,
            order_by=order_by,
            within=within,
            page_size=page_size,
        )

    def changes(
        self,
        namespace: str | None,
        reads: Reads,
        *,
        removals: Sequence[Pattern] = (),
        after: int | None = None,
    ) -> Changes:
        self._check_open()
        parsed, gone = requests.check_changes(namespace, reads, removals, after)
        return MemoryChanges(self, namespace, parsed, gone, after)

    async def close(self) -> None:
        self._closed = True
        with self._lock:
            for changes in list(self._followed):
                changes.end()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the document store was closed")

    def _expire(self) -> None:
        """Remove what has expired and was not put again since."""
        for namespace, name, path, version in self._expirations.due():
            held = self._collections.get((namespace, name))
            document = held.documents.get(path) if held else None
            if held and document and document.version == version:
                held.remove([path])

    def _collection(self, namespace: str, name: str) -> Collection:
        self._expire()
        found = self._collections.get((namespace, name))
        if found is not None:
            return found
        if not is_reserved(name):
            raise CollectionNotFoundError(
                f"no collection {name!r} in {namespace!r}: declare it first",
                namespace=namespace,
                collection=name,
            )
        return self._collections.setdefault((namespace, name), Collection())

    def _put(self, namespace: str, request: PutRequest) -> Document:
        collection = self._collection(namespace, request.collection)
        size, limit = estimated_size(request.data), self._limits.data
        if size > limit:
            raise DocumentTooLargeError(
                f"the document has {size} bytes, more than {limit}",
                size=size,
                limit=limit,
            )
        replaced = collection.admit(request)
        now = datetime.now(UTC)
        kept = (
            replaced is not None
            and request.keeps_creation
            and not is_reserved(request.collection)
        )
        self._version += 1
        document = Document(
            id_of(request.path),
            request.data,
            self._version,
            replaced.created_at if replaced is not None and kept else now,
            now,
        )
        collection.store(request.path, document)
        if self._followed:
            self._tell(namespace, request.collection, request.path, document)
        return document

    def _tell(
        self, namespace: str, collection: str, path: Path, document: Document | None
    ) -> None:
        now = datetime.now(UTC) if document is None else document.updated_at
        change = Change(
            namespace, collection, id_of(path), self._version, now, document
        )
        for changes in list(self._followed):
            changes.take(change, path)

    def _tell_removal(self, namespace: str, request: DeleteRequest) -> None:
        prefix = request.prefix
        if self._followed and request.below is None and is_exact(prefix):
            self._version += 1
            self._tell(namespace, "", prefix, None)


def _copied(document: Document) -> Document:
    return Document(
        document.id,
        copy_data(document.data),
        document.version,
        document.created_at,
        document.updated_at,
    )
