"""Large requests are refused before they are sent, large answers come in pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.aio.client import Client
from tests.checkpoint.saving import at, checkpoint
from tests.service.stores import Gated
from tests.soak import SOAK

from jskv_saver import (
    ANY,
    CollectionSpec,
    DocumentCheckpointSaver,
    DocumentService,
    JetStreamDocumentStore,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver._nats.listener import settle
from jskv_saver.errors import DocumentTooLargeError

KB, MB = 1000, 1_000_000


@pytest.fixture
async def through(nats_url: str, bucket: str) -> AsyncIterator[RemoteDocumentStore]:
    """A remote store in front of JetStream, on a server with messages up to 1 MB."""
    async with (
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as stored,
        DocumentService(stored, nats_url),
        RemoteDocumentStore.from_conn_string(nats_url, timeout=30) as store,
    ):
        await store.ensure_collection("owner", CollectionSpec("notes"))
        yield store


async def test_many_large_documents_are_one_page(through: RemoteDocumentStore) -> None:
    count = 1000 if SOAK else 300
    bodies = {
        f"{number:04}": bytes([number % 256]) * 100 * KB for number in range(count)
    }
    # Not all at once: the broker keeps 64 MB for a service that is behind.
    items = list(bodies.items())
    for begin in range(0, count, 100):
        await asyncio.gather(
            *(
                through.put("owner", "notes", id, {"b": body})
                for id, body in items[begin : begin + 100]
            )
        )
    page = await through.find("owner", "notes", limit=1000)
    assert page.cursor is None
    assert [(each.id, each.data) for each in page.items] == [
        (id, {"b": body}) for id, body in bodies.items()
    ]
    newest = await through.find(
        "owner", "notes", order_by=("@version", "desc"), limit=count - 1
    )
    assert len(newest.items) == count - 1
    versions = [each.version for each in newest.items]
    assert versions == sorted(versions, reverse=True)
    last = await through.find(
        "owner",
        "notes",
        order_by=("@version", "desc"),
        limit=count,
        cursor=newest.cursor,
    )
    assert len(last.items) == 1
    found = await through.get_many("owner", [("notes", (ANY,))])
    assert {id: each.data["b"] for (_, id), each in found.items()} == bodies


async def test_a_page_is_what_the_store_gives(through: RemoteDocumentStore) -> None:
    for number in range(120):
        size = 60 * KB if number % 3 else 10
        await through.put(
            "owner", "notes", f"{number:03}", {"n": number, "b": b"x" * size}
        )
    for order in (None, ("n", "desc"), ("@version", "asc")):
        seen: list[Any] = []
        cursor: str | None = None
        pages = 0
        while cursor is not None or not pages:
            page = await through.find(
                "owner",
                "notes",
                [("n", "gte", 10)],
                order_by=order,
                limit=45,
                cursor=cursor,
            )
            seen += [each.data["n"] for each in page.items]
            cursor, pages = page.cursor, pages + 1
        wanted = list(range(10, 120))
        assert seen == (wanted[::-1] if order == ("n", "desc") else wanted)
        assert pages == 3


async def test_many_ids_come_in_several_answers(
    remote: RemoteDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jskv_saver.adapters.wire.serving._ANSWER", 5 * KB)
    names = [f"{number:03}{'é' * 200}" for number in range(50)]
    await remote.put_many("owner", [("notes", id, {}, None) for id in names])
    assert await remote.ids("owner", "notes") == names
    assert await remote.ids("owner", "notes", within=("no", "where")) == []


async def test_a_document_that_grows_on_the_wire_comes_back(
    nats_url: str, stored: Gated, service: DocumentService, remote: RemoteDocumentStore
) -> None:
    # A bool in a list takes one byte when stored, and four on the wire.
    wide = {"flags": [True, False, None] * 250 * KB}
    await stored.put("owner", "notes", "a", wide)
    assert (await remote.get("owner", "notes", "a")).data == wide


async def test_what_is_too_large_is_not_sent(
    client: Client, stored: Gated, remote: RemoteDocumentStore
) -> None:
    await remote.collections("owner")
    heard: list[str] = []

    async def hear(msg: Any) -> None:
        heard.append(msg.subject)

    await client.subscribe("jskv.v1.>", cb=hear)
    await settle(client)
    limit = client.max_payload
    with pytest.raises(DocumentTooLargeError, match="nothing was sent") as caught:
        await remote.put("owner", "notes", "a", {"b": b"x" * limit})
    assert caught.value.limit == limit
    assert caught.value.size is not None
    assert caught.value.size > limit
    # Those before it are stored, as always.
    writes: Any = [
        ("notes", "small", {"n": 1}, None),
        ("notes", "large", {"b": b"x" * limit}, None),
        ("notes", "after", {"n": 2}, None),
    ]
    with pytest.raises(DocumentTooLargeError):
        await remote.put_many("owner", writes)
    assert await remote.ids("owner", "notes") == ["small"]
    await settle(client)
    assert heard == ["jskv.v1.owner.put_many", "jskv.v1.owner.ids"]


async def test_what_the_service_takes_is_learned(nats_url: str) -> None:
    small = MemoryDocumentStore(max_document_bytes=5000)
    async with (
        DocumentService(small, nats_url),
        RemoteDocumentStore.from_conn_string(nats_url) as store,
        RemoteDocumentStore.from_conn_string(nats_url, namespace="owner") as bound,
    ):
        assert bound.limits.data == 5000
        assert store.limits.data == 1_000_000
        await store.collections("owner")
        assert store.limits.data == 5000
        with pytest.raises(DocumentTooLargeError) as caught:
            await store.put("owner", "cp", "a", {"b": b"x" * 6000})
        assert (caught.value.size, caught.value.limit) == (6006, 5000)


async def test_many_writes_go_in_as_few_messages_as_they_fit_into(
    client: Client, through: RemoteDocumentStore
) -> None:
    heard: list[int] = []

    async def hear(msg: Any) -> None:
        heard.append(len(msg.data))

    await client.subscribe("jskv.v1.owner.put_many", cb=hear)
    await settle(client)
    writes: Any = [("cp", f"{n:02}", {"b": b"x" * 100 * KB}, None) for n in range(25)]
    stored = await through.put_many("owner", writes)
    assert [each.id for each in stored] == [f"{n:02}" for n in range(25)]
    assert [each.version for each in stored] == sorted(each.version for each in stored)
    found = await through.get_many("owner", [("cp", (ANY,))])
    assert {("cp", each.id): each for each in stored} == found
    await settle(client)
    assert len(heard) == 3
    assert max(heard) <= client.max_payload


async def test_a_checkpoint_of_20_mb_goes_through(
    through: RemoteDocumentStore, caplog: pytest.LogCaptureFixture
) -> None:
    value = bytes(range(256)) * (20 * MB // 256)
    async with DocumentCheckpointSaver(through) as saver:
        one = checkpoint("1", {"big": value, "small": "s"})
        with caplog.at_level(logging.WARNING):
            await saver.aput(at(), one, {}, one["channel_versions"])
            await saver.aput_writes(at("1"), [("big", value[::-1])], "task")
        loaded = await saver.aget_tuple(at())
    assert loaded is not None
    assert loaded.checkpoint["channel_values"] == {"big": value, "small": "s"}
    assert loaded.pending_writes == [("task", "big", value[::-1])]
    assert caplog.records == []
