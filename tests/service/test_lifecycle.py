"""How a remote store is opened, bound, shared and closed."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from tests.service.stores import Gated

from jskv_saver import CollectionSpec, DocumentService, RemoteDocumentStore
from jskv_saver._nats.listener import settle
from jskv_saver.errors import (
    InvalidRequestError,
    PermissionDeniedError,
    StoreClosedError,
    StoreUnavailableError,
    UnknownOutcomeError,
    WrongThreadError,
)


async def test_a_client_that_is_given_stays_open(
    client: Client, service: DocumentService
) -> None:
    async with RemoteDocumentStore(client) as store:
        assert await store.collections("owner") == ["notes"]
    assert client.is_connected
    with pytest.raises(StoreClosedError):
        await store.collections("owner")
    again = RemoteDocumentStore(client)
    assert await again.collections("owner") == ["notes"]
    await again.close()


async def test_closing_it_closes_nothing_of_the_service(
    nats_url: str, stored: Gated, service: DocumentService
) -> None:
    for _ in range(2):
        store = RemoteDocumentStore.from_conn_string(nats_url)
        assert await store.collections("owner") == ["notes"]
        await store.close()
        await store.close()
    assert await stored.collections("owner") == ["notes"]


async def test_a_call_in_progress_ends_when_it_is_closed(
    stored: Gated, remote: RemoteDocumentStore
) -> None:
    await remote.collections("owner")
    stored.gate.clear()
    put = asyncio.ensure_future(remote.put("owner", "notes", "a", {}))
    get = asyncio.ensure_future(remote.get("owner", "notes", "b"))
    while len(stored.begun) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await remote.close()
    with pytest.raises(UnknownOutcomeError, match="may have happened"):
        await put
    with pytest.raises(StoreClosedError):
        await get
    stored.gate.set()


def test_without_a_loop_it_keeps_one_of_its_own(nats_url: str) -> None:
    async def serve(started: threading.Event, ending: asyncio.Event) -> None:
        store = Gated()
        async with DocumentService(store, nats_url):
            started.set()
            await ending.wait()

    store = RemoteDocumentStore.from_conn_string(nats_url)
    with asyncio.Runner() as here, asyncio.Runner() as there:
        loop, started, ending = there.get_loop(), threading.Event(), asyncio.Event()
        thread = threading.Thread(target=lambda: there.run(serve(started, ending)))
        thread.start()
        assert started.wait(10)
        here.run(store.ensure_collection("owner", CollectionSpec("notes")))
        with asyncio.Runner() as another:
            assert another.run(store.collections("owner")) == ["notes"]
        here.run(store.close())
        loop.call_soon_threadsafe(ending.set)
        thread.join()


async def test_a_bound_store_refuses_other_namespaces(
    nats_url: str, client: Client, stored: Gated, service: DocumentService
) -> None:
    heard: list[Any] = []

    async def hear(msg: Any) -> None:
        heard.append(msg)

    await client.subscribe("jskv.v1.other.>", cb=hear)
    await settle(client)
    async with RemoteDocumentStore.from_conn_string(
        nats_url, namespace="owner"
    ) as store:
        assert store.namespace == "owner"
        assert await store.collections("owner") == ["notes"]
        spec = CollectionSpec("notes")
        calls: list[Any] = [
            lambda: store.ensure_collection("other", spec),
            lambda: store.drop_collection("other", "notes"),
            lambda: store.collections("other"),
            lambda: store.put("other", "notes", "a", {}),
            lambda: store.get("other", "notes", "a"),
            lambda: store.delete("other", "notes", "a"),
            lambda: store.find("other", "notes"),
            lambda: store.count("other", "notes"),
            lambda: store.put_many("other", [("notes", "a", {}, None)]),
            lambda: store.get_many("other", [("notes", "a")]),
            lambda: store.delete_many("other", "notes"),
            lambda: store.ids("other", "notes"),
        ]
        for call in calls:
            with pytest.raises(PermissionDeniedError, match="bound to"):
                await call()
        with pytest.raises(PermissionDeniedError):
            store.iterate("other", "notes")
        with pytest.raises(PermissionDeniedError):
            store.bind("other")
        bound = store.bind("owner")
        await bound.put("notes", "a", {"n": 1})
    await settle(client)
    assert heard == []


async def test_a_bound_store_looks_for_its_service_at_once(nats_url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="jskv serve"):
        async with RemoteDocumentStore.from_conn_string(nats_url, namespace="owner"):
            pass


@pytest.mark.parametrize("namespace", ["", "a\0", "x" * 129, 1], ids=repr)
def test_only_a_namespace_binds(namespace: Any) -> None:
    with pytest.raises(InvalidRequestError, match="namespace"):
        RemoteDocumentStore.from_conn_string("nats://x", namespace=namespace)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(InvalidRequestError, match="timeout"):
        RemoteDocumentStore.from_conn_string("nats://x", timeout=timeout)


def test_mistakes_are_told_before_anything_is_sent() -> None:
    with pytest.raises(InvalidRequestError, match="bucket"):
        RemoteDocumentStore.from_conn_string("nats://x", bucket="jskv")
    with pytest.raises(InvalidRequestError, match="scheme"):
        RemoteDocumentStore.from_conn_string("http://x")
    with pytest.raises(InvalidRequestError, match="from_conn_string"):
        RemoteDocumentStore("nats://x")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="document store"):
        DocumentService("nats://x", None)  # type: ignore[arg-type]


def test_a_service_starts_on_the_loop_of_its_client(nats_url: str) -> None:
    with asyncio.Runner() as here, asyncio.Runner() as there:
        client = there.run(nats.connect(nats_url))
        with pytest.raises(WrongThreadError, match="loop of its client"):
            here.run(DocumentService(Gated(), client).start())
        there.run(client.close())


async def test_a_copy_shares_the_connection_and_none_is_pickled(
    remote: RemoteDocumentStore,
) -> None:
    assert copy.copy(remote) is remote
    assert copy.deepcopy(remote) is remote
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(remote)


async def test_answers_come_to_an_inbox_prefix_of_ones_own(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, inbox_prefixes=["_INBOX_app"]),
        RemoteDocumentStore.from_conn_string(
            nats_url, inbox_prefix="_INBOX_app"
        ) as store,
    ):
        client = await nats.connect(nats_url)
        seen: list[str] = []

        async def hear(msg: Any) -> None:
            seen.append(msg.reply)

        await client.subscribe("jskv.v1.>", cb=hear)
        await settle(client)
        assert await store.collections("owner") == ["notes"]
        await settle(client)
        await client.close()
        assert seen
        assert all(reply.startswith("_INBOX_app.") for reply in seen)
