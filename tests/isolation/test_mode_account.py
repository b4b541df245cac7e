"""An account for each namespace: they cannot so much as name each other's subjects."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator

import pytest
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from tests.checkpoint.saving import at, put, values
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
    read_request,
    url_of,
    violations,
)
from tests.patience import PATIENCE, until

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import PermissionDeniedError, StorageFullError

READ, BAIT = "$JS.API.DIRECT.GET.KV_jskv", read_request("jskv", "bait")


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with guarded(
        "--mode", "account", "--max-file", "8MB", *TWO, users=["app", "other"]
    ) as made:
        yield made


def saver_of(server: LocalServer, user: str, bucket: str = "jskv") -> JetStreamSaver:
    namespace = {"app": APP, "other": OTHER}[user]
    url = url_of(server, user)
    return JetStreamSaver.from_conn_string(url, namespace=namespace, bucket=bucket)


async def test_each_makes_its_bucket_and_does_all_it_does(server: LocalServer) -> None:
    before = violations(server)
    for user, namespace in (("app", APP), ("other", OTHER)):
        async with saver_of(server, user) as saver:
            await live(saver)
            await keep_documents(BoundDocuments(saver.store, namespace))
    assert violations(server) == before


async def test_the_same_names_are_different_places(server: LocalServer) -> None:
    url = url_of(server, "other")
    async with (
        saver_of(server, "app") as mine,
        JetStreamSaver.from_conn_string(url, namespace=APP) as theirs,
    ):
        await put(mine, "1", {"n": "mine"}, thread="same")
        assert await theirs.aget_tuple(at(thread="same")) is None
        await put(theirs, "1", {"n": "theirs"}, thread="same")
        assert await values(mine, thread="same") == {"n": "mine"}


async def test_a_second_bucket_is_refused(server: LocalServer) -> None:
    async with saver_of(server, "app"):
        pass
    with pytest.raises(PermissionDeniedError) as caught:
        async with saver_of(server, "app", bucket="second") as saver:
            await saver.aget_tuple(at())
    assert caught.value.subject == "$JS.API.STREAM.INFO.KV_second"


async def test_nothing_else_may_be_sent_or_heard(server: LocalServer) -> None:
    async with intruder(server, "app") as client:
        await client.may_not_publish(
            "$KV.second.x",
            "$JS.API.STREAM.CREATE.mine",
            "$JS.API.STREAM.UPDATE.KV_jskv",
            "$JS.API.STREAM.DELETE.KV_jskv",
            "$JS.API.CONSUMER.CREATE.KV_jskv",
            "_INBOX.x",
        )
        await client.may_not_subscribe(">", "$KV.>", "$JS.API.>")


async def test_inboxes_of_one_name_are_not_shared(server: LocalServer) -> None:
    heard: list[bytes] = []

    async def hear(message: Msg) -> None:
        heard.append(message.data)

    async with (
        saver_of(server, "app"),
        saver_of(server, "other"),
        connected(server, "app") as listener,
        connected(server, "app") as app,
        connected(server, "other") as other,
    ):
        await listener.subscribe("_INBOX.>", cb=hear)
        await listener.flush()
        await put_raw(other, "jskv", "secret", b"theirs")
        assert await last_of(other, "jskv", "secret") == b"theirs"
        await put_raw(app, "jskv", "secret", b"mine")
        assert await last_of(app, "jskv", "secret") == b"mine"
        # What its own account hears shows that it listens.
        await until(lambda: b"mine" in heard)
    assert b"theirs" not in heard


async def test_an_answer_is_written_into_no_other_account(server: LocalServer) -> None:
    async with (
        saver_of(server, "app"),
        saver_of(server, "other"),
        connected(server, "app") as app,
        connected(server, "other") as other,
    ):
        await put_raw(other, "jskv", "victim", b"whole")
        await put_raw(app, "jskv", "bait", b"chosen by the attacker")
        await app.publish(READ, BAIT, reply="$KV.jskv.victim")
        # It hits the account that it comes from.
        async with asyncio.timeout(PATIENCE):
            while await last_of(app, "jskv", "victim") != b"chosen by the attacker":
                pass
        assert await last_of(other, "jskv", "victim") == b"whole"


async def test_an_answer_removes_no_other_account_s_bucket(server: LocalServer) -> None:
    async with (
        saver_of(server, "app"),
        saver_of(server, "other"),
        connected(server, "app") as app,
        connected(server, "other") as other,
    ):
        await put_raw(other, "jskv", "kept", b"whole")
        await put_raw(app, "jskv", "bait", b"")
        await app.publish(READ, BAIT, reply="$JS.API.STREAM.DELETE.KV_jskv")
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(NoRespondersError):
                while True:
                    await last_of(app, "jskv", "bait")
        assert await last_of(other, "jskv", "kept") == b"whole"


async def test_who_has_filled_an_account_has_filled_no_other(
    server: LocalServer,
) -> None:
    async with saver_of(server, "app") as app, saver_of(server, "other") as other:
        with pytest.raises(StorageFullError):
            await put(app, "1", {"a": secrets.token_bytes(12_000_000)})
        await put(other, "1", {"n": 1}, thread="room")
        assert await values(other, thread="room") == {"n": 1}
