"""Servers that are killed under load, that stand still, and whose disk is full."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.attacks.servers import terminate
from tests.attacks.writers import AWAY, THREADS, Writers, check
from tests.checkpoint.saving import at, ids, put, values
from tests.conftest import BINARY
from tests.patience import PROMPT, patiently
from tests.soak import SOAK

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import (
    StorageFullError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

ROUNDS = 20 if SOAK else 3
PUTS = 1_000 if SOAK else 180
"""Puts that are acknowledged in a round, each with a write and a read."""
PAUSE = 5.0
TIMEOUT = 1.0


@pytest.fixture
def durable() -> Iterator[LocalServer]:
    """A server that syncs each message before it acknowledges it."""
    with LocalServer(binary=BINARY, sync_interval="always") as server:
        yield server


@pytest.fixture
async def saver(durable: LocalServer) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(
        durable.url, timeout=TIMEOUT, reconnect_time_wait=0.05
    ) as opened:
        yield opened


@pytest.fixture
async def other(
    durable: LocalServer, saver: JetStreamSaver
) -> AsyncIterator[JetStreamSaver]:
    """Another one, which remembers nothing."""
    async with JetStreamSaver.from_conn_string(durable.url) as opened:
        yield opened


@pytest.mark.timeout(600)
async def test_what_was_acknowledged_survives_a_server_that_is_killed_again_and_again(
    durable: LocalServer, saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    writers = Writers(saver, *AWAY)
    async with writers:
        for _ in range(ROUNDS):
            await writers.progress(PUTS)
            await asyncio.to_thread(durable.kill)
            await asyncio.to_thread(durable.start)
        await writers.progress()
    assert writers.errors
    # A put and its writes are two messages that were acknowledged, at least.
    assert 2 * writers.count() > (20_000 if SOAK else 1_000)
    await check(writers, other)


async def test_a_server_that_stands_still_for_five_seconds(
    durable: LocalServer, saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    """Each call ends in time, and all go on by themselves when the server does."""
    writers = Writers(saver, *AWAY)
    async with writers:
        await writers.progress()
        os.kill(durable.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            writers.longest = 0.0
            while time.monotonic() < begin + PAUSE:
                with pytest.raises(StoreUnavailableError):
                    await saver.aget_tuple(at(thread=THREADS[0]))
        finally:
            os.kill(durable.pid, signal.SIGCONT)
        # Three calls, each of which reads once more after what is uncertain.
        assert TIMEOUT * 0.9 < writers.longest < 6 * TIMEOUT + PROMPT
        begin = time.monotonic()
        await writers.progress()
        assert time.monotonic() - begin < 2 * PROMPT
    assert writers.errors
    await check(writers, other)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
async def test_while_there_is_no_server_each_call_ends_in_time(
    durable: LocalServer, saver: JetStreamSaver, how: str
) -> None:
    await put(saver, "1", {"n": 1})
    await asyncio.to_thread(
        durable.kill if how == "SIGKILL" else lambda: terminate(durable)
    )
    begin = time.monotonic()
    with pytest.raises(AWAY):
        await put(saver, "2", {"n": 2}, parent="1")
    with pytest.raises(StoreUnavailableError):
        await saver.aget_tuple(at())
    with pytest.raises(AWAY):
        await saver.aput_writes(at("1"), [("a", 1)], "task")
    with pytest.raises(AWAY):
        await saver.adelete_thread("u")
    assert time.monotonic() - begin < 6 * TIMEOUT + PROMPT
    await asyncio.to_thread(durable.start)
    begin = time.monotonic()
    await patiently(lambda: put(saver, "2", {"n": 2}, parent="1"))
    assert time.monotonic() - begin < PROMPT
    # What was uncertain is there once or not at all: never from a replay afterwards.
    assert await ids(saver, at()) == ["2", "1"]
    found = await saver.aget_tuple(at("1"))
    assert found is not None
    assert found.pending_writes in ([], [("task", "a", 1)])


async def test_a_full_disk_is_told_of_and_nothing_acknowledged_is_lost(
    durable: LocalServer, saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    """The server may write no file that is larger than what is there already."""
    hard = resource.RLIM_INFINITY
    stored = ["000"]
    await put(saver, "000", {"n": "x" * 5000})
    resource.prlimit(durable.pid, resource.RLIMIT_FSIZE, (60_000, hard))
    for n in range(1, 40):
        try:
            content = {"n": os.urandom(5000), "id": n}
            await put(saver, f"{n:03}", content, parent=stored[-1])
        except (UnknownOutcomeError, StorageFullError):
            break
        stored.append(f"{n:03}")
    assert 3 < len(stored) < 39
    # It stays so: each write ends in time, reads work.
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises((UnknownOutcomeError, StorageFullError)):
            await put(saver, "900", {"n": os.urandom(5000)}, parent=stored[-1])
        assert time.monotonic() - begin < 6 * TIMEOUT + PROMPT
        assert (await values(saver))["id"] == len(stored) - 1
        assert await ids(other, at()) == stored[::-1]
    # With room again, and a server that was started anew, all go on by themselves.
    await asyncio.to_thread(durable.kill)
    await asyncio.to_thread(durable.start)
    await patiently(lambda: put(saver, "901", {"n": 1}, parent=stored[-1]))
    found = await patiently(lambda: ids(other, at()))
    # What was uncertain was not stored, or is there whole.
    assert [id for id in found if id < "900"] == stored[::-1]
    for id in found:
        assert await values(other, id)
    assert found[0] == "901"
