"""Callers of the service: their namespace and their inbox, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.isolation.guarded import (
    APP,
    OTHER,
    TWO,
    connected,
    guarded,
    intruder,
    keep_documents,
    last_of,
    live,
    put_raw,
    url_of,
    violations,
)

from jskv_saver import (
    CollectionSpec,
    DocumentCheckpointSaver,
    DocumentService,
    JetStreamDocumentStore,
    LocalServer,
    RemoteDocumentStore,
)
from jskv_saver._nats.tokens import encode_token
from jskv_saver.adapters.wire.subjects import subject_of
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import PermissionDeniedError

INBOXES = ["_INBOX_app", "_INBOX_other"]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with guarded(
        "--mode", "service", *TWO, users=["jskv-service", "app", "other"]
    ) as made:
        yield made


@pytest.fixture(autouse=True)
async def served(server: LocalServer) -> AsyncIterator[JetStreamDocumentStore]:
    """What the service's user serves."""
    url = url_of(server, "jskv-service")
    before = violations(server)
    async with (
        JetStreamDocumentStore.from_conn_string(url) as store,
        DocumentService(store, url, inbox_prefixes=INBOXES),
    ):
        # It hears all that it listens for.
        assert violations(server) == before
        yield store


def remote(server: LocalServer, user: str) -> RemoteDocumentStore:
    return RemoteDocumentStore.from_conn_string(
        url_of(server, user), inbox_prefix=f"_INBOX_{user}"
    )


@pytest.mark.parametrize(("user", "namespace"), [("app", APP), ("other", OTHER)])
async def test_a_saver_does_all_it_does(
    server: LocalServer, user: str, namespace: str
) -> None:
    before = violations(server)
    async with DocumentCheckpointSaver(
        remote(server, user), namespace=namespace, close_store=True
    ) as saver:
        await live(saver)
        await keep_documents(BoundDocuments(saver.store, namespace))
    assert violations(server) == before


async def test_a_large_answer_comes_whole(server: LocalServer) -> None:
    async with remote(server, "app") as store:
        await store.ensure_collection(APP, CollectionSpec("notes"))
        for n in range(5):
            await store.put(APP, "notes", f"{n}", {"b": b"x" * 500_000})
        found = await store.find(APP, "notes")
    assert [len(each.data["b"]) for each in found.items] == [500_000] * 5


async def test_another_namespace_is_refused_by_the_broker(
    server: LocalServer, served: JetStreamDocumentStore
) -> None:
    async with remote(server, "app") as store:
        for call, primitive in (
            (store.put(OTHER, "cp", "stolen", {"n": 1}), "put"),
            (store.get(OTHER, "cp", "stolen"), "get"),
            (store.delete(OTHER, "cp", "stolen"), "delete"),
        ):
            with pytest.raises(PermissionDeniedError) as caught:
                await call
            assert caught.value.subject == subject_of(OTHER, primitive)
    page = await served.find(OTHER, "cp", within="stolen")
    assert page.items == ()


async def test_the_bucket_is_out_of_reach(server: LocalServer) -> None:
    store = JetStreamDocumentStore.from_conn_string(
        url_of(server, "app"), inbox_prefix="_INBOX_app"
    )
    with pytest.raises(PermissionDeniedError) as caught:
        await store.get(APP, "cp", "a")
    assert caught.value.subject == "$JS.API.STREAM.INFO.KV_jskv"
    await store.close()


async def test_nothing_else_may_be_sent_or_heard(server: LocalServer) -> None:
    async with intruder(server, "app") as client:
        await client.may_not_publish(
            "$KV.jskv.x",
            "$JS.API.INFO",
            "$JS.API.STREAM.NAMES",
            "$JS.API.STREAM.CREATE.mine",
            "$JS.API.STREAM.PURGE.KV_jskv",
            "$JS.API.STREAM.DELETE.KV_jskv",
            "$JS.API.STREAM.MSG.GET.KV_jskv",
            "$JS.API.CONSUMER.CREATE.KV_jskv",
            "$JS.API.DIRECT.GET.KV_jskv",
            "$JS.API.DIRECT.GET.KV_jskv.$KV.jskv.x",
            "$SRV.PING",
            "_INBOX.x",
            "_INBOX_other.x",
        )
        await client.may_not_subscribe(
            ">",
            "$KV.>",
            "$SRV.>",
            "_INBOX.>",
            "_INBOX_other.>",
            f"jskv.v1.{encode_token(APP)}.*",
            "jskv.v1.*.*",
        )


async def test_the_service_may_do_no_more_than_it_needs(server: LocalServer) -> None:
    async with intruder(server, "jskv-service") as client:
        await client.may_not_publish(
            "$KV.other.x",
            "$JS.API.STREAM.CREATE.KV_other",
            "$JS.API.STREAM.DELETE.KV_jskv",
            "$JS.API.STREAM.UPDATE.KV_jskv",
            "$JS.API.CONSUMER.CREATE.KV_jskv",
            "jskv.v1.other.get",
            "_INBOX.x",
        )
        await client.may_not_subscribe(">", "$KV.>", "_INBOX_app.>")


@pytest.mark.parametrize(
    "reply", ["$KV.jskv.victim", "$JS.API.STREAM.PURGE.KV_jskv", "jskv.v1.other.get"]
)
async def test_an_answer_is_written_into_no_bucket(
    server: LocalServer, reply: str
) -> None:
    async with (
        connected(server, "jskv-service") as owner,
        intruder(server, "app") as client,
        remote(server, "app") as store,
    ):
        await put_raw(owner, "jskv", "victim", b"whole")
        before = violations(server)
        # Asked of what the user may reach, to be answered where it may not write.
        await client.client.publish(subject_of(APP, "get"), b"", reply=reply)
        await client.client.flush()
        # The service has taken that one up when it answers the next.
        page = await store.find(APP, "cp", within="none")
        assert page.items == ()
        assert await last_of(owner, "jskv", "victim") == b"whole"
        assert client.refused == []
        assert violations(server) == before
