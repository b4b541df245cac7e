"""A writer is killed for real between any two of its messages; another goes on."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from itertools import count

import pytest
from tests.attacks.indexes import check_threads, left_over
from tests.attacks.nursery import Nursery, nursery
from tests.attacks.operations import COPY, OPERATIONS, State, state
from tests.checkpoint.saving import put
from tests.soak import SOAK

from jskv_saver import JetStreamSaver

WRITING = [name for name, each in OPERATIONS.items() if not each.reads]


@pytest.fixture
async def saver(nats_url: str, bucket: str) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as opened:
        yield opened


async def _can_be_cleaned(
    saver: JetStreamSaver, thread: str, after: State, *, prune: bool
) -> None:
    """What nobody refers to goes with a repair, and with the next prune."""
    if not prune:
        await saver.arepair([thread, thread + COPY])
        assert await left_over(saver.store, thread) == set()
        assert await left_over(saver.store, thread + COPY) == set()
        assert await state(saver, thread) == after
        return
    for ns in ("", "sub:1"):
        for id in "89":
            await put(saver, id, {"last": id * 3000}, thread=thread, ns=ns)
    await saver.aprune([thread])
    assert await left_over(saver.store, thread) == set()
    rest = await state(saver, thread)
    kept = {key: row.values for key, row in rest.rows.items() if key[0] == ""}
    whole = {"last": "9" * 3000}
    assert kept == {("", "", "9"): whole, ("", "sub:1", "9"): whole}


async def test_what_a_killed_writer_leaves_is_whole_and_can_be_finished(
    saver: JetStreamSaver, nats_url: str, bucket: str
) -> None:
    deaths: dict[str, int] = {}
    async with nursery() as processes:
        for name in WRITING:
            deaths[name] = await _die_everywhere(
                processes, saver, nats_url, bucket, name
            )
    # All but a repetition send something, and these a good deal.
    assert {name for name, count in deaths.items() if not count} == {"put again"}
    assert deaths["put of a new thread"] > 3
    assert deaths["prune"] > 5
    assert deaths["copy_thread"] > 5


async def _die_everywhere(
    processes: Nursery, saver: JetStreamSaver, url: str, bucket: str, name: str
) -> int:
    """Kill before each message in turn; how many it sends at most."""
    operation = OPERATIONS[name]
    before, after = await _undisturbed(saver, name)
    # Of a call of many steps one is like the next; an odd number takes all kinds.
    for lives in count(step=3 if operation.in_steps and not SOAK else 1):
        thread = f"{name} {lives}"
        await operation.prepare(saver, thread)
        code = await processes.run(
            "tests.attacks.victim:act",
            url=url,
            bucket=bucket,
            operation=name,
            thread=thread,
            lives=lives,
        )
        assert code in (0, -signal.SIGKILL)
        assert operation.allows(await state(saver, thread), before, after), thread
        await check_threads(saver.store, thread, thread + COPY)
        # Another process does it again.
        await operation.call(saver, thread)
        assert await state(saver, thread) == after, thread
        await check_threads(saver.store, thread, thread + COPY)
        await _can_be_cleaned(saver, thread, after, prune=lives % 2 == 1)
        if code == 0:
            return lives
    raise AssertionError


async def _undisturbed(saver: JetStreamSaver, name: str) -> tuple[State, State]:
    operation, thread = OPERATIONS[name], f"{name} twin"
    await operation.prepare(saver, thread)
    before = await state(saver, thread)
    await operation.call(saver, thread)
    return before, await state(saver, thread)
