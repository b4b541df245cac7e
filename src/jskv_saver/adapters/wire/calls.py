"""The requests of a remote store: made, sent, and their answers read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError

from jskv_saver._nats.requests import Requests
from jskv_saver._nats.waiting import NobodyListensError
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.faults import CODE_HEADER, decode_fault
from jskv_saver.adapters.wire.subjects import subject_of
from jskv_saver.adapters.wire.values import (
    document_of,
    fill_object,
    fill_pattern,
    fill_spec,
    fill_where,
    fill_within,
    stamped,
)
from jskv_saver.document.model import (
    CollectionSpec,
    Document,
    DocumentId,
    Limits,
    Page,
    Path,
    ReadKey,
    id_of,
    path_of,
)
from jskv_saver.document.names import PatternPath, parse_id
from jskv_saver.document.query import Query
from jskv_saver.document.requests import DeleteRequest, PutRequest
from jskv_saver.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    RemoteFaultError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

RESERVE: Final = 4096
"""Bytes of a message kept free for what a document carries beside its data."""
_T = TypeVar("_T")
_GROUP: Final = 12 * 1024 * 1024
"""Bytes of documents that are asked for together."""


class Calls:
    """Speaks to the service.

    Args:
        requests: Sends messages and waits for answers.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests: Final = requests
        self._timeout_ms: Final = max(1, int(requests.timeout * 1000))
        self._learning: Final = asyncio.Lock()
        self._served: int | None = None

    @property
    def limits(self) -> Limits:
        """What both the service and one message take."""
        sizes = [Limits().data if self._served is None else self._served]
        client = self._requests.client
        if client is not None:
            sizes.append(max(client.max_payload - RESERVE, 0))
        return Limits(data=min(sizes))

    async def setup(self, namespace: str | None) -> None:
        """Connect, and look for the service where a namespace is given."""
        await self._requests.ready()
        if namespace is not None:
            await self._learn(namespace)

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        request = self._request(pb.EnsureCollectionRequest, namespace)
        fill_spec(request.spec, spec)
        await self._do("ensure_collection", request, pb.EnsureCollectionReply, _done)

    async def drop_collection(self, namespace: str, name: str) -> None:
        request = self._request(pb.DropCollectionRequest, namespace, name=name)
        await self._do("drop_collection", request, pb.DropCollectionReply, _done)

    async def collections(self, namespace: str) -> list[str]:
        request = self._request(pb.CollectionsRequest, namespace)
        return await self._ask(
            "collections", request, pb.CollectionsReply, lambda reply: list(reply.names)
        )

    async def put(self, namespace: str, put: PutRequest) -> Document:
        request = self._request(pb.PutRequest, namespace)
        _fill_put(request, put)
        return await self._do("put", request, pb.PutReply, partial(_put_in, put))

    async def put_expiring(
        self, namespace: str, put: PutRequest, ttl: float
    ) -> Document:
        request = self._request(
            pb.PutExpiringRequest, namespace, ttl_ms=round(ttl * 1000)
        )
        _fill_put(request, put)
        reply = pb.PutExpiringReply
        return await self._do("put_expiring", request, reply, partial(_put_in, put))

    async def put_many(
        self, namespace: str, puts: Sequence[PutRequest], exact: bool
    ) -> list[Document]:
        """In order, in as few messages as they fit into; each awaits the one before."""
        await self._requests.ready()
        stored: list[Document] = []
        for begin, request in self._split(namespace, puts, exact):
            some = puts[begin : begin + len(request.writes)]
            stored += await self._do(
                "put_many",
                request,
                pb.PutManyReply,
                partial(_all_put_in, some),
            )
        return stored

    async def get(self, namespace: str, collection: str, path: Path) -> Document:
        request = self._request(
            pb.GetRequest, namespace, collection=collection, id=path
        )
        return await self._ask("get", request, pb.GetReply, _document_in)

    async def get_many(
        self, namespace: str, reads: Sequence[tuple[str, PatternPath]]
    ) -> dict[ReadKey, Document]:
        """What is too much for one answer is read in further ones, by its id."""
        await self._requests.ready()
        found: dict[ReadKey, Document] = {}
        left = await self._get_some(namespace, reads, found)
        while left:
            group: list[tuple[str, PatternPath]] = []
            size = 0
            while left and (not group or size + left[0].size <= _GROUP):
                each = left.pop(0)
                group.append((each.collection, tuple(each.id)))
                size += each.size
            more = await self._get_some(namespace, group, found)
            if len(more) >= len(group):
                raise _unreadable("it leaves everything for later")
            left += more
        return found

    async def delete(self, namespace: str, delete: DeleteRequest) -> None:
        request = self._request(
            pb.DeleteRequest,
            namespace,
            collections=delete.collections,
            subtree=delete.subtree,
        )
        fill_pattern(request.id, delete.prefix)
        if delete.if_version is not None:
            request.if_version = delete.if_version
        if delete.below is not None:
            request.below = delete.below
        await self._do("delete", request, pb.DeleteReply, _done)

    async def find(self, query: Query, cursor: str | None) -> Page:
        """A page, in as many answers as it takes."""
        items: list[Document] = []
        while True:
            request = self._query(pb.FindRequest, query)
            request.limit = query.limit - len(items)
            if query.order_by is not None:
                request.order_by.field, request.order_by.direction = query.order_by
            if cursor is not None:
                request.cursor = cursor
            page = await self._ask("find", request, pb.FindReply, _page_in)
            items += page.items
            cursor = page.cursor
            if cursor is None or len(items) >= query.limit:
                return Page(tuple(items), cursor)

    async def count(self, query: Query) -> int:
        request = self._query(pb.CountRequest, query)
        return await self._ask("count", request, pb.CountReply, _count_in)

    async def delete_many(self, query: Query) -> int:
        request = self._query(pb.DeleteManyRequest, query)
        return await self._do("delete_many", request, pb.DeleteManyReply, _count_in)

    async def ids(self, query: Query) -> list[DocumentId]:
        """All of them, in as many answers as it takes."""
        ids: list[DocumentId] = []
        while True:
            request = self._request(
                pb.IdsRequest, query.namespace, collection=query.collection
            )
            fill_within(request, query.prefixes)
            if ids:
                request.after.segments.extend(path_of(ids[-1]))
            some, more = await self._ask("ids", request, pb.IdsReply, _ids_in)
            if ids and some and path_of(some[0]) <= path_of(ids[-1]):
                raise _unreadable("its ids do not go on where they ended")
            ids += some
            if not more:
                return ids

    async def close(self) -> None:
        """Close the own connection."""
        await self._requests.close()

    # -- messages ----------------------------------------------------------------------

    def _request(self, kind: Any, namespace: str, **fields: Any) -> Any:
        return kind(namespace=namespace, timeout_ms=self._timeout_ms, **fields)

    def _query(self, kind: Any, query: Query) -> Any:
        request = self._request(kind, query.namespace, collection=query.collection)
        fill_where(request, query.predicates)
        fill_within(request, query.prefixes)
        return request

    def _split(
        self, namespace: str, puts: Sequence[PutRequest], exact: bool
    ) -> Iterator[tuple[int, Any]]:
        """Requests of as many writes as fit into a message, with where each begins."""
        begin, size = 0, 0
        request = self._request(pb.PutManyRequest, namespace, exact=exact)
        for number, put in enumerate(puts):
            write = pb.Write()
            _fill_put(write, put)
            added = write.ByteSize() + 16
            if request.writes and size + added > self._room():
                yield begin, request
                begin, size = number, 0
                request = self._request(pb.PutManyRequest, namespace, exact=exact)
            request.writes.append(write)
            size += added
        if request.writes:
            yield begin, request

    def _room(self) -> int:
        client = self._requests.client
        payload = Limits().data if client is None else client.max_payload
        return max(payload - 1024, 1)

    async def _get_some(
        self,
        namespace: str,
        reads: Sequence[tuple[str, PatternPath]],
        found: dict[ReadKey, Document],
    ) -> list[Any]:
        left: list[Any] = []
        request, size = self._request(pb.GetManyRequest, namespace), 0
        for number, (collection, pattern) in enumerate(reads, 1):
            read = request.reads.add(collection=collection)
            fill_pattern(read.id, pattern)
            size += read.ByteSize() + 16
            # The next one is surely smaller than a quarter of a message.
            if size < self._room() * 3 // 4 and number < len(reads):
                continue
            some, later = await self._ask(
                "get_many", request, pb.GetManyReply, _found_in
            )
            found.update(some)
            left += later
            request, size = self._request(pb.GetManyRequest, namespace), 0
        return left

    async def _ask(
        self, primitive: str, request: Any, kind: Any, read: Callable[[Any], _T]
    ) -> _T:
        """Send a request that changes nothing, and read its answer."""
        body = await self._answer(primitive, request, False)
        try:
            return read(kind.FromString(body))
        except (DecodeError, InvalidRequestError) as exc:
            raise _unreadable(exc) from exc

    async def _do(
        self,
        primitive: str,
        request: Any,
        kind: Any,
        read: Callable[[Any], _T],
    ) -> _T:
        """Send a request that changes something, and read its answer."""
        body = await self._answer(primitive, request, True)
        try:
            return read(kind.FromString(body))
        except (DecodeError, InvalidRequestError) as exc:
            raise UnknownOutcomeError(
                f"{_unreadable(exc)}; the write may have happened"
            ) from exc

    async def _answer(self, primitive: str, request: Any, write: bool) -> bytes:
        if self._served is None and primitive != "limits":
            await self._learn(request.namespace)
        subject = subject_of(request.namespace, primitive)
        try:
            answers = await self._requests.parts(
                subject, request.SerializeToString(), write=write
            )
        except NobodyListensError as exc:
            raise StoreUnavailableError(
                "no document service at "
                f"{self._requests.connection.where}: start one with `jskv serve` "
                f"(nobody listens on {subject!r}, nothing was done)"
            ) from exc
        if len(answers) > 1:
            return b"".join([answer.data for answer in answers])
        headers = answers[0].headers
        if headers and (code := headers.get(CODE_HEADER)) is not None:
            raise decode_fault(answers[0].data, code)
        return answers[0].data

    async def _learn(self, namespace: str) -> None:
        """Ask once what the service takes; the first call of all does it."""
        async with self._learning:
            if self._served is not None:
                return
            request = self._request(pb.LimitsRequest, namespace)
            try:
                self._served = await self._ask(
                    "limits", request, pb.LimitsReply, lambda reply: int(reply.data)
                )
            except PermissionDeniedError:
                # A caller who may read only has no use for it.
                self._served = Limits().data


def _fill_put(target: Any, put: PutRequest) -> None:
    target.collection = put.collection
    target.id.extend(put.path)
    fill_object(target.data, put.data)
    if put.if_version is not None:
        target.if_version = put.if_version
    if put.if_latest is not None:
        prefix, version = put.if_latest
        target.if_latest.prefix.segments.extend(prefix)
        target.if_latest.version = version


# -- answers ---------------------------------------------------------------------------
# An answer that lacks what it must have is none; any program may have given it.


def _done(reply: Any) -> None:
    """There is nothing in it."""


def _put_in(put: PutRequest, reply: Any) -> Document:
    if not reply.HasField("stamp"):
        raise InvalidRequestError("it has no version")
    return stamped(put.path, put.data, reply.stamp)


def _all_put_in(puts: Sequence[PutRequest], reply: Any) -> list[Document]:
    if len(reply.stamps) != len(puts):
        raise InvalidRequestError(f"{len(reply.stamps)} versions for {len(puts)} puts")
    return [
        stamped(put.path, put.data, stamp)
        for put, stamp in zip(puts, reply.stamps, strict=True)
    ]


def _document_in(reply: Any) -> Document:
    return document_of(reply.document)


def _page_in(reply: Any) -> Page:
    cursor = reply.cursor if reply.HasField("cursor") else None
    if cursor is not None and not reply.items:
        raise InvalidRequestError("a page has a cursor and no document")
    return Page(tuple(map(document_of, reply.items)), cursor)


def _ids_in(reply: Any) -> tuple[list[DocumentId], bool]:
    if reply.more and not reply.ids:
        raise InvalidRequestError("more ids are to follow after none")
    return [id_of(parse_id(tuple(each.segments))) for each in reply.ids], reply.more


def _found_in(reply: Any) -> tuple[dict[ReadKey, Document], list[Any]]:
    found: dict[ReadKey, Document] = {}
    for each in reply.found:
        document = document_of(each.document)
        found[each.collection, document.id] = document
    return found, list(reply.left)


def _count_in(reply: Any) -> int:
    return int(reply.count)


def _unreadable(why: object) -> RemoteFaultError:
    return RemoteFaultError(f"the service's answer cannot be read ({why})")
