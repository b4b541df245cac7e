"""The server dies, stands still, loses its bucket or its mind, while many write."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats
import pytest
from tests.attacks.indexes import check_threads
from tests.attacks.operations import settle
from tests.attacks.servers import terminate
from tests.attacks.writers import AWAY, THREADS, Writers, check, state_of
from tests.checkpoint.saving import at, get, ids, listed, put, values
from tests.patience import patiently

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import (
    BucketNotFoundError,
    StorageFullError,
    StoreUnavailableError,
    UnknownOutcomeError,
)


@pytest.fixture
async def saver(own_server: LocalServer) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(
        own_server.url, reconnect_time_wait=0.05
    ) as opened:
        yield opened


@pytest.fixture
async def hasty(own_server: LocalServer) -> AsyncIterator[JetStreamSaver]:
    """One that waits for an answer for half a second."""

    async def entered() -> JetStreamSaver:
        hasty = JetStreamSaver.from_conn_string(
            own_server.url, timeout=0.5, reconnect_time_wait=0.05
        )
        return await hasty.__aenter__()

    opened = await patiently(entered)
    yield opened
    await opened.aclose()


@pytest.fixture
async def other(
    own_server: LocalServer, saver: JetStreamSaver
) -> AsyncIterator[JetStreamSaver]:
    """Another one, which remembers nothing."""
    async with JetStreamSaver.from_conn_string(own_server.url) as opened:
        yield opened


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
async def test_a_server_that_goes_and_comes_back_loses_nothing_that_was_acknowledged(
    own_server: LocalServer, saver: JetStreamSaver, other: JetStreamSaver, how: str
) -> None:
    end = own_server.kill if how == "SIGKILL" else lambda: terminate(own_server)
    writers = Writers(saver, *AWAY)
    async with writers:
        for _ in range(3):
            await writers.progress()
            await asyncio.to_thread(end)
            await asyncio.to_thread(own_server.start)
        await writers.progress()
    assert writers.errors
    await check(writers, other)


async def test_what_was_removed_stays_away_when_the_server_is_killed(
    own_server: LocalServer, saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    """Records are written once, and so are never brought back by an older version."""
    for thread in THREADS:
        await settle(saver, thread)
    deleted, pruned, stripped = THREADS[:5], THREADS[5:10], THREADS[10:15]
    for thread in deleted:
        await saver.adelete_thread(thread)
    await saver.aprune(pruned)
    await saver.adelete_for_runs([f"{thread} r3" for thread in stripped])
    await asyncio.to_thread(own_server.kill)
    await asyncio.to_thread(own_server.start)
    for number, thread in enumerate(THREADS):
        kept = [[], ["3"], ["2", "1"], ["3", "2", "1"]][number // 5]
        assert await ids(other, at(thread=thread)) == kept
    await check_threads(other.store, *THREADS)
    for thread in deleted:
        await settle(other, thread)
        assert await ids(other, at(thread=thread)) == ["3", "2", "1"]


async def test_a_server_that_stands_still_is_an_error_in_time_and_nothing_twice(
    own_server: LocalServer, hasty: JetStreamSaver, other: JetStreamSaver
) -> None:
    writers = Writers(hasty, *AWAY)
    async with writers:
        await writers.progress()
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                await hasty.aget_tuple(at(thread=THREADS[0]))
            with pytest.raises(UnknownOutcomeError):
                await hasty.aput_writes(at("1", thread="still"), [("a", 1)], "task")
            assert 0.9 < time.monotonic() - begin < 4.5
            # Those who write try once more and give up once more.
            await asyncio.sleep(1)
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        await writers.progress()
    await check(writers, other)
    client = await nats.connect(own_server.url)
    info = await client.jetstream().stream_info("KV_jskv")
    await client.close()
    # Whatever was tried again, a record was stored once: nothing replaces a message
    # but what opens a thread, its index, and writes that merge or come once more.
    assert info.state.last_seq - info.state.messages <= len(THREADS) * 2


CALLS: dict[str, Callable[[JetStreamSaver], Awaitable[Any]]] = {
    "get latest": lambda s: s.aget_tuple(at(thread=THREADS[0])),
    "get by id": lambda s: s.aget_tuple(at("000000", thread=THREADS[0])),
    "get unknown": lambda s: s.aget_tuple(at(thread="unknown")),
    "list": lambda s: listed(s, at(thread=THREADS[0])),
    "list all": lambda s: listed(s),
    "history": lambda s: s.aget_delta_channel_history(
        config=at(thread=THREADS[0]), channels=["n"]
    ),
    "put": lambda s: put(s, "9", {"n": 9}, thread=THREADS[0]),
    "put elsewhere": lambda s: put(s, "9", {"n": 9}, thread="new"),
    "put with parts": lambda s: put(s, "99", {"n": "9" * 4000}, thread="new"),
    "writes": lambda s: s.aput_writes(at("9", thread="x"), [("a", 1)], "t"),
    "delete_thread": lambda s: s.adelete_thread(THREADS[0]),
    "prune": lambda s: s.aprune([THREADS[0]]),
    "delete_for_runs": lambda s: s.adelete_for_runs(["r"]),
    "copy_thread": lambda s: s.acopy_thread(THREADS[0], "copy"),
    "repair": lambda s: s.arepair([THREADS[0]]),
}


async def _all_miss_the_bucket(*savers: JetStreamSaver) -> None:
    for each in savers:
        for call in CALLS.values():
            with pytest.raises(BucketNotFoundError):
                await call(each)


async def test_a_bucket_that_is_deleted_is_an_error_and_never_made_anew(
    own_server: LocalServer, saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    await other.setup()
    writers = Writers(saver, BucketNotFoundError, *AWAY)
    client = await nats.connect(own_server.url)
    jetstream = client.jetstream()
    async with writers:
        await writers.progress()
        await jetstream.delete_stream("KV_jskv")
        await writers.wait(lambda: len(writers.errors) > 200)
        assert {type(error) for error in writers.errors} == {BucketNotFoundError}
        await _all_miss_the_bucket(saver, other)
        with pytest.raises(nats.js.errors.NotFoundError):
            await jetstream.stream_info("KV_jskv")
        # Nor is it made when the connection is, and the bucket is opened again.
        await asyncio.to_thread(terminate, own_server)
        await asyncio.to_thread(own_server.start)
        errors = len(writers.errors)
        await writers.wait(lambda: len(writers.errors) > errors + 100)
        await _all_miss_the_bucket(saver, other)
        with pytest.raises(nats.js.errors.NotFoundError):
            await jetstream.stream_info("KV_jskv")
    await client.close()
    # Who comes anew makes it anew; who was there goes on, with nothing old.
    async with JetStreamSaver.from_conn_string(own_server.url) as fresh:
        assert await listed(fresh) == []
        await put(saver, "1", {"n": "9" * 4000}, parent="0", thread=THREADS[0])
        assert await values(fresh, thread=THREADS[0]) == {"n": "9" * 4000}
        await check_threads(fresh.store, THREADS[0])


async def test_a_bucket_that_fills_up_under_many_writers_keeps_all_and_makes_room(
    own_server: LocalServer,
) -> None:
    async with (
        JetStreamSaver.from_conn_string(own_server.url, max_bytes=600_000) as saver,
        JetStreamSaver.from_conn_string(own_server.url) as other,
    ):
        writers = Writers(saver, StorageFullError)
        thread = THREADS[0]
        async with writers:
            await writers.wait(lambda: len(writers.errors) > 100)
            assert await values(other, thread=thread)
        await check(writers, other)
        for each in THREADS[1:]:
            await other.adelete_thread(each)
        last = writers.acknowledged[thread]
        rest = await get(other, thread=thread)
        await put(
            saver, "999999", state_of(thread, 1), parent=f"{last:06}", thread=thread
        )
        assert await values(other, thread=thread) == state_of(thread, 1)
        assert rest.checkpoint["channel_values"]["n"] in (last, last + 1)
