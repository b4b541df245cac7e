"""A right is taken away while many write: told at once, by subject, and given back."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.attacks.indexes import check_threads
from tests.checkpoint.saving import at, listed, put, values
from tests.conftest import BINARY
from tests.patience import PATIENCE, at_once, patiently, until

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import (
    PermissionDeniedError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

BROKEN = (StoreUnavailableError, UnknownOutcomeError)
USERS = """
authorization {
  users = [
    {user: admin, password: pw}
    {user: agent, password: pw, permissions: {publish: {deny: [%s]}}}
  ]
}
"""
NOTHING = '"nothing"'
TAKEN = {
    "records": ('"$KV.*.cp.>"', "$KV.{bucket}.cp."),
    "writes": ('"$KV.*.wr.>"', "$KV.{bucket}.wr."),
    "reads": ('"$JS.API.DIRECT.GET.>"', "$JS.API.DIRECT.GET.KV_{bucket}"),
    "removal": ('"$JS.API.STREAM.PURGE.>"', "$JS.API.STREAM.PURGE.KV_{bucket}"),
    "listing": ('"$JS.API.STREAM.INFO.>"', "$JS.API.STREAM.INFO.KV_{bucket}"),
}


@pytest.fixture
def guarded() -> Iterator[LocalServer]:
    with LocalServer(
        binary=BINARY,
        user="admin",
        password="pw",
        sync_interval="2m",
        config=USERS % NOTHING,
    ) as server:
        yield server


@pytest.fixture
async def saver(guarded: LocalServer, bucket: str) -> AsyncIterator[JetStreamSaver]:
    url = guarded.url.replace("admin:", "agent:")
    async with JetStreamSaver.from_conn_string(
        url, bucket=bucket, timeout=PATIENCE, reconnect_time_wait=0.05
    ) as opened:
        yield opened


@pytest.fixture
async def admin(guarded: LocalServer, bucket: str) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(guarded.url, bucket=bucket) as opened:
        yield opened


async def _deny(server: LocalServer, subjects: str) -> None:
    """Write the configuration anew and have the running server read it."""
    assert server._home
    path = server._home / "nats-server.conf"
    text = path.read_text()
    before = text[text.index("authorization {\n") :]
    path.write_text(text.replace(before, (USERS % subjects).lstrip()))
    reloads = server.log.count("Reloaded server configuration")
    os.kill(server.pid, signal.SIGHUP)
    await until(lambda: server.log.count("Reloaded server configuration") > reloads)


async def _life(saver: JetStreamSaver, thread: str, turn: int) -> None:
    """All kinds of calls, each of which needs its right."""
    id, parent = f"{turn:06}", f"{turn - 1:06}" if turn else None
    state = {"turn": turn, "keep": thread * 900}
    await put(saver, id, state, parent=parent, thread=thread)
    await saver.aput_writes(at(id, thread=thread), [("a", turn)], "task")
    assert await values(saver, thread=thread) == state
    assert len(await listed(saver, at(thread=thread))) == turn + 1
    await saver.adelete_thread(thread + " other")


@pytest.mark.parametrize("right", TAKEN)
async def test_a_right_that_is_taken_away_is_missed_by_name_and_at_once(
    guarded: LocalServer,
    saver: JetStreamSaver,
    admin: JetStreamSaver,
    bucket: str,
    right: str,
) -> None:
    await _life(saver, "before", 0)
    subjects, missed = TAKEN[right]
    refused: dict[str, PermissionDeniedError] = {}
    turns: Counter[str] = Counter()

    async def live(thread: str) -> None:
        while True:
            try:
                await _life(saver, thread, turns[thread])
                turns[thread] += 1
            except PermissionDeniedError as error:
                refused[thread] = error
                return
            except BROKEN:
                # The server may end a connection whose rights change. Done or not,
                # the same calls again are accepted.
                await asyncio.sleep(0.01)

    running = [asyncio.create_task(live(f"thread {n}")) for n in range(10)]
    await until(lambda: len(turns) == len(running) and min(turns.values()) > 1)
    await _deny(guarded, subjects)
    with at_once():
        await asyncio.gather(*running)

    assert refused.keys() == {f"thread {n}" for n in range(10)}
    for error in refused.values():
        assert error.subject is not None
        assert error.subject.startswith(missed.format(bucket=bucket)), error.subject
    # The others see what was acknowledged, whole.
    for n in range(10):
        rows = await listed(admin, at(thread=f"thread {n}"))
        seen: list[Any] = [row.checkpoint["channel_values"]["turn"] for row in rows]
        assert seen == list(range(len(seen)))[::-1]
    await check_threads(admin.store, *(f"thread {n}" for n in range(10)))

    await _deny(guarded, NOTHING)
    await patiently(lambda: _life(saver, "after", 0))
