"""The document port over NATS request and reply: for programs without bucket rights."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from math import isfinite
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from nats.aio.client import Client

from jskv_saver._nats.connection import Connection, loop_of
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.settings import CONNECT_OPTIONS
from jskv_saver._portal import Portal
from jskv_saver.adapters.wire.calls import Calls
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
)
from jskv_saver.document.names import check_declarable, check_namespace, shown
from jskv_saver.document.query import Query
from jskv_saver.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    StoreClosedError,
)

DEFAULT_TIMEOUT: Final = 5.0


class RemoteDocumentStore:
    """A document store that asks a `DocumentService`.

    Its answers, errors and their texts are those of the store behind the service. No
    call is repeated by itself: a read without an answer raises
    `StoreUnavailableError`, a write without one `UnknownOutcomeError`.

    It connects on first use. Entered with `async with`, or made over a client, it
    lives on that event loop; else on a loop of its own, in a thread. Either way any
    loop may call it. Closing it closes its own transport, never the service.

    Args:
        nc: A connected nats-py client. It stays open when the store is closed.
        namespace: Refuse calls for any other one; None: all are allowed.
        timeout: Seconds that one call may take; the service is told and gives up.

    Raises:
        InvalidRequestError: An argument has no legal value.
    """

    def __init__(
        self,
        nc: Client,
        *,
        namespace: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        portal = Portal(loop_of(nc))
        self._assemble(Connection(nc), portal, namespace, timeout)

    @classmethod
    def from_conn_string(
        cls,
        url: str | Sequence[str] | None = None,
        *,
        namespace: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        **options: Any,
    ) -> RemoteDocumentStore:
        """A store with a connection of its own, made on first use.

        Args:
            url: Of one or several servers; None: `NATS_URL`, the current NATS
                context, or localhost.
            namespace: Refuse calls for any other one; None: all are allowed.
            timeout: Seconds that one call may take.
            **options: Of `nats.connect`, such as `inbox_prefix`.

        Raises:
            InvalidRequestError: An argument has no legal value.
        """
        if unknown := sorted(options.keys() - CONNECT_OPTIONS):
            raise InvalidRequestError(f"there is no option {unknown}")
        store = cls.__new__(cls)
        connection = Connection(
            url, options, role="remote", on_change=lambda: store._look_around()
        )
        store._assemble(connection, Portal(), namespace, timeout)
        return store

    def _assemble(
        self,
        connection: Connection,
        portal: Portal,
        namespace: str | None,
        timeout: float,
    ) -> None:
        if type(timeout) not in (int, float) or not (timeout > 0 and isfinite(timeout)):
            raise InvalidRequestError(
                f"timeout has to be a number of seconds above 0, not {timeout!r}"
            )
        self._namespace = None if namespace is None else check_namespace(namespace)
        self._portal = portal
        self._requests = Requests(connection, timeout=timeout)
        self._calls = Calls(self._requests)

    def _look_around(self) -> None:
        self._requests.look_around()

    def __copy__(self) -> RemoteDocumentStore:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RemoteDocumentStore:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a RemoteDocumentStore holds a connection and cannot be pickled: make one "
            "in the process that needs it, with the same arguments"
        )

    async def __aenter__(self) -> Self:
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
        """The same primitives without the namespace argument.

        Raises:
            PermissionDeniedError: The store is bound to another one.
        """
        self._check(namespace)
        return BoundDocuments(self, namespace)

    @property
    def portal(self) -> Portal:
        """Where it lives; what is built on it may live there as well."""
        return self._portal

    @property
    def namespace(self) -> str | None:
        """The only one that it takes calls for, or None."""
        return self._namespace

    @property
    def limits(self) -> Limits:
        return self._calls.limits

    async def setup(self) -> None:
        """Connect, and with a namespace look for the service. Idempotent.

        Raises:
            StoreUnavailableError: No NATS server answers, or no service.
        """
        await self._portal.arun(self._calls.setup, self._namespace)

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        self._check(namespace)
        parsed = parse_spec(spec)
        await self._portal.arun(self._calls.ensure_collection, namespace, parsed)

    async def drop_collection(self, namespace: str, name: str) -> None:
        self._check(namespace)
        check_declarable(name)
        await self._portal.arun(self._calls.drop_collection, namespace, name)

    async def collections(self, namespace: str) -> Sequence[str]:
        self._check(namespace)
        return await self._portal.arun(self._calls.collections, namespace)

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
        self._check(namespace)
        request = requests.check_put(
            namespace, collection, id, data, if_version, if_latest
        )
        return await self._portal.arun(self._calls.put, namespace, request)

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
        self._check(namespace)
        request = requests.check_put_expiring(
            namespace, collection, id, data, ttl, if_version
        )
        return await self._portal.arun(
            self._calls.put_expiring, namespace, request, ttl
        )

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        self._check(namespace)
        path = requests.check_get(namespace, collection, id)
        return await self._portal.arun(self._calls.get, namespace, collection, path)

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
        self._check(namespace)
        request = requests.check_delete(
            namespace, collection, id, if_version, subtree, below
        )
        await self._portal.arun(self._calls.delete, namespace, request)

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
        self._check(namespace)
        query = Query.parse(
            namespace, collection, where, order_by, limit, cursor, within
        )
        return await self._portal.arun(self._calls.find, query, cursor)

    async def count(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        self._check(namespace)
        query = Query.parse(namespace, collection, where, within=within)
        return await self._portal.arun(self._calls.count, query)

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        self._check(namespace)
        parsed = requests.check_put_many(namespace, writes)
        return await self._portal.arun(self._calls.put_many, namespace, parsed, exact)

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        self._check(namespace)
        parsed = requests.check_get_many(namespace, reads)
        return await self._portal.arun(self._calls.get_many, namespace, parsed)

    async def delete_many(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        self._check(namespace)
        query = Query.parse(namespace, collection, where, within=within)
        return await self._portal.arun(self._calls.delete_many, query)

    async def ids(
        self,
        namespace: str,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        self._check(namespace)
        query = Query.parse(namespace, collection, within=within)
        return await self._portal.arun(self._calls.ids, query)

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
        self._check(namespace)
        return paging.iterate(
            self.find,
            namespace,
            collection,
            where,
            order_by=order_by,
            within=within,
            page_size=page_size,
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
        await self._portal.arun(self._calls.close)

    def _check(self, namespace: str) -> None:
        check_namespace(namespace)
        if self._namespace is not None and namespace != self._namespace:
            raise PermissionDeniedError(
                f"this store is bound to the namespace {shown(self._namespace)}, "
                f"not {shown(namespace)}"
            )
