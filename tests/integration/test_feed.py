"""The live feed of a bucket: its consumer, its order, and what it survives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from nats.aio.client import Client
from tests.attacks.proxy import Proxy
from tests.integration.following import consumers, follow, read, until_left, write
from tests.patience import PATIENCE, at_once, patiently

from jskv_saver import JetStreamDocumentStore, JetStreamSaver, LocalServer
from jskv_saver.adapters.jetstream import feed as feeds
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    PermissionDeniedError,
    StoreClosedError,
)


async def test_many_come_in_order_each_once_and_few_wait(
    store: JetStreamDocumentStore,
) -> None:
    changes = follow(store)
    await changes.open()
    await write(store, range(500))
    assert await read(changes, 100) == [*range(100)]
    held = changes._feed._buffer  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert len(held) <= feeds._BATCH
    assert await read(changes, 400) == [*range(100, 500)]
    await changes.close()


async def test_large_ones_come_and_wait_a_few_at_a_time(
    store: JetStreamDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "_BATCH_BYTES", 1)
    for n in range(12):
        await store.put("n", "ls", ("a", f"{n}"), {"n": n, "b": bytes(900_000)})
    changes = follow(store, 0)
    assert await read(changes, 12) == [*range(12)]
    await changes.close()


async def test_no_consumer_is_left_behind(
    store: JetStreamDocumentStore, client: Client, bucket: str, nats_url: str
) -> None:
    async def count() -> int:
        return await consumers(client, bucket)

    async def watched() -> None:
        await anext(aiter(saver.watch()))

    await write(store, range(3))
    saver = JetStreamSaver(store)
    # Left by `break`, by an exception, by cancellation, by `close`.
    for n in range(3):
        changes = follow(store, 0)
        assert await read(changes, 1) == [0]
        assert await count() == n + 1
    watching = asyncio.create_task(watched())
    await until_left(client, bucket, 4)
    watching.cancel()
    await until_left(client, bucket, 3)
    await changes.close()
    await changes.close()
    assert await count() <= 2
    await saver.aput_writes(
        {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}},
        [("x", 1)],
        "task",
    )
    async for event in saver.watch(after=0):
        assert event.kind == "writes"
        break
    await until_left(client, bucket, 2)
    await store.close()
    assert await count() == 0


async def test_a_killed_process_leaves_no_consumer(
    store: JetStreamDocumentStore, client: Client, bucket: str, nats_url: str
) -> None:
    await write(store, range(1))
    program = (
        "import sys\n"
        "from jskv_saver import JetStreamSaver\n"
        "with JetStreamSaver.from_conn_string(sys.argv[1], bucket=sys.argv[2]) as s:\n"
        "    with s.watch() as watch:\n"
        "        print('watching', flush=True)\n"
        "        for event in watch: pass\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, nats_url, bucket, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"watching\n"
    assert await consumers(client, bucket) == 1
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()
    await until_left(client, bucket, 0)


# nats-py does not close a connection that is cut while it introduces itself.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_wire_that_breaks_loses_and_doubles_nothing(
    nats_server: LocalServer, store: JetStreamDocumentStore, bucket: str
) -> None:
    host, port = nats_server.url.rsplit("@")[1].split(":")
    proxy = Proxy(host, int(port), nats_server.url.split("//")[1].split("@")[0])
    await proxy.listen()
    try:
        await write(store, range(1))
        async with JetStreamDocumentStore.from_conn_string(
            proxy.url, bucket=bucket
        ) as behind:
            changes = follow(behind, 0)
            assert await read(changes, 1) == [0]
            reading = asyncio.create_task(read(changes, 300))
            for n in range(1, 301):
                await write(store, [n])
                if n % 30 == 15:
                    # In the middle of what comes.
                    proxy.cut["answer"] = n % 7
                if n % 100 == 60:
                    proxy.hang_up()
            assert await reading == [*range(1, 301)]
            assert proxy.cuts
    finally:
        await proxy.close()


async def test_a_silent_wire_is_noticed(
    nats_server: LocalServer,
    store: JetStreamDocumentStore,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "_HEARTBEAT", 0.3)
    monkeypatch.setattr(feeds, "_SILENCE", 1.0)
    host, port = nats_server.url.rsplit("@")[1].split(":")
    proxy = Proxy(host, int(port), nats_server.url.split("//")[1].split("@")[0])
    await proxy.listen()
    try:
        async with JetStreamDocumentStore.from_conn_string(
            proxy.url, bucket=bucket, timeout=1
        ) as behind:
            changes = follow(behind)
            await changes.open()
            proxy.lost.add("answer")
            await write(store, range(3))
            reading = asyncio.create_task(read(changes, 3))
            await asyncio.sleep(1.5)  # the silence itself
            proxy.heal()
            assert await reading == [0, 1, 2]
    finally:
        await proxy.close()


async def test_a_server_that_is_killed_and_comes_back_leaves_no_gap(
    own_server: LocalServer,
) -> None:
    url = own_server.url
    async with (
        JetStreamDocumentStore.from_conn_string(url, bucket="b", timeout=2) as store,
        JetStreamDocumentStore.from_conn_string(url, bucket="b", timeout=2) as other,
    ):
        changes = follow(other)
        await changes.open()
        for n in range(3):
            await patiently(lambda n=n: write(store, [2 * n]))  # type: ignore[misc]
            assert await read(changes, 1) == [2 * n]
            waiting = asyncio.create_task(read(changes, 1))
            own_server.kill()
            own_server.start()
            await patiently(lambda n=n: write(store, [2 * n + 1]))  # type: ignore[misc]
            assert await waiting == [2 * n + 1]
        await changes.close()


async def test_a_consumer_that_is_taken_away_is_replaced(
    store: JetStreamDocumentStore, client: Client, bucket: str
) -> None:
    changes = follow(store)
    await changes.open()
    for n in range(3):
        feed = changes._feed  # type: ignore[attr-defined]
        await client.jetstream().delete_consumer(f"KV_{bucket}", feed._consumer)
        await write(store, [n])
        assert await read(changes, 1) == [n]
    assert await consumers(client, bucket) == 1
    await changes.close()


async def test_a_gap_in_the_count_is_read_again(
    store: JetStreamDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = follow(store)
    await changes.open()
    feed = changes._feed  # type: ignore[attr-defined]
    taken = 0

    def forgetful(self: feeds.Feed, msg: object) -> None:
        nonlocal taken
        taken += 1
        if taken % 5:
            real(self, msg)  # type: ignore[arg-type]

    real = feeds.Feed._take_message
    monkeypatch.setattr(feeds.Feed, "_take_message", forgetful)
    await write(store, range(40))
    assert await read(changes, 39) == [*range(39)]
    assert taken > 45
    assert feed._count < 40
    await changes.close()


async def test_a_bucket_that_is_made_anew_is_another_one(
    store: JetStreamDocumentStore, client: Client, bucket: str, nats_url: str
) -> None:
    await write(store, range(5))
    changes = follow(store, 0)
    assert await read(changes, 5) == [*range(5)]
    waiting = asyncio.create_task(changes.next())
    await client.jetstream().delete_stream(f"KV_{bucket}")
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as again:
        await write(again, range(9))
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(BucketNotFoundError):
                await waiting
        with pytest.raises(InvalidRequestError, match="revision 77 was never reached"):
            await follow(again, 77).next()


async def test_a_bucket_that_is_deleted_ends_it(
    store: JetStreamDocumentStore, client: Client, bucket: str
) -> None:
    changes = follow(store)
    await changes.open()
    waiting = asyncio.create_task(changes.next())
    await client.jetstream().delete_stream(f"KV_{bucket}")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(BucketNotFoundError):
            await waiting


async def test_a_closed_store_wakes_who_waits(nats_url: str, bucket: str) -> None:
    store = JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)
    async with store:
        changes = follow(store)
        waiting = asyncio.create_task(changes.next())
        await asyncio.sleep(0)
        await changes.open()
    with at_once(), pytest.raises(StoreClosedError):
        await waiting


async def test_what_is_not_permitted_is_named() -> None:
    users = """authorization { users = [
      {user: admin, password: pw}
      {user: nobody, password: pw, permissions: {publish: {deny: "$JS.API.CONSUMER.>"}}}
      {user: deaf, password: pw,
       permissions: {publish: {deny: "$JS.API.CONSUMER.MSG.NEXT.>"}}}
    ] }"""
    with LocalServer(
        user="admin", password="pw", sync_interval="2m", config=users
    ) as server:
        async with JetStreamDocumentStore.from_conn_string(server.url) as store:
            await write(store, range(1))
        for user, subject in (("nobody", "CONSUMER.CREATE"), ("deaf", "MSG.NEXT")):
            url = f"nats://{user}:pw@127.0.0.1:{server.port}"
            async with JetStreamDocumentStore.from_conn_string(url) as store:
                with pytest.raises(PermissionDeniedError) as caught:
                    await follow(store, 0).next()
                assert subject in str(caught.value.subject)
