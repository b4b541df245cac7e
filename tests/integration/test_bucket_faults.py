"""A bucket whose server stops, dies, refuses, or is not the one that was expected."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from jskv_saver import LocalServer
from jskv_saver._server_process import free_port
from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Entry, Put
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreUnavailableError,
    UnknownOutcomeError,
    WrongThreadError,
)

Call = Callable[[Bucket], Coroutine[Any, Any, Any]]
READS: dict[str, Call] = {
    "get": lambda kv: kv.get("a"),
    "last": lambda kv: kv.last("a.*"),
    "get_many": lambda kv: kv.get_many(["a", "b.*"]),
    "names": lambda kv: kv.names(["a.*"]),
}
WRITES: dict[str, Call] = {
    "put": lambda kv: kv.put("a", b"x"),
    "put_many": lambda kv: kv.put_many([Put("a", b"x"), Put("b", b"x")]),
    # Where the server has none, another write has to do.
    "put_atomic": lambda kv: (
        kv.put_atomic([Put("a", b"x"), Put("b", b"x")])
        if kv.atomic
        else kv.put("a", b"x")
    ),
    "purge": lambda kv: kv.purge("a"),
    "delete": lambda kv: kv.delete("a", 1),
}
CALLS = READS | WRITES
FAST = BucketOptions(timeout=0.6)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not happen")


def stop(server: LocalServer) -> None:
    """Stop it in the middle, all of its threads, until SIGCONT."""
    os.kill(server.pid, signal.SIGSTOP)
    time.sleep(0.05)


@pytest.fixture(params=["own", "given"])
async def kv(
    request: pytest.FixtureRequest, own_server: LocalServer, bucket: str
) -> AsyncIterator[Bucket]:
    """With a connection of its own, or one that it was given."""
    client: Client | None = None
    if request.param == "given":
        client = await nats.connect(
            own_server.url, reconnect_time_wait=0.1, error_cb=ignore
        )
    kv = Bucket(client or own_server.url, bucket, FAST)
    await kv.put("a", b"before")
    yield kv
    await kv.close()
    if client is not None:
        await client.close()


async def ignore(error: Exception) -> None:
    """An error callback that says nothing."""


class TestOutage:
    async def test_stopped_and_started(
        self, own_server: LocalServer, kv: Bucket
    ) -> None:
        own_server.kill()
        await until(lambda: not kv.client.is_connected)
        for call in CALLS.values():
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError) as caught:
                await call(kv)
            assert caught.value.retryable
            assert 0.3 < time.monotonic() - begin < 2
        own_server.start()
        # A call waits for the connection, up to its deadline.
        for _ in range(100):
            result = (await asyncio.gather(kv.get("a"), return_exceptions=True))[0]
            if isinstance(result, Entry):
                break
        assert isinstance(result, Entry)
        assert result.value == b"before"
        await kv.put_many([Put("a", b"after"), Put("b", b"after")])

    async def test_a_call_waits_for_the_connection(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(own_server.url, bucket)
        await kv.put("a", b"x")
        own_server.kill()
        await until(lambda: not kv.client.is_connected)
        waiting = asyncio.create_task(kv.get("a"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(own_server.start)
        entry = await waiting
        assert entry is not None
        assert entry.value == b"x"
        await kv.close()

    async def test_what_is_refused_during_an_outage_never_happens(
        self, own_server: LocalServer, kv: Bucket
    ) -> None:
        own_server.kill()
        await until(lambda: not kv.client.is_connected)
        with pytest.raises(StoreUnavailableError):
            await kv.put("a", b"during")
        await asyncio.to_thread(own_server.start)
        await until(lambda: kv.client.is_connected)
        await asyncio.sleep(0.3)
        entry = await kv.get("a")
        assert entry is not None
        assert entry.value == b"before"

    @pytest.mark.parametrize("name", CALLS)
    async def test_pending_calls_fail_at_once(
        self, own_server: LocalServer, bucket: str, name: str
    ) -> None:
        kv = Bucket(own_server.url, bucket, BucketOptions(timeout=30))
        await kv.put("a", b"x")
        stop(own_server)
        pending = asyncio.create_task(CALLS[name](kv))
        await asyncio.sleep(0.1)
        assert not pending.done()
        begin = time.monotonic()
        await asyncio.to_thread(own_server.kill)
        expected = UnknownOutcomeError if name in WRITES else StoreUnavailableError
        with pytest.raises(expected):
            await pending
        assert time.monotonic() - begin < 2
        await kv.close()

    @pytest.mark.parametrize("name", CALLS)
    async def test_a_server_that_is_silent(
        self, own_server: LocalServer, bucket: str, name: str
    ) -> None:
        kv = Bucket(own_server.url, bucket, FAST)
        await kv.put("a", b"x")
        stop(own_server)
        try:
            expected = UnknownOutcomeError if name in WRITES else StoreUnavailableError
            begin = time.monotonic()
            with pytest.raises(expected):
                await CALLS[name](kv)
            assert 0.5 < time.monotonic() - begin < 2
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        await kv.put("b", b"y")
        assert await kv.get("b") is not None
        await kv.close()

    async def test_unsent_writes_are_forgotten(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        """More than the socket takes, to a server that reads nothing and dies."""
        kv = Bucket(own_server.url, bucket, BucketOptions(timeout=2))
        await kv.put("a", b"x")
        stop(own_server)
        puts = [
            asyncio.create_task(kv.put(f"big.{n}", bytes(900_000))) for n in range(30)
        ]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own_server.kill)
        results = await asyncio.gather(*puts, return_exceptions=True)
        assert all(isinstance(result, UnknownOutcomeError) for result in results)
        await asyncio.to_thread(own_server.start)
        await until(lambda: kv.client.is_connected)
        await asyncio.sleep(0.5)
        assert await kv.names(["big.*"]) == []
        await kv.close()

    async def test_no_server_at_all(self, bucket: str) -> None:
        kv = Bucket("nats://127.0.0.1:1", bucket, FAST)
        tasks = len(asyncio.all_tasks())
        for call in (kv.open, lambda: kv.get("a"), lambda: kv.put("a", b"")):
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="127\\.0\\.0\\.1:1"):
                await call()
            assert time.monotonic() - begin < 2
        await kv.close()
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == tasks

    async def test_a_server_that_comes_late(self, bucket: str) -> None:
        server = LocalServer()
        server.start()
        url = server.url
        server.kill()
        kv = Bucket(url, bucket)
        putting = asyncio.create_task(kv.put("a", b"x"))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.start)
        assert await putting == 1
        await kv.close()
        server.stop()

    async def test_a_secret_is_not_told(self, bucket: str) -> None:
        kv = Bucket("nats://me:secret@127.0.0.1:1", bucket, FAST)
        with pytest.raises(StoreUnavailableError) as caught:
            await kv.open()
        assert "secret" not in str(caught.value)
        await kv.close()

    async def test_the_given_client_was_closed(
        self, nats_url: str, bucket: str
    ) -> None:
        client = await nats.connect(nats_url)
        kv = Bucket(client, bucket)
        await kv.put("a", b"x")
        await client.close()
        for call in (*READS.values(), *WRITES.values()):
            with pytest.raises(StoreUnavailableError, match="closed"):
                await call(kv)
        await kv.close()

    async def test_closed_while_calls_are_pending(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(own_server.url, bucket)
        await kv.put("a", b"x")
        stop(own_server)
        calls = [asyncio.create_task(call(kv)) for call in CALLS.values()]
        await asyncio.sleep(0.05)
        try:
            await asyncio.wait_for(kv.close(), 5)
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, JskvError) for result in results)

    async def test_a_connection_closed_by_the_server_is_made_anew(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(own_server.url, bucket)
        await kv.put("a", b"x")
        before = kv.client
        # An oversized line: the server closes, and nats-py gives up for good.
        await before.publish("x" * 5000, b"")
        await until(lambda: before.is_closed)
        assert await kv.get("a") is not None
        assert kv.client is not before
        await kv.put_many([Put("a", b"x"), Put("b", b"x")])
        await kv.close()

    async def test_options_beside_a_client_are_refused(
        self, nats_url: str, bucket: str
    ) -> None:
        client = await nats.connect(nats_url)
        with pytest.raises(InvalidRequestError, match="token"):
            Bucket(client, bucket, connect={"token": "x"})
        await client.close()

    async def test_another_event_loop(self, nats_url: str, bucket: str) -> None:
        kv = Bucket(nats_url, bucket)
        await kv.put("a", b"x")

        def elsewhere() -> None:
            async def get() -> None:
                await kv.get("a")

            asyncio.run(get())

        with pytest.raises(WrongThreadError):
            await asyncio.to_thread(elsewhere)
        await kv.close()


class TestKill:
    @pytest.mark.parametrize("relaxed", [True, False])
    async def test_a_prefix_is_stored(
        self, own_server: LocalServer, bucket: str, relaxed: bool
    ) -> None:
        """SIGKILL while batches are written: each is there up to some point."""
        kv = Bucket(own_server.url, bucket, BucketOptions(timeout=3))
        await kv.open()
        acknowledged: list[int] = []
        number = 0

        async def write() -> None:
            nonlocal number
            while True:
                number += 1
                mine = number
                writes = [Put(f"b.{mine}.{m}", bytes(2000)) for m in range(8)]
                await kv.put_many(writes, exact=False, relaxed=relaxed)
                acknowledged.append(mine)

        writers = [asyncio.create_task(write()) for _ in range(4)]
        await asyncio.sleep(0.4)
        await asyncio.to_thread(own_server.kill)
        results = await asyncio.gather(*writers, return_exceptions=True)
        assert all(
            isinstance(r, UnknownOutcomeError | StoreUnavailableError) for r in results
        )
        await asyncio.to_thread(own_server.start)
        stored: dict[int, set[int]] = {}
        for name in await kv.names(["b.>"]):
            _, number_text, part = name.split(".")
            stored.setdefault(int(number_text), set()).add(int(part))
        assert acknowledged
        for batch in acknowledged:
            assert stored[batch] == set(range(8))
        for parts in stored.values():
            assert parts == set(range(len(parts)))
        await kv.close()


PERMISSIONS = """
authorization {
  users = [
    {user: admin, password: pw}
    {user: limited, password: pw, permissions: {
      publish: {deny: ["$KV.secret.>", "$KV.*.no.>", "$KV.*.UPPER",
                       "$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.PURGE.>",
                       "$JS.API.INFO"]}
    }}
    {user: reader, password: pw, permissions: {
      publish: ["$JS.API.STREAM.INFO.>", "$JS.API.DIRECT.GET.>"]
    }}
    {user: deaf, password: pw, permissions: {subscribe: "_INBOX_deaf.>"}}
    {user: blind, password: pw, permissions: {publish: {deny: "$JS.>"}}}
  ]
}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalServer]:
    """A server whose users may not do everything."""
    with LocalServer(
        user="admin", password="pw", sync_interval="2m", config=PERMISSIONS
    ) as server:
        yield server


def as_user(server: LocalServer, user: str) -> str:
    return f"nats://{user}:pw@127.0.0.1:{server.port}"


@pytest.fixture(params=["own", "given"])
async def source(
    request: pytest.FixtureRequest, guarded: LocalServer
) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
    """Of a user: an address, or a connected client."""
    clients: list[Client] = []

    async def make(user: str) -> Any:
        url = as_user(guarded, user)
        if request.param == "own":
            return url
        clients.append(await nats.connect(url, error_cb=ignore))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


Source = Callable[[str], Awaitable[Any]]


class TestPermissions:
    async def test_a_key_that_is_refused(self, source: Source, bucket: str) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        kv = Bucket(await source("limited"), bucket)
        await kv.put("yes", b"x")
        begin = time.monotonic()
        for _ in range(2):
            with pytest.raises(PermissionDeniedError) as caught:
                await kv.put("no.1", b"x")
            assert caught.value.subject == f"$KV.{bucket}.no.1"
        # nats-py tells the subject in lower case.
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.put("UPPER", b"x")
        assert caught.value.subject == f"$KV.{bucket}.UPPER"
        with pytest.raises(PermissionDeniedError):
            await kv.purge("yes")
        assert time.monotonic() - begin < 2
        assert await kv.get("yes") is not None
        assert await admin.names(["no.>"]) == []
        await kv.close()
        await admin.close()

    @pytest.mark.parametrize("failing", range(3))
    @pytest.mark.parametrize("method", ["put_many", "put_atomic"])
    async def test_a_batch_with_a_key_that_is_refused(
        self, source: Source, bucket: str, failing: int, method: str
    ) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        kv = Bucket(await source("limited"), bucket)
        writes = [Put(f"a.{n}", b"x") for n in range(3)]
        writes[failing] = Put("no.1", b"x")
        await kv.open()
        if method == "put_many" or kv.atomic:
            with pytest.raises(PermissionDeniedError) as caught:
                await getattr(kv, method)(writes)
            assert caught.value.subject == f"$KV.{bucket}.no.1"
            count = failing if method == "put_many" else 0
            if failing == 2:
                # The refusal of the last one overtakes the others.
                await asyncio.sleep(0.2)
            assert await admin.names(["a.*"]) == [f"a.{n}" for n in range(count)]
        await kv.close()
        await admin.close()

    async def test_a_reader(self, source: Source, bucket: str) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.put("a", b"x")
        kv = Bucket(await source("reader"), bucket)
        assert await kv.get("a") is not None
        assert len(await kv.get_many(["a"])) == 1
        assert await kv.names(["a"]) == ["a"]
        assert await kv.last("a") is not None
        for call in WRITES.values():
            with pytest.raises(PermissionDeniedError):
                await call(kv)
        await kv.close()
        await admin.close()

    async def test_a_bucket_that_may_not_be_made(
        self, source: Source, bucket: str
    ) -> None:
        kv = Bucket(await source("limited"), bucket)
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.put("a", b"x")
        assert caught.value.subject == f"$JS.API.STREAM.CREATE.KV_{bucket}"
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        # It is there now, and no rights of an administrator are needed.
        await kv.put("a", b"x")
        await kv.close()
        await admin.close()

    async def test_no_right_to_ask(self, source: Source, bucket: str) -> None:
        kv = Bucket(await source("blind"), bucket)
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.get("a")
        assert caught.value.subject == f"$JS.API.STREAM.INFO.KV_{bucket}"
        await kv.close()

    async def test_no_right_to_hear_an_answer(
        self, source: Source, guarded: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(await source("deaf"), bucket)
        begin = time.monotonic()
        for _ in range(2):
            with pytest.raises(PermissionDeniedError, match="_INBOX"):
                await kv.get("a")
        assert time.monotonic() - begin < 2
        await kv.close()
        prefix = {"inbox_prefix": "_INBOX_deaf"}
        kv = Bucket(as_user(guarded, "deaf"), bucket, connect=prefix)
        await kv.put_many([Put("a", b"x"), Put("b", b"y")])
        assert len(await kv.get_many(["a", "b"])) == 2
        await kv.close()

    @pytest.mark.parametrize("login", ["admin:wrong", "nobody:pw", ""])
    async def test_wrong_credentials(
        self, guarded: LocalServer, bucket: str, login: str
    ) -> None:
        at = f"{login}@" if login else ""
        kv = Bucket(f"nats://{at}127.0.0.1:{guarded.port}", bucket)
        begin = time.monotonic()
        with pytest.raises(PermissionDeniedError):
            await kv.open()
        assert time.monotonic() - begin < 2
        await kv.close()

    async def test_environment(
        self, guarded: LocalServer, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NATS_URL", f"nats://127.0.0.1:{guarded.port}")
        monkeypatch.setenv("NATS_USER", "admin")
        monkeypatch.setenv("NATS_PASSWORD", "pw")
        kv = Bucket(bucket=bucket)
        await kv.put("a", b"x")
        await kv.close()
        wrong = Bucket(None, bucket, connect={"user": "admin", "password": "wrong"})
        with pytest.raises(PermissionDeniedError):
            await wrong.open()
        await wrong.close()


class TestOtherServers:
    async def test_jetstream_is_off(self, bucket: str) -> None:
        with LocalServer(config="jetstream: disabled") as server:
            kv = Bucket(server.url, bucket)
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="JetStream"):
                await kv.get("a")
            assert time.monotonic() - begin < 2
            await kv.close()

    async def test_a_domain(self, bucket: str) -> None:
        """Two linked servers with a bucket of the same name each: one domain is one."""
        port = free_port("127.0.0.1")
        hub_config = f"""
            jetstream {{ domain: hub }}
            leafnodes {{ listen: "127.0.0.1:{port}" }}
        """
        with LocalServer(config=hub_config, user="u", password="p") as hub:
            leaf_config = f"""
                jetstream {{ domain: leaf }}
                leafnodes {{ remotes: [ {{ url: "nats://u:p@127.0.0.1:{port}" }} ] }}
            """
            with LocalServer(config=leaf_config) as leaf:
                await self.use_both(hub, leaf, bucket)

    async def use_both(self, hub: LocalServer, leaf: LocalServer, bucket: str) -> None:
        client = await nats.connect(leaf.url)
        there = Bucket(hub.url, bucket)
        await there.put("a", b"hub")
        near = Bucket(client, bucket)
        await near.put("a", b"leaf")
        far = Bucket(client, bucket, BucketOptions(domain="hub"))
        for _ in range(50):
            (result,) = await asyncio.gather(far.open(), return_exceptions=True)
            if result is None:
                break
            await asyncio.sleep(0.1)
        entry = await far.get("a")
        assert entry is not None
        assert entry.value == b"hub"
        await far.put("a", b"far", expected=entry.revision, expected_filter="a")
        assert await there.get("a") == await far.get("a")
        await far.put_many([Put("b.1", b"x"), Put("b.2", b"x", 0)])
        if far.atomic:
            await far.put_atomic([Put("b.3", b"x"), Put("b.4", b"x", 0)])
        names = await far.names(["b.*"])
        assert len(names) >= 2
        assert [e.key for e in await far.get_many(["b.*"])] == names
        assert await there.names(["b.*"]) == names
        await far.delete("b.1", (await far.get_many(["b.1"]))[0].revision)
        assert await there.get("b.1") is None
        assert await far.purge("b.>") == len(names) - 1
        # The near one has seen nothing of it.
        entry = await near.get("a")
        assert entry is not None
        assert entry.value == b"leaf"
        assert await near.names(["b.*"]) == []
        absent = Bucket(client, bucket, BucketOptions(domain="none", timeout=1))
        with pytest.raises(StoreUnavailableError):
            await absent.open()
        await there.close()
        await client.close()
