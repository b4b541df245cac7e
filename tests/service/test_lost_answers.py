"""No answer, a late one, one that cannot be read: each is told, nothing is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.patience import PATIENCE, at_once, patiently, until
from tests.service.stores import Gated

from jskv_saver import (
    CollectionSpec,
    DocumentService,
    LocalServer,
    RemoteDocumentStore,
)
from jskv_saver._nats.listener import settle
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.errors import (
    RemoteFaultError,
    StoreUnavailableError,
    UnknownOutcomeError,
)


@pytest.fixture
async def hasty(nats_url: str) -> AsyncIterator[RemoteDocumentStore]:
    """For calls in vain."""
    async with RemoteDocumentStore.from_conn_string(nats_url, timeout=1) as store:
        yield store


@pytest.fixture
async def patient(nats_url: str) -> AsyncIterator[RemoteDocumentStore]:
    """For calls that are answered, whatever the answer is worth."""
    async with RemoteDocumentStore.from_conn_string(
        nats_url, timeout=PATIENCE
    ) as store:
        yield store


def _calls(store: RemoteDocumentStore) -> dict[str, Any]:
    return {
        "collections": lambda: store.collections("owner"),
        "get": lambda: store.get("owner", "notes", "a"),
        "get_many": lambda: store.get_many("owner", [("notes", "a")]),
        "find": lambda: store.find("owner", "notes"),
        "count": lambda: store.count("owner", "notes"),
        "ids": lambda: store.ids("owner", "notes"),
        "put": lambda: store.put("owner", "notes", "a", {}),
        "put_expiring": lambda: store.put_expiring("owner", "ls", "a", {}, ttl=1),
        "put_many": lambda: store.put_many("owner", [("notes", "a", {}, None)]),
        "delete": lambda: store.delete("owner", "notes", "a"),
        "delete_many": lambda: store.delete_many("owner", "notes"),
        "ensure_collection": lambda: store.ensure_collection(
            "owner", CollectionSpec("notes")
        ),
        "drop_collection": lambda: store.drop_collection("owner", "notes"),
    }


READS = ["collections", "get", "get_many", "find", "count", "ids"]
WRITES = [
    "put",
    "put_expiring",
    "put_many",
    "delete",
    "delete_many",
    "ensure_collection",
    "drop_collection",
]


async def test_without_a_service_nothing_was_done(patient: RemoteDocumentStore) -> None:
    with at_once():
        for call in _calls(patient).values():
            with pytest.raises(
                StoreUnavailableError, match=r"nobody listens .*nothing"
            ):
                await call()


async def test_without_a_server_nothing_was_done() -> None:
    store = RemoteDocumentStore.from_conn_string("nats://127.0.0.1:1", timeout=0.3)
    with pytest.raises(StoreUnavailableError, match="no NATS server at"):
        await store.put("owner", "notes", "a", {})
    await store.close()


class Mute:
    """Listens on the service's subjects, and answers only what it is told to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.heard: list[Msg] = []
        self.answers: dict[str, bytes] = {
            "limits": pb.LimitsReply(data=1000).SerializeToString()
        }

    async def listen(self) -> None:
        await self._client.subscribe("jskv.v1.*.*", cb=self._hear)
        await settle(self._client)

    async def _hear(self, msg: Msg) -> None:
        primitive = msg.subject.rpartition(".")[2]
        if primitive != "limits":
            self.heard.append(msg)
        if primitive in self.answers:
            await msg.respond(self.answers[primitive])


@pytest.fixture
async def mute(client: Client) -> Mute:
    mute = Mute(client)
    await mute.listen()
    return mute


async def _in_vain(
    store: RemoteDocumentStore, mute: Mute, names: list[str]
) -> list[BaseException]:
    """What calls end with that are heard once and never answered."""
    calls = [_calls(store)[name]() for name in names]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(msg.subject for msg in mute.heard) == sorted(
        f"jskv.v1.owner.{name}" for name in names
    )
    return ended


async def test_a_read_without_an_answer_is_unavailable(
    hasty: RemoteDocumentStore, mute: Mute
) -> None:
    for error in await _in_vain(hasty, mute, READS):
        assert type(error) is StoreUnavailableError
        assert "no answer within 1 s" in str(error)


async def test_a_write_without_an_answer_may_have_happened(
    hasty: RemoteDocumentStore, mute: Mute
) -> None:
    for error in await _in_vain(hasty, mute, WRITES):
        assert type(error) is UnknownOutcomeError
        assert "no answer within 1 s; the write may have" in str(error)


@pytest.mark.parametrize("name", [*READS, *WRITES])
async def test_an_answer_that_cannot_be_read_is_told(
    patient: RemoteDocumentStore, mute: Mute, name: str
) -> None:
    mute.answers[name] = b"\xff\xff\xff"
    expected = RemoteFaultError if name in READS else UnknownOutcomeError
    with at_once(), pytest.raises(expected):
        await _calls(patient)[name]()


def _answers() -> dict[str, list[Any]]:
    """Answers that lack something, or that would never end."""
    no_kind = pb.Object(keys=["k"], values=[pb.Value()])
    late = pb.Stamp(version=1, created=2**62)
    return {
        "put": [pb.PutReply(), pb.PutReply(stamp=late)],
        "put_many": [pb.PutManyReply(), pb.PutManyReply(stamps=[late, late])],
        "get": [
            pb.GetReply(),
            pb.GetReply(document=pb.Document(id=["a"], data=no_kind)),
            pb.GetReply(document=pb.Document(id=["a"], stamp=late)),
        ],
        "get_many": [
            pb.GetManyReply(found=[pb.Found(collection="notes")]),
            pb.GetManyReply(left=[pb.Left(collection="notes", id=["a"])]),
        ],
        "find": [
            pb.FindReply(cursor="x"),
            pb.FindReply(items=[pb.Document(id=["a"], data=no_kind)]),
        ],
        "ids": [
            pb.IdsReply(more=True),
            pb.IdsReply(ids=[pb.Path()]),
            pb.IdsReply(ids=[pb.Path(segments=["a"])], more=True),
        ],
    }


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (name, number)
        for name, each in _answers().items()
        for number in range(len(each))
    ],
)
async def test_an_answer_that_lacks_something_is_none(
    patient: RemoteDocumentStore, mute: Mute, name: str, number: int
) -> None:
    mute.answers[name] = _answers()[name][number].SerializeToString()
    expected = RemoteFaultError if name in READS else UnknownOutcomeError
    with at_once(), pytest.raises(expected, match="cannot be read"):
        await _calls(patient)[name]()


async def test_a_part_that_is_missing_leaves_no_answer(
    hasty: RemoteDocumentStore, mute: Mute, client: Client
) -> None:
    get = asyncio.ensure_future(hasty.get("owner", "notes", "a"))
    await until(lambda: bool(mute.heard))
    for part in ("1/3", "3/3"):
        await client.publish(mute.heard[0].reply, b"x", headers={"Jskv-Part": part})
    with pytest.raises(StoreUnavailableError, match="a part of the answer is missing"):
        await get


async def test_a_late_answer_reaches_no_other_call(
    hasty: RemoteDocumentStore, mute: Mute
) -> None:
    with pytest.raises(StoreUnavailableError):
        await hasty.count("owner", "notes")
    mute.answers["count"] = pb.CountReply(count=2).SerializeToString()
    await mute.heard[0].respond(pb.CountReply(count=1).SerializeToString())
    assert await patiently(lambda: hasty.count("owner", "notes")) == 2


async def test_a_service_that_is_late_gives_up_what_nobody_waits_for(
    hasty: RemoteDocumentStore, stored: Gated, service: DocumentService
) -> None:
    stored.gate.clear()
    with pytest.raises(UnknownOutcomeError):
        await hasty.put("owner", "notes", "a", {})
    with pytest.raises(StoreUnavailableError):
        await hasty.get("owner", "notes", "b")
    await until(lambda: len(stored.given_up) == 2)
    stored.gate.set()
    assert stored.given_up == [("a",), ("b",)]
    assert list(await patiently(lambda: hasty.ids("owner", "notes"))) == []


async def test_what_waits_for_a_place_too_long_is_not_begun(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, max_concurrent=1),
        RemoteDocumentStore.from_conn_string(nats_url, timeout=PATIENCE) as patient,
        RemoteDocumentStore.from_conn_string(nats_url, timeout=0.3) as hasty,
    ):
        await patient.collections("owner")
        await patiently(lambda: hasty.collections("owner"))
        stored.gate.clear()
        first = asyncio.ensure_future(patient.put("owner", "notes", "a", {}))
        await until(lambda: bool(stored.begun))
        with pytest.raises(UnknownOutcomeError):
            await hasty.put("owner", "notes", "late", {})
        stored.gate.set()
        await first
        await patient.put("owner", "notes", "b", {})
        assert stored.begun == [("a",), ("b",)]


async def test_a_connection_that_breaks_ends_the_calls_at_once(
    own_server: LocalServer, stored: Gated
) -> None:
    async with (
        DocumentService(stored, own_server.url),
        RemoteDocumentStore.from_conn_string(own_server.url, timeout=30) as store,
    ):
        await store.collections("owner")
        stored.gate.clear()
        put = asyncio.ensure_future(store.put("owner", "notes", "a", {}))
        get = asyncio.ensure_future(store.get("owner", "notes", "b"))
        await until(lambda: len(stored.begun) == 2)
        await asyncio.to_thread(own_server.kill)
        with at_once():
            with pytest.raises(UnknownOutcomeError, match=r"broke; the write may have"):
                await put
            with pytest.raises(StoreUnavailableError, match="broke"):
                await get
        stored.gate.set()
        await asyncio.to_thread(own_server.start)
        await patiently(lambda: store.put("owner", "notes", "after", {}))
        assert (await store.get("owner", "notes", "after")).data == {}
