"""The document port on a JetStream KV bucket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from types import TracebackType
from typing import Any, Final, NoReturn

from nats.aio.client import Client

from jskv_saver._nats.connection import loop_of
from jskv_saver._nats.settings import CONNECT_OPTIONS
from jskv_saver._portal import Portal
from jskv_saver.adapters.jetstream import codec, keys
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.changes import BucketChanges
from jskv_saver.adapters.jetstream.checking import Checking
from jskv_saver.adapters.jetstream.declarations import Declarations
from jskv_saver.adapters.jetstream.declared import DeclaredPuts
from jskv_saver.adapters.jetstream.deletes import DeclaredDeletes
from jskv_saver.adapters.jetstream.entries import Entries
from jskv_saver.adapters.jetstream.fences import Fences
from jskv_saver.adapters.jetstream.intents import Intents
from jskv_saver.adapters.jetstream.options import DEFAULT_BUCKET, parse_options
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.adapters.jetstream.repairs import Repairs
from jskv_saver.adapters.jetstream.reserved import ReservedWrites
from jskv_saver.adapters.jetstream.upkeep import StoreUpkeep
from jskv_saver.document import paging, requests
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.declarations import parse_spec
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
    id_of,
)
from jskv_saver.document.names import check_declarable, check_namespace, is_reserved
from jskv_saver.document.port import Changes
from jskv_saver.document.query import Query
from jskv_saver.document.requests import DeleteRequest, PutRequest
from jskv_saver.errors import JskvError, StoreClosedError

_RESERVE: Final = 2048
"""Bytes of a value kept free for what a document carries beside its data."""


class JetStreamDocumentStore(StoreUpkeep):
    """A document store in a JetStream KV bucket.

    It connects, and makes or binds the bucket, on first use. Entered with `async
    with`, or made over a client, it lives on that event loop; else on a loop of its
    own, in a thread. Either way any loop may call it.

    Args:
        nc: A connected nats-py client. It stays open when the store is closed.
        bucket: Name of the bucket.
        **options: Of a bucket that has to be made, see `BucketOptions`.
    """

    def __init__(
        self, nc: Client, bucket: str = DEFAULT_BUCKET, **options: Any
    ) -> None:
        settings, _ = parse_options(options)
        self._assemble(
            Bucket(nc, bucket, settings), Portal(loop_of(nc)), settings.timeout
        )

    @classmethod
    def from_conn_string(
        cls,
        url: str | Sequence[str] | None = None,
        *,
        bucket: str = DEFAULT_BUCKET,
        **options: Any,
    ) -> JetStreamDocumentStore:
        """A store with a connection of its own, made on first use.

        Args:
            url: Of one or several servers; None: `NATS_URL`, the current NATS
                context, or localhost.
            bucket: Name of the bucket.
            **options: Fields of `BucketOptions`; all others go to `nats.connect`.
        """
        settings, connect = parse_options(options, CONNECT_OPTIONS)
        store = cls.__new__(cls)
        store._assemble(
            Bucket(url, bucket, settings, connect=connect), Portal(), settings.timeout
        )
        return store

    def _assemble(self, bucket: Bucket, portal: Portal, patience: float) -> None:
        self._portal = portal
        self._bucket = bucket
        # Until they are closed: their consumers are removed with the store.
        self._followed: set[BucketChanges] = set()
        entries = self._entries = Entries(bucket)
        intents = self._intents = Intents(bucket, entries)
        repairs = Repairs(bucket, entries, intents)
        self._reading = Reading(bucket, entries, repairs)
        self._reserved = ReservedWrites(bucket, entries, patience)
        fences = Fences(bucket, entries, intents, patience)
        shared = (bucket, entries, self._reading)
        self._deletes = DeclaredDeletes(*shared, fences, patience)
        self._puts = DeclaredPuts(*shared, fences, intents, patience)
        self._declarations = Declarations(*shared, intents, patience)
        self._checking = Checking(bucket, entries, repairs, self._declarations)

    def __copy__(self) -> JetStreamDocumentStore:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> JetStreamDocumentStore:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a JetStreamDocumentStore holds a connection and cannot be pickled: make "
            "one in the process that needs it, with the same arguments"
        )

    async def __aenter__(self) -> JetStreamDocumentStore:
        self._portal.bind()
        try:
            await self.setup()
        except BaseException:
            await self.close()
            raise
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
    def portal(self) -> Portal:
        """Where it lives; what is built on it may live there as well."""
        return self._portal

    @property
    def next_version(self) -> int | None:
        """What the next write gets if nobody else writes before; None: not known."""
        return self._bucket.next_revision

    @property
    def limits(self) -> Limits:
        room = self._bucket.max_value("x" * keys.KEY_LIMIT)
        return Limits(data=max(room - codec.OVERHEAD - _RESERVE, 0))

    async def setup(self) -> None:
        """Connect, and make or bind the bucket. Idempotent."""
        await self._portal.arun(self._bucket.open)

    async def namespaces(self) -> Sequence[str]:
        """The owners of threads in the bucket, sorted: the names of `th` keys.

        One whose name is a digest in the key (over 512 encoded bytes, some 85
        characters outside ASCII) is not among them.
        """
        found = await self._portal.arun(self._bucket.names, [keys.owners_filter()])
        return sorted(keys.owners(found))

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        check_namespace(namespace)
        parsed = parse_spec(spec)
        await self._portal.arun(self._declarations.ensure, namespace, parsed)

    async def drop_collection(self, namespace: str, name: str) -> None:
        check_namespace(namespace)
        check_declarable(name)
        await self._portal.arun(self._declarations.drop, namespace, name)

    async def collections(self, namespace: str) -> Sequence[str]:
        check_namespace(namespace)
        return await self._portal.arun(self._declarations.names, namespace)

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
        request = requests.check_put(
            namespace, collection, id, data, if_version, if_latest
        )
        writes = self._reserved if is_reserved(collection) else self._puts
        return await self._portal.arun(writes.put, namespace, request)

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
        request = requests.check_put_expiring(
            namespace, collection, id, data, ttl, if_version
        )
        return await self._portal.arun(self._reserved.put, namespace, request, ttl)

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        path = requests.check_get(namespace, collection, id)
        return await self._portal.arun(self._reading.get, namespace, collection, path)

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
        request = requests.check_delete(
            namespace, collection, id, if_version, subtree, below
        )
        await self._portal.arun(self._delete, namespace, request)

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
        query = Query.parse(
            namespace, collection, where, order_by, limit, cursor, within
        )
        return await self._portal.arun(self._reading.find, query)

    async def count(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        query = Query.parse(namespace, collection, where, within=within)
        return await self._portal.arun(self._reading.count, query)

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        parsed = requests.check_put_many(namespace, writes)
        return await self._portal.arun(self._put_many, namespace, parsed, exact)

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        parsed = requests.check_get_many(namespace, reads)
        return await self._portal.arun(self._reading.get_many, namespace, parsed)

    async def delete_many(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        query = Query.parse(namespace, collection, where, within=within)
        return await self._portal.arun(self._delete_many, query)

    async def ids(
        self,
        namespace: str,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        query = Query.parse(namespace, collection, within=within)
        paths = await self._portal.arun(self._reading.ids, query)
        return list(map(id_of, paths))

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
        parsed, gone = requests.check_changes(namespace, reads, removals, after)
        return BucketChanges(
            self._portal,
            self._bucket,
            namespace,
            parsed,
            gone,
            after,
            self._followed,
        )

    async def close(self) -> None:
        """Close the own connection, or leave the caller's client open. Idempotent."""
        if self._portal.closed:
            return
        try:
            await self.release()
        except StoreClosedError:
            # Another call may close it at the same time, and be first.
            if not self._portal.closed:
                raise
        self._portal.close()

    async def release(self) -> None:
        """As `close`, for one who lives on the same portal and closes that himself."""
        await self._portal.arun(self._release)

    async def _release(self) -> None:
        with suppress(JskvError):
            # Small, harmless, and removed with the next change of the declaration.
            await self._intents.clear()
        for changes in list(self._followed):
            await changes.end()
        await self._bucket.close()

    async def _put_many(
        self, namespace: str, parsed: Sequence[PutRequest], exact: bool
    ) -> list[Document]:
        if all(is_reserved(each.collection) for each in parsed):
            return await self._reserved.put_many(namespace, parsed, exact=exact)
        stored: list[Document] = []
        for reserved, run in groupby(parsed, lambda each: is_reserved(each.collection)):
            if reserved:
                stored += await self._reserved.put_many(
                    namespace, list(run), exact=exact
                )
            else:
                for request in run:
                    stored.append(await self._puts.put(namespace, request))
        return stored

    async def _delete(self, namespace: str, request: DeleteRequest) -> None:
        declared = [name for name in request.collections if not is_reserved(name)]
        if declared:
            # All are looked up before anything is removed.
            catalogs = await self._entries.catalogs(namespace, declared)
            await self._deletes.delete(namespace, request, catalogs)
        await self._reserved.delete(namespace, request)

    async def _delete_many(self, query: Query) -> int:
        return await self._deletes.remove_seen(
            query.namespace, query.collection, self._reading.matching(query)
        )
