"""A call that is cancelled at any await: whole or absent, and no harm to others."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest
from tests.attacks.indexes import check_threads
from tests.attacks.operations import (
    COPY,
    LARGE,
    OPERATIONS,
    settled_state,
    spill_early,
    state,
)
from tests.attacks.stepping import cancelled_at, only
from tests.attacks.suspending import Suspending
from tests.checkpoint.saving import OpenSaver, at, ids, put, values
from tests.patience import PATIENCE, at_once
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver, JetStreamSaver
from jskv_saver.checkpoint import turns
from jskv_saver.checkpoint import writes as pending


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "SPILL", pending.SPILL)
    spill_early()


@pytest.fixture(params=["memory", "jetstream, waiting", "jetstream, answered"])
def way(request: pytest.FixtureRequest) -> str:
    """Where it happens; and whether the awaited answer is there already."""
    way: str = request.param
    return way


@pytest.fixture
def late(way: str) -> bool:
    return "answered" in way


@pytest.fixture
def open_saver(way: str, request: pytest.FixtureRequest) -> OpenSaver:
    if way == "memory":
        shared = Suspending()
        return lambda: DocumentCheckpointSaver(shared)
    url = request.getfixturevalue("nats_url")
    bucket = request.getfixturevalue("bucket")
    return lambda: JetStreamSaver.from_conn_string(url, bucket=bucket)


async def _nothing_is_left(
    saver: DocumentCheckpointSaver, tasks: set[asyncio.Task[Any]]
) -> None:
    """No task, no waiter, no turn that is not given back."""
    await only(tasks)
    queues = saver._writer._turns._queues.values()
    assert not any(queue.lock.locked() for queue in queues)
    bucket = getattr(saver.store, "_bucket", None)
    assert bucket is None or bucket._requests._pending == {}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_cancelled_operation_is_done_or_not_and_can_be_repeated(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    name: str,
    late: bool,
) -> None:
    operation = OPERATIONS[name]
    await put(saver, "1", {"x": 1}, thread="beside")
    await operation.prepare(saver, "twin")
    before = await state(other, "twin")
    want = await operation.call(saver, "twin")
    after = await state(other, "twin")
    assert operation.reads == (before == after) or name == "put again"

    # Of a call of many steps one is like the next: both kinds take every other one.
    step = 2 if operation.in_steps and not SOAK else 1
    for suspension in count(int(late and step > 1), step):
        thread = f"t{suspension}"
        await operation.prepare(saver, thread)
        tasks = asyncio.all_tasks()
        # Another call is under way on the same connection.
        beside = asyncio.create_task(values(saver, thread="beside"))
        cancelled = await cancelled_at(
            operation.call(saver, thread), suspension, late=late
        )
        assert await beside == {"x": 1}
        await _nothing_is_left(saver, tasks | {beside})
        assert operation.allows(await settled_state(other, thread), before, after)
        await put(saver, f"2{suspension:03}", {"x": 1}, thread="beside")
        assert await operation.call(saver, thread) == want
        assert await state(other, thread) == after
        await check_threads(saver.store, thread, thread + COPY)
        if not cancelled:
            break
    assert suspension > 0


async def test_who_waits_behind_a_cancelled_put_goes_on_at_once(
    saver: DocumentCheckpointSaver, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For as long as nobody passes on a turn, the next one waits.
    monkeypatch.setattr(turns, "_STUCK", PATIENCE)
    await put(saver, "1", {"x": 1})
    for suspension in count():
        first = OPERATIONS["put beside"].call(saver, "t")
        cancelling = asyncio.create_task(cancelled_at(first, suspension, late=late))
        await asyncio.sleep(0)
        with at_once():
            await put(saver, f"5{suspension:03}", {"x": suspension}, parent="1")
        if not await cancelling:
            break
        await saver.adelete_thread("t")
        await put(saver, "1", {"x": 1})
    assert suspension > 0


async def _live(saver: DocumentCheckpointSaver, thread: str) -> None:
    async with saver as opened:
        await put(opened, "1", {"x": LARGE}, thread=thread)
        await opened.setup()
        assert await values(opened, thread=thread) == {"x": LARGE}


async def test_a_saver_that_is_cancelled_while_it_opens_or_closes_leaves_nothing(
    open_saver: OpenSaver, saver: DocumentCheckpointSaver, late: bool
) -> None:
    for suspension in count():
        thread = f"t{suspension}"
        tasks = asyncio.all_tasks()
        cancelled = await cancelled_at(
            _live(open_saver(), thread), suspension, late=late
        )
        await only(tasks)
        await _live(open_saver(), thread)
        assert await ids(saver, at(thread=thread)) == ["1"]
        if not cancelled:
            break
    assert suspension > 5
