"""A bucket whose server stops, or dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from tests.integration.buckets import (
    CALLS,
    FAST,
    READS,
    SLOW,
    WRITES,
    Call,
    ignore,
)
from tests.patience import at_once, patiently, until

from jskv_saver import LocalServer
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    StoreUnavailableError,
    UnknownOutcomeError,
    WrongThreadError,
)


def stop(server: LocalServer) -> None:
    """Stop it in the middle, all of its threads, until SIGCONT."""
    os.kill(server.pid, signal.SIGSTOP)
    threads = Path(f"/proc/{server.pid}/task")
    while any(") T " not in stat.read_text() for stat in threads.glob("*/stat")):
        pass


LATE = 4.0
"""Seconds by which who waits half a second has given up, on a busy machine too."""


def _lost(name: str) -> type[JskvError]:
    """What a call ends with that was sent and has no answer."""
    return UnknownOutcomeError if name in WRITES else StoreUnavailableError


async def _in_vain(kv: Bucket) -> dict[str, JskvError]:
    """All calls at once; each raises an error at its deadline."""

    async def failing(call: Call) -> JskvError:
        begin = time.monotonic()
        with pytest.raises(JskvError) as caught:
            await call(kv)
        assert 0.5 < time.monotonic() - begin < LATE
        return caught.value

    errors = await asyncio.gather(*map(failing, CALLS.values()))
    return dict(zip(CALLS, errors, strict=True))


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
    await patiently(lambda: kv.put("a", b"before"))
    yield kv
    await kv.close()
    if client is not None:
        await client.close()


class TestOutage:
    async def test_stopped_and_started(
        self, own_server: LocalServer, kv: Bucket
    ) -> None:
        own_server.kill()
        await until(lambda: not kv.client.is_connected)
        for error in (await _in_vain(kv)).values():
            assert isinstance(error, StoreUnavailableError)
            assert error.retryable
        await asyncio.to_thread(own_server.start)
        entry = await patiently(lambda: kv.get("a"))
        assert entry is not None
        assert entry.value == b"before"
        await patiently(lambda: kv.put_many([Put("a", b"after"), Put("b", b"after")]))

    async def test_a_call_waits_for_the_connection(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(own_server.url, bucket, SLOW)
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
        entry = await patiently(lambda: kv.get("a"))
        assert entry is not None
        assert entry.value == b"before"

    async def test_pending_calls_fail_at_once(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(own_server.url, bucket, SLOW)
        await kv.put("a", b"x")
        stop(own_server)
        pending = {name: asyncio.create_task(call(kv)) for name, call in CALLS.items()}
        await until(lambda: len(kv._requests._pending) == len(CALLS))
        assert not any(call.done() for call in pending.values())
        await asyncio.to_thread(own_server.kill)
        with at_once():
            await asyncio.wait(pending.values())
        for name, call in pending.items():
            assert type(call.exception()) is _lost(name), name
        await kv.close()

    async def test_a_server_that_is_silent(
        self, own_server: LocalServer, kv: Bucket
    ) -> None:
        stop(own_server)
        try:
            for name, error in (await _in_vain(kv)).items():
                assert type(error) is _lost(name), name
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        await patiently(lambda: kv.put("b", b"y"))
        assert await patiently(lambda: kv.get("b")) is not None

    async def test_unsent_writes_are_forgotten(
        self, own_server: LocalServer, bucket: str
    ) -> None:
        """More than the socket takes, to a server that reads nothing and dies."""
        kv = Bucket(own_server.url, bucket, SLOW)
        await kv.put("a", b"x")
        stop(own_server)
        puts = [
            asyncio.create_task(kv.put(f"big.{n}", bytes(900_000))) for n in range(30)
        ]
        await until(lambda: len(kv._requests._pending) == len(puts))
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
            assert time.monotonic() - begin < LATE
        await kv.close()
        await until(lambda: len(asyncio.all_tasks()) == tasks)

    async def test_a_server_that_comes_late(self, bucket: str) -> None:
        server = LocalServer()
        server.start()
        url = server.url
        server.kill()
        kv = Bucket(url, bucket, SLOW)
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
        kv = Bucket(own_server.url, bucket, SLOW)
        await kv.put("a", b"x")
        stop(own_server)
        calls = [asyncio.create_task(call(kv)) for call in CALLS.values()]
        await until(lambda: len(kv._requests._pending) == len(calls))
        try:
            with at_once():
                await kv.close()
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
        kv = Bucket(own_server.url, bucket)
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
        await until(lambda: len(acknowledged) > 100)
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
