"""What is no legal request is refused before the store is touched."""

from __future__ import annotations

import logging
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.contract.hostile import NAMES, SEGMENTS
from tests.patience import PATIENCE
from tests.service.stores import Broken, Gated

from jskv_saver import (
    DocumentService,
    JetStreamDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver._nats.listener import settle
from jskv_saver._nats.tokens import encode_token
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.endpoints import ENDPOINTS
from jskv_saver.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    RemoteFaultError,
)


async def ask(
    client: Client, primitive: str, request: Any, namespace: str = "owner"
) -> Msg:
    body = request if isinstance(request, bytes) else request.SerializeToString()
    subject = f"jskv.v1.{encode_token(namespace)}.{primitive}"
    return await client.request(subject, body, timeout=PATIENCE)


def fault(msg: Msg) -> tuple[int, str]:
    """Code and message of an answer that is an error, told alike in all places."""
    assert msg.headers is not None
    told = pb.Fault.FromString(msg.data)
    assert msg.headers["Nats-Service-Error-Code"] == str(told.code)
    assert msg.headers["Nats-Service-Error"]
    return told.code, told.message


def put(**fields: Any) -> Any:
    request = pb.PutRequest(namespace="owner", collection="notes", id=["a"])
    request.data.SetInParent()
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(request, name)[:] = value
        else:
            setattr(request, name, value)
    return request


def valued(**kind: Any) -> Any:
    request = put()
    request.data.keys.append("k")
    request.data.values.add(**kind)
    return request


def nested(depth: int) -> Any:
    request = put()
    request.data.keys.append("k")
    value = request.data.values.add()
    for _ in range(depth):
        value = value.list_value.values.add()
    value.int_value = 1
    return request


def twice() -> Any:
    request = put()
    request.data.keys.extend(["k", "k"])
    for _ in range(2):
        request.data.values.add(bool_value=True)
    return request


def find(**fields: Any) -> Any:
    return pb.FindRequest(
        **{"namespace": "owner", "collection": "notes", "limit": 1, **fields}
    )


def predicate(operator: str, **value: Any) -> Any:
    request = find()
    request.where.add(field="f", operator=operator).value.MergeFrom(pb.Value(**value))
    return request


def many(count: int) -> Any:
    request = find()
    each = request.where.add(field="f", operator="in")
    for number in range(count):
        each.value.list_value.values.add(int_value=number)
    return request


def crowded(what: str, count: int = 257) -> Any:
    """A request with more of something than one may have."""
    if what == "predicates":
        return find(where=[pb.Predicate(field="f", operator="exists")] * count)
    patterns = [pb.Pattern(segments=["", str(n)], any=[0]) for n in range(count)]
    if what == "prefixes":
        return find(within=pb.Within(prefixes=patterns))
    if what == "reads":
        reads = [pb.Read(collection="notes", id=pattern) for pattern in patterns]
        return pb.GetManyRequest(namespace="owner", reads=reads)
    spec = pb.CollectionSpec(name="x")
    for number in range(count):
        if what == "groups":
            spec.unique_together.add(fields=[f"a{number}", "b"])
        else:
            spec.fields.add(name=f"a{number}", type="json")
    return pb.EnsureCollectionRequest(namespace="owner", spec=spec)


def conditions() -> Any:
    request = put(if_version=1)
    request.if_latest.prefix.segments.append("a")
    return request


def two_in_many() -> Any:
    write = pb.Write(collection="notes", id=["a"], data=pb.Object(), if_version=1)
    write.if_latest.prefix.segments.append("a")
    return pb.PutManyRequest(namespace="owner", writes=[write])


def wild(positions: list[int], segments: list[str]) -> Any:
    request = pb.DeleteRequest(namespace="owner", collections=["notes"])
    request.id.segments.extend(segments)
    request.id.any.extend(positions)
    return request


def pair() -> Any:
    request = pb.DeleteRequest(namespace="owner", collections=["notes", "tags"])
    request.id.segments.append("a")
    return request


ILLEGAL: dict[str, tuple[str, Any, str]] = {
    "bytes": ("put", b"\xff\xfe\xfd", "the request is no put"),
    "of another primitive": ("find", put(), ""),
    "no data": ("put", pb.PutRequest(namespace="owner", collection="notes"), "data"),
    "no id": ("put", put(id=[]), "at least one segment"),
    "NUL in the id": ("put", put(id=["a\0"]), "NUL"),
    "long id": ("put", put(id=["x" * 4097]), "4097 UTF-8 bytes"),
    "deep id": ("put", put(id=["x"] * 33), "33 segments"),
    "no collection": ("put", put(collection=""), "0 characters"),
    "long collection": ("put", put(collection="x" * 129), "129 characters"),
    "internal collection": ("put", put(collection="ix"), "internal"),
    "value of no kind": ("put", valued(), "no kind"),
    "NaN": ("put", valued(double_value=float("nan")), "finite"),
    "infinite": ("put", valued(double_value=float("inf")), "finite"),
    "NUL in a text": ("put", valued(string_value="\0"), "NUL"),
    "late datetime": ("put", valued(datetime_value=2**62), "years 1 to 9999"),
    "early datetime": ("put", valued(datetime_value=-(2**62)), "years 1 to 9999"),
    "33 levels": ("put", nested(33), "32 levels"),
    "200 levels": ("put", nested(200), "the request is no put"),
    "a key twice": ("put", twice(), "each of its keys"),
    "a key alone": ("put", put(), "each of its keys"),
    "a negative version": ("put", put(if_version=-1), "2**63"),
    "two conditions": ("put", conditions(), "exclude each other"),
    "two conditions of many": ("put_many", two_in_many(), "one condition"),
    "no limit": ("find", find(limit=0), "between 1 and 1000"),
    "high limit": ("find", find(limit=1001), "between 1 and 1000"),
    "foreign cursor": ("find", find(cursor="AAAA"), "cursor"),
    "unknown operator": ("find", predicate("like", string_value="x"), "operator"),
    "operand of no kind": ("find", predicate("eq"), "no kind"),
    "operand without order": ("find", predicate("lt", null_value=0), "no order"),
    "operand of exists": ("find", predicate("exists", int_value=1), "True or False"),
    "501 values": ("find", many(501), "more than 500"),
    "257 predicates": ("find", crowded("predicates"), "257 predicates"),
    "257 prefixes": ("find", crowded("prefixes"), "257 prefixes"),
    "20,000 prefixes": ("find", crowded("prefixes", 20_000), "20000 prefixes"),
    "257 wild reads": ("get_many", crowded("reads"), "257 patterns with ANY"),
    "257 fields": ("ensure_collection", crowded("fields"), "257 fields"),
    "257 groups": ("ensure_collection", crowded("groups"), "257 groups"),
    "order of no direction": (
        "find",
        find(order_by=pb.Order(field="a", direction="up")),
        "direction",
    ),
    "ANY in an id": ("delete", wild([0], [""]), "ANY"),
    "ANY beyond": ("delete", wild([7], ["a"]), "no place"),
    "ANY over text": ("delete", wild([0], ["a"]), "no place"),
    "two collections": ("delete", pair(), "one name"),
    "unknown type": (
        "ensure_collection",
        pb.EnsureCollectionRequest(
            namespace="owner",
            spec=pb.CollectionSpec(
                name="x", fields=[pb.FieldSpec(name="f", type="text")]
            ),
        ),
        "type",
    ),
    "reserved collection": (
        "drop_collection",
        pb.DropCollectionRequest(namespace="owner", name="cp"),
        "reserved",
    ),
}
ILLEGAL["a key alone"][1].data.keys.append("k")


@pytest.mark.parametrize("name", ILLEGAL)
async def test_an_illegal_request_is_refused_with_its_reason(
    client: Client, stored: Gated, service: DocumentService, name: str
) -> None:
    primitive, request, reason = ILLEGAL[name]
    code, message = fault(await ask(client, primitive, request))
    assert code == 400
    assert reason in message
    assert await stored.collections("owner") == ["notes"]
    assert await stored.count("owner", "notes") == 0


async def test_an_unknown_primitive_is_refused(
    client: Client, service: DocumentService
) -> None:
    assert fault(await ask(client, "truncate", b"")) == (
        400,
        "there is no primitive 'truncate'",
    )


@pytest.mark.parametrize("primitive", ENDPOINTS)
async def test_the_namespace_is_that_of_the_subject(
    client: Client, stored: Gated, service: DocumentService, primitive: str
) -> None:
    request = ENDPOINTS[primitive].request(namespace="owner")
    for other in ("other", "owner2", "owne", "Owner"):
        code, _ = fault(await ask(client, primitive, request, other))
        assert code == PermissionDeniedError.code
    assert stored.begun == []
    empty = ENDPOINTS[primitive].request()
    assert fault(await ask(client, primitive, empty, ""))[0] == 400


async def test_namespaces_that_are_none_are_not_kept(
    client: Client, service: DocumentService
) -> None:
    held = encode_token.cache_info().currsize
    for number in range(20):
        request = pb.LimitsRequest(namespace=f"{number}" * 100_000)
        msg = await client.request(
            "jskv.v1.owner.limits", request.SerializeToString(), timeout=PATIENCE
        )
        assert fault(msg)[0] == 400
    assert encode_token.cache_info().currsize <= held + 1


@pytest.mark.parametrize("name", NAMES, ids=ascii)
async def test_any_namespace_has_its_own_subject(
    remote: RemoteDocumentStore, name: str
) -> None:
    await remote.put(name, "cp", "a", {"n": name})
    assert (await remote.get(name, "cp", "a")).data == {"n": name}


async def test_any_id_and_text_goes_over_the_wire(remote: RemoteDocumentStore) -> None:
    data = {text: [text, {text: text}] for text in SEGMENTS}
    for segment in SEGMENTS:
        stored = await remote.put("owner", "notes", ("x", segment), data)
        assert stored.id == ("x", segment)
        assert await remote.get("owner", "notes", ("x", segment)) == stored
    assert stored.data == data
    assert len(await remote.ids("owner", "notes")) == len(SEGMENTS)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret-4711"),
        KeyError("secret-4711"),
        RecursionError("secret-4711"),
        MemoryError("secret-4711"),
        ExceptionGroup("secret-4711", [ValueError("secret-4711")]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_the_text_of_a_failure_inside_stays_inside(
    nats_url: str,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    async with DocumentService(Broken(error), nats_url):
        request = pb.GetRequest(namespace="owner", collection="notes", id=["a"])
        with caplog.at_level(logging.INFO, "jskv_saver.adapters.wire"):
            msg = await ask(client, "get", request)
        code, message = fault(msg)
        assert code == RemoteFaultError.code
        assert message == "the document service failed; its log says how"
        assert "secret" not in str(msg.headers)
        assert b"secret" not in msg.data
        faults = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert len(faults) == 1
        assert "secret-4711" in faults[0].getMessage()
        assert "\n" not in faults[0].getMessage()


@pytest.mark.parametrize(
    "reply",
    [
        "$KV.{bucket}.stolen",
        "$JS.API.STREAM.DELETE.KV_{bucket}",
        "jskv.v1.owner.delete",
        "$SRV.PING",
        "_INBOX",
        "_INBOXES.x",
        "_INBOX.*",
        "_INBOX.a.>",
        "_INBOX..a",
        "orders.new",
    ],
)
async def test_it_answers_to_no_subject_but_an_inbox(
    nats_url: str,
    client: Client,
    bucket: str,
    stored: Gated,
    service: DocumentService,
    reply: str,
) -> None:
    subject = reply.format(bucket=bucket)
    async with JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket):
        heard: list[Msg] = []

        async def hear(msg: Msg) -> None:
            heard.append(msg)

        if ".." not in subject:
            await client.subscribe(subject, cb=hear)
        body = put().SerializeToString()
        for asked in ("jskv.v1.owner.put", "$SRV.INFO.jskv-documents", "$SRV.PING"):
            sent = body if asked.endswith("put") else b""
            await client._send_publish(asked, subject, sent, len(sent), None)
        await client._flush_pending()
        # Behind them on the same connection, and answered.
        assert not (await ask(client, "put", put(id=["b"]))).headers
        await settle(client)
        assert [msg for msg in heard if msg.data] == []
        assert await stored.ids("owner", "notes") == ["b"]
        info = await client.jetstream().stream_info(f"KV_{bucket}")
        assert info.state.messages <= 1


async def test_a_configured_inbox_is_one(nats_url: str, stored: Gated) -> None:
    client = await nats.connect(nats_url, inbox_prefix="_INBOX_alice")
    try:
        async with DocumentService(stored, nats_url, inbox_prefixes=["_INBOX_alice"]):
            assert not (await ask(client, "put", put())).headers
        async with DocumentService(stored, nats_url):
            with pytest.raises(TimeoutError):
                await client.request(
                    "jskv.v1.owner.put", put().SerializeToString(), timeout=0.3
                )
    finally:
        await client.close()


@pytest.mark.parametrize(
    "prefix", ["", ".", "$KV", "$JS.API.", "a b", "*", "a.>", "a..b"]
)
async def test_what_is_no_inbox_is_not_configured(stored: Gated, prefix: str) -> None:
    with pytest.raises(InvalidRequestError, match="prefix of inboxes"):
        DocumentService(stored, None, inbox_prefixes=[prefix])


async def test_a_request_without_a_reply_is_not_served(
    client: Client, stored: Gated, service: DocumentService
) -> None:
    await client.publish("jskv.v1.owner.put", put(id=["x"]).SerializeToString())
    await ask(client, "put", put(id=["y"]))
    assert await stored.ids("owner", "notes") == ["y"]
