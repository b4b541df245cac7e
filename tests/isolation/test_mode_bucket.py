"""A bucket for each namespace in one account: for programs that trust each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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
    read_request,
    url_of,
    violations,
)
from tests.patience import PATIENCE

from jskv_saver import JetStreamDocumentStore, JetStreamSaver, LocalServer
from jskv_saver.adapters.jetstream.options import BucketOptions
from jskv_saver.adapters.jetstream.stream import LEVEL_FAST, stream_config
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import PermissionDeniedError

MINE, THEIRS, INDIRECT = "jskv-app", "jskv-other", "jskv-indirect"
NAMESPACES = {"app": APP, "other": OTHER, "indirect": "indirect"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with guarded(
        "--mode",
        "bucket",
        *TWO,
        *["--namespace", "indirect", "--user", "indirect"],
        users=["jskv-owner", "app", "other", "indirect"],
    ) as made:
        # A thread of its own: the test that asks for this may have a loop already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, make_buckets(made)).result()
        assert violations(made) == []
        yield made


async def make_buckets(server: LocalServer) -> None:
    for bucket in (MINE, THEIRS):
        async with JetStreamDocumentStore.from_conn_string(
            url_of(server, "jskv-owner"),
            bucket=bucket,
            inbox_prefix="_INBOX_jskv-owner",
        ) as store:
            await store.setup()
    # One that is read from its leader only, as a replicated one is in part.
    async with connected(server, "jskv-owner", "_INBOX_jskv-owner") as owner:
        config = stream_config(INDIRECT, BucketOptions(), LEVEL_FAST)
        made = await owner.request(
            f"$JS.API.STREAM.CREATE.KV_{INDIRECT}",
            json.dumps(config | {"allow_direct": False}).encode(),
            timeout=10,
        )
        assert b"error" not in made.data, made.data


def saver_of(server: LocalServer, user: str, bucket: str) -> JetStreamSaver:
    return JetStreamSaver.from_conn_string(
        url_of(server, user),
        namespace=NAMESPACES[user],
        bucket=bucket,
        inbox_prefix=f"_INBOX_{user}",
    )


@pytest.mark.parametrize(
    ("user", "bucket"), [("app", MINE), ("other", THEIRS), ("indirect", INDIRECT)]
)
async def test_a_saver_does_all_it_does(
    server: LocalServer, user: str, bucket: str
) -> None:
    before = violations(server)
    async with saver_of(server, user, bucket) as saver:
        await live(saver)
        await keep_documents(BoundDocuments(saver.store, NAMESPACES[user]))
    assert violations(server) == before


async def test_the_other_bucket_is_refused(server: LocalServer) -> None:
    with pytest.raises(PermissionDeniedError) as caught:
        async with saver_of(server, "app", THEIRS) as saver:
            await live(saver)
    assert caught.value.subject == f"$JS.API.STREAM.INFO.KV_{THEIRS}"


async def test_nothing_of_others_may_be_sent_or_heard(server: LocalServer) -> None:
    async with intruder(server, "app") as client:
        await client.may_not_publish(
            f"$KV.{THEIRS}.cp.x",
            f"$JS.API.DIRECT.GET.KV_{THEIRS}",
            f"$JS.API.DIRECT.GET.KV_{THEIRS}.$KV.{THEIRS}.cp.x",
            f"$JS.API.STREAM.INFO.KV_{THEIRS}",
            f"$JS.API.STREAM.PURGE.KV_{THEIRS}",
            f"$JS.API.STREAM.MSG.GET.KV_{THEIRS}",
            "$JS.API.STREAM.NAMES",
            "_INBOX_other.x",
            # Who makes a stream may name another as its source, and read that one.
            f"$JS.API.STREAM.CREATE.KV_{MINE}",
            f"$JS.API.STREAM.UPDATE.KV_{MINE}",
            f"$JS.API.STREAM.DELETE.KV_{MINE}",
            # Who makes a consumer chooses where its messages go.
            f"$JS.API.CONSUMER.CREATE.KV_{MINE}",
        )
        await client.may_not_subscribe(
            ">", "$KV.>", f"$KV.{MINE}.>", "$JS.>", "_INBOX.>", "_INBOX_other.>"
        )


async def test_who_makes_the_buckets_reads_and_writes_none(server: LocalServer) -> None:
    async with intruder(server, "jskv-owner") as client:
        await client.may_not_publish(
            f"$KV.{MINE}.cp.x",
            f"$JS.API.DIRECT.GET.KV_{MINE}",
            f"$JS.API.STREAM.PURGE.KV_{MINE}",
            f"$JS.API.STREAM.DELETE.KV_{MINE}",
            "$JS.API.STREAM.CREATE.KV_mine",
        )
        await client.may_not_subscribe("$KV.>", "_INBOX_app.>", "_INBOX.>")


async def test_the_limit_of_this_mode_an_answer_is_written_into_the_other_bucket(
    server: LocalServer,
) -> None:
    """Nothing checks where an answer goes: the reason why this mode needs trust."""
    async with (
        connected(server, "app", "_INBOX_app") as app,
        connected(server, "other", "_INBOX_other") as other,
    ):
        await put_raw(other, THEIRS, "victim", b"whole")
        await put_raw(app, MINE, "bait", b"chosen by the attacker")
        read = f"$JS.API.DIRECT.GET.KV_{MINE}"
        bait = read_request(MINE, "bait")
        await app.publish(read, bait, reply=f"$KV.{THEIRS}.victim")
        async with asyncio.timeout(PATIENCE):
            while (found := await last_of(other, THEIRS, "victim")) == b"whole":
                pass
    assert found == b"chosen by the attacker"


async def test_the_limit_of_this_mode_an_answer_erases_in_the_other_bucket(
    server: LocalServer,
) -> None:
    """The server takes such an answer for a request of its own."""
    async with (
        connected(server, "app", "_INBOX_app") as app,
        connected(server, "other", "_INBOX_other") as other,
    ):
        await put_raw(other, THEIRS, "erased", b"whole")
        purge = json.dumps({"filter": f"$KV.{THEIRS}.erased"}).encode()
        await put_raw(app, MINE, "bait", purge)
        read = f"$JS.API.DIRECT.GET.KV_{MINE}"
        bait = read_request(MINE, "bait")
        await app.publish(read, bait, reply=f"$JS.API.STREAM.PURGE.KV_{THEIRS}")
        async with asyncio.timeout(PATIENCE):
            while await last_of(other, THEIRS, "erased") is not None:
                pass
