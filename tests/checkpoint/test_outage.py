"""The server dies and comes back: errors while it is away, nothing lost or late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.checkpoint.saving import at, listed, put
from tests.patience import patiently

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import StoreUnavailableError, UnknownOutcomeError

GONE = (StoreUnavailableError, UnknownOutcomeError)


@pytest.fixture
async def saver(own_server: LocalServer) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(own_server.url, timeout=2.0) as opened:
        yield opened


async def test_an_outage_is_an_error_and_ends_by_itself(
    own_server: LocalServer, saver: JetStreamSaver
) -> None:
    await put(saver, "1", {"n": 1})
    await asyncio.to_thread(own_server.kill)
    calls: list[Awaitable[Any]] = [
        saver.aget_tuple(at()),
        listed(saver, at()),
        put(saver, "2", {"n": 2}, parent="1"),
        saver.adelete_thread("t"),
    ]
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors[:2]] == [StoreUnavailableError] * 2
    assert all(isinstance(error, GONE) for error in errors[2:])
    await asyncio.to_thread(own_server.start)
    found = await patiently(lambda: saver.aget_tuple(at()))
    assert found
    assert found.checkpoint["channel_values"] == {"n": 1}
    await patiently(lambda: put(saver, "2", {"n": 2}, parent="1"))
    assert len(await patiently(lambda: listed(saver, at()))) == 2


async def test_what_failed_in_an_outage_does_not_happen_afterwards(
    own_server: LocalServer, saver: JetStreamSaver
) -> None:
    await put(saver, "1", {"n": 1})
    await asyncio.to_thread(own_server.kill)
    errors = await asyncio.gather(
        put(saver, "2", {"n": "during"}, parent="1"),
        saver.aput_writes(at("1"), [("a", "during")], "task"),
        return_exceptions=True,
    )
    assert all(isinstance(error, GONE) for error in errors)
    await asyncio.to_thread(own_server.start)
    await patiently(lambda: put(saver, "2", {"n": "after"}, parent="1"))
    await patiently(lambda: saver.aput_writes(at("1"), [("a", "after")], "task"))
    second = await patiently(lambda: saver.aget_tuple(at("2")))
    first = await patiently(lambda: saver.aget_tuple(at("1")))
    assert first
    assert second
    assert second.checkpoint["channel_values"] == {"n": "after"}
    assert first.pending_writes == [("task", "a", "after")]


async def test_every_acknowledged_checkpoint_survives_the_death_of_the_server(
    own_server: LocalServer, saver: JetStreamSaver
) -> None:
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def write(thread: int) -> None:
        parent = None
        for n in range(10_000):
            id = f"{n:06}"
            try:
                await put(
                    saver, id, {"n": f"{id} " * 300}, parent=parent, thread=thread
                )
            except GONE:
                return
            acknowledged.append(f"{thread}/{id}")
            if len(acknowledged) == 100:
                enough.set()
            parent = id

    for _ in range(3):
        acknowledged.clear()
        enough.clear()
        for thread in range(4):
            await saver.adelete_thread(str(thread))
        writers = [asyncio.create_task(write(thread)) for thread in range(4)]
        await enough.wait()
        await asyncio.to_thread(own_server.kill)
        await asyncio.gather(*writers)
        await asyncio.to_thread(own_server.start)
        there = {
            f"{found.config['configurable']['thread_id']}/"
            f"{found.config['configurable']['checkpoint_id']}": found
            for found in await listed(saver, None)
        }
        assert set(acknowledged) <= there.keys()
        for name, found in there.items():
            id = name.partition("/")[2]
            assert found.checkpoint["channel_values"] == {"n": f"{id} " * 300}
