"""What each request asks of a store, and what its answer says.

An endpoint takes the store, the decoded request and the bytes that an answer may have,
and returns the reply. What is no legal request is refused before the store is asked,
by the forms in `values`, or by the store itself before it touches its storage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from jskv_saver._nats.settings import package_version
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.values import (
    fill_document,
    fill_stamp,
    object_of,
    order_of,
    pattern_of,
    reads_of,
    spec_of,
    where_of,
    within_of,
)
from jskv_saver.document.model import Condition, Write, path_of
from jskv_saver.document.names import check_namespace, parse_id
from jskv_saver.document.port import DocumentStore, ExpiresDocuments
from jskv_saver.document.query import Query
from jskv_saver.errors import InvalidRequestError

_FIRST: Final = 50
"""Documents that a page begins with: of large ones more may be far too many."""

_FRAME: Final = 16
"""Bytes that a reply may add around one of its parts."""

Serve: TypeAlias = Callable[[DocumentStore, Any, int], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One primitive on the wire.

    Attributes:
        request: Its message.
        serve: Makes the reply.
        write: Whether a lost answer leaves something in doubt.
    """

    request: Any
    serve: Serve
    write: bool


async def _limits(store: DocumentStore, request: Any, room: int) -> Any:
    check_namespace(request.namespace)
    return pb.LimitsReply(data=store.limits.data, version=package_version())


async def _ensure_collection(store: DocumentStore, request: Any, room: int) -> Any:
    await store.ensure_collection(request.namespace, spec_of(request.spec))
    return pb.EnsureCollectionReply()


async def _drop_collection(store: DocumentStore, request: Any, room: int) -> Any:
    await store.drop_collection(request.namespace, request.name)
    return pb.DropCollectionReply()


async def _collections(store: DocumentStore, request: Any, room: int) -> Any:
    return pb.CollectionsReply(names=await store.collections(request.namespace))


async def _put(store: DocumentStore, request: Any, room: int) -> Any:
    document = await store.put(
        request.namespace,
        request.collection,
        tuple(request.id),
        _data_of(request),
        if_version=_version_of(request),
        if_latest=_fence_of(request),
    )
    reply = pb.PutReply()
    fill_stamp(reply.stamp, document)
    return reply


async def _put_expiring(store: DocumentStore, request: Any, room: int) -> Any:
    if not isinstance(store, ExpiresDocuments):
        raise InvalidRequestError("nothing expires in the store of this service")
    document = await store.put_expiring(
        request.namespace,
        request.collection,
        tuple(request.id),
        _data_of(request),
        ttl=request.ttl_ms / 1000,
        if_version=_version_of(request),
    )
    reply = pb.PutExpiringReply()
    fill_stamp(reply.stamp, document)
    return reply


async def _put_many(store: DocumentStore, request: Any, room: int) -> Any:
    writes = [_write_of(write) for write in request.writes]
    reply = pb.PutManyReply()
    for document in await store.put_many(
        request.namespace, writes, exact=request.exact
    ):
        fill_stamp(reply.stamps.add(), document)
    return reply


async def _get(store: DocumentStore, request: Any, room: int) -> Any:
    document = await store.get(request.namespace, request.collection, tuple(request.id))
    reply = pb.GetReply()
    fill_document(reply.document, document)
    return reply


async def _get_many(store: DocumentStore, request: Any, room: int) -> Any:
    found = await store.get_many(request.namespace, reads_of(request))
    reply, size = pb.GetManyReply(), 0
    for (collection, id), document in found.items():
        each = reply.found.add(collection=collection)
        fill_document(each.document, document)
        added = each.ByteSize() + _FRAME
        if size and size + added > room:
            del reply.found[-1]
            reply.left.add(collection=collection, id=path_of(id), size=added)
        else:
            size += added
    return reply


async def _delete(store: DocumentStore, request: Any, room: int) -> Any:
    names = list(request.collections)
    if not request.subtree and len(names) != 1:
        raise InvalidRequestError("without subtree, collection is one name")
    await store.delete(
        request.namespace,
        names if request.subtree else names[0],
        pattern_of(request.id),
        if_version=_version_of(request),
        subtree=request.subtree,
        below=request.below if request.HasField("below") else None,
    )
    return pb.DeleteReply()


async def _find(store: DocumentStore, request: Any, room: int) -> Any:
    cursor = request.cursor if request.HasField("cursor") else None
    query = Query.parse(
        request.namespace,
        request.collection,
        where_of(request),
        order_of(request),
        request.limit,
        cursor,
        within_of(request),
    )
    reply, size, last = pb.FindReply(), 0, None
    while True:
        wanted = query.limit - len(reply.items)
        if last is None:
            step = min(wanted, _FIRST)
        else:
            # As many as will fit, if they are like those before.
            step = max(1, (room - size) * len(reply.items) // size)
        page = await store.find(
            query.namespace,
            query.collection,
            query.predicates,
            order_by=query.order_by,
            limit=min(wanted, step),
            cursor=cursor,
            within=query.prefixes,
        )
        for document in page.items:
            item = reply.items.add()
            fill_document(item, document)
            added = item.ByteSize() + _FRAME
            if last is not None and size + added > room:
                del reply.items[-1]
                reply.cursor = query.cursor_after(last)
                return reply
            size, last = size + added, document
        cursor = page.cursor
        if cursor is None:
            return reply
        if len(reply.items) == query.limit or size >= room:
            reply.cursor = cursor
            return reply


async def _count(store: DocumentStore, request: Any, room: int) -> Any:
    count = await store.count(
        request.namespace,
        request.collection,
        where_of(request),
        within=within_of(request),
    )
    return pb.CountReply(count=count)


async def _delete_many(store: DocumentStore, request: Any, room: int) -> Any:
    count = await store.delete_many(
        request.namespace,
        request.collection,
        where_of(request),
        within=within_of(request),
    )
    return pb.DeleteManyReply(count=count)


async def _ids(store: DocumentStore, request: Any, room: int) -> Any:
    after = parse_id(tuple(request.after.segments)) if request.HasField("after") else ()
    found = await store.ids(
        request.namespace, request.collection, within=within_of(request)
    )
    reply, size = pb.IdsReply(), 0
    begin = 0
    if after:
        begin = sum(1 for id in found if path_of(id) <= after)
    for id in islice(found, begin, None):
        path = path_of(id)
        size += sum(len(segment) * 4 + 4 for segment in path) + _FRAME
        if size > room and reply.ids:
            reply.more = True
            break
        reply.ids.add(segments=path)
    return reply


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "limits": Endpoint(pb.LimitsRequest, _limits, False),
    "ensure_collection": Endpoint(pb.EnsureCollectionRequest, _ensure_collection, True),
    "drop_collection": Endpoint(pb.DropCollectionRequest, _drop_collection, True),
    "collections": Endpoint(pb.CollectionsRequest, _collections, False),
    "put": Endpoint(pb.PutRequest, _put, True),
    "put_expiring": Endpoint(pb.PutExpiringRequest, _put_expiring, True),
    "put_many": Endpoint(pb.PutManyRequest, _put_many, True),
    "get": Endpoint(pb.GetRequest, _get, False),
    "get_many": Endpoint(pb.GetManyRequest, _get_many, False),
    "delete": Endpoint(pb.DeleteRequest, _delete, True),
    "delete_many": Endpoint(pb.DeleteManyRequest, _delete_many, True),
    "find": Endpoint(pb.FindRequest, _find, False),
    "count": Endpoint(pb.CountRequest, _count, False),
    "ids": Endpoint(pb.IdsRequest, _ids, False),
}
"""By the last token of the subject."""


def _data_of(message: Any) -> dict[str, Any]:
    if not message.HasField("data"):
        raise InvalidRequestError("data is missing")
    return object_of(message.data)


def _version_of(message: Any) -> int | None:
    return message.if_version if message.HasField("if_version") else None


def _fence_of(message: Any) -> tuple[tuple[str, ...], int] | None:
    if not message.HasField("if_latest"):
        return None
    return tuple(message.if_latest.prefix.segments), message.if_latest.version


def _write_of(message: Any) -> Write:
    condition: Condition = _fence_of(message)
    if message.HasField("if_version"):
        if condition is not None:
            raise InvalidRequestError("a write carries one condition")
        condition = message.if_version
    return message.collection, tuple(message.id), _data_of(message), condition
