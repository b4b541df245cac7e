"""A bad wire: each call has a defined answer in time, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from tests.attacks.indexes import check_threads
from tests.attacks.operations import COPY, OPERATIONS, settle, settled_state, state
from tests.attacks.proxy import Direction, Proxy, proxy_to
from tests.checkpoint.saving import at, listed, put, values
from tests.patience import PATIENCE, at_once, patiently, until

from jskv_saver import JetStreamSaver
from jskv_saver.errors import StoreUnavailableError, UnknownOutcomeError

BROKEN = (StoreUnavailableError, UnknownOutcomeError)
PUBLISHED = re.compile(rb"H?PUB (\$KV\.\S+)")
"""The subjects of what was to be stored."""
DEADLINE = 1.0
"""Seconds that a call of the hasty one waits for an answer."""
LATE = 2.5
"""Seconds that a busy machine may add; with the usual deadline it would be 5 s."""
FEW = [
    "put with parts",
    "put of a new thread",
    "large writes",
    "writes that merge",
    "delete_thread",
    "prune",
    "get latest",
    "list",
]
"""Operations that between them send every kind of message."""


@pytest.fixture
async def proxy(nats_url: str) -> AsyncIterator[Proxy]:
    async with proxy_to(nats_url) as opened:
        yield opened


@pytest.fixture
async def far(proxy: Proxy, bucket: str) -> AsyncIterator[JetStreamSaver]:
    """A saver at the other end of the wire, which waits for an answer very long."""
    async with JetStreamSaver.from_conn_string(
        proxy.url, bucket=bucket, timeout=PATIENCE, reconnect_time_wait=0.01
    ) as opened:
        yield opened
        proxy.heal()


@pytest.fixture
async def hasty(proxy: Proxy, bucket: str) -> AsyncIterator[JetStreamSaver]:
    """One that does not, there too."""

    async def entered() -> JetStreamSaver:
        hasty = JetStreamSaver.from_conn_string(
            proxy.url, bucket=bucket, timeout=DEADLINE, reconnect_time_wait=0.01
        )
        return await hasty.__aenter__()

    opened = await patiently(entered)
    yield opened
    proxy.heal()
    await opened.aclose()


@pytest.fixture
async def near(nats_url: str, bucket: str) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as opened:
        yield opened


class Stored:
    """How many messages the stream has taken."""

    def __init__(self, client: Client, bucket: str) -> None:
        self._client = client
        self._stream = f"KV_{bucket}"

    async def count(self) -> int:
        info = await self._client.jetstream().stream_info(self._stream)
        return info.state.last_seq


@pytest.fixture
async def stored(nats_url: str, bucket: str) -> AsyncIterator[Stored]:
    client = await nats.connect(nats_url)
    yield Stored(client, bucket)
    await client.close()


def _most_often_sent(proxy: Proxy) -> int:
    """How often one and the same key was to be stored."""
    return max(Counter(PUBLISHED.findall(proxy.requests)).values(), default=0)


@pytest.mark.parametrize("way", ["request", "answer"])
@pytest.mark.parametrize("name", FEW)
async def test_a_cut_at_any_piece_leaves_a_defined_answer(
    far: JetStreamSaver,
    near: JetStreamSaver,
    proxy: Proxy,
    stored: Stored,
    name: str,
    way: Direction,
) -> None:
    operation = OPERATIONS[name]
    await operation.prepare(near, "twin")
    before = await state(near, "twin")
    start = await stored.count()
    proxy.requests.clear()
    await operation.call(far, "twin")
    often = _most_often_sent(proxy)
    most = await stored.count() - start
    after = await state(near, "twin")
    for piece in count():
        thread = f"t{piece}"
        await operation.prepare(far, thread)
        start = await stored.count()
        proxy.cut[way] = piece
        proxy.requests.clear()
        with at_once():
            try:
                await operation.call(far, thread)
                done = True
            except BROKEN:
                done = False
        was_cut = not proxy.cut
        # What has no answer is not sent once more, however it is stored.
        assert _most_often_sent(proxy) <= often
        proxy.heal()
        now = await settled_state(near, thread)
        # What was acknowledged is there; what was not is so wholly or not at all.
        assert now == after if done else operation.allows(now, before, after)
        assert await stored.count() - start <= most
        await operation.call(far, thread)
        assert await state(near, thread) == after
        await check_threads(near.store, thread, thread + COPY)
        if not was_cut:
            break
    assert piece > 0
    assert proxy.cuts >= piece


@pytest.mark.parametrize("way", ["request", "answer"])
async def test_a_silent_wire_is_noticed_in_time(
    hasty: JetStreamSaver, near: JetStreamSaver, proxy: Proxy, way: Direction
) -> None:
    await patiently(lambda: settle(hasty, "t"))
    calls: dict[str, Any] = {
        name: OPERATIONS[name].call(hasty, "t") for name in ("put", "writes", "list")
    }
    proxy.lost.add(way)
    begin = time.monotonic()
    answers = await asyncio.gather(*calls.values(), return_exceptions=True)
    spent = time.monotonic() - begin
    # A put looks for what it wrote before it gives up: one call more.
    assert DEADLINE <= spent < 2 * DEADLINE + LATE
    kinds = [type(answer) for answer in answers]
    assert kinds == [UnknownOutcomeError, UnknownOutcomeError, StoreUnavailableError]
    proxy.heal()
    proxy.hang_up()
    # The old connection may not have been given up yet.
    await patiently(lambda: OPERATIONS["put"].call(hasty, "t"))
    await patiently(lambda: OPERATIONS["writes"].call(hasty, "t"))
    assert await values(near, "4", thread="t") == {"x": "small"}
    assert len(await listed(near, at(thread="t"))) == 4


async def test_bytes_that_come_one_by_one_and_late_are_put_together(
    far: JetStreamSaver, near: JetStreamSaver, proxy: Proxy
) -> None:
    proxy.piece = 1
    await put(far, "1", {"x": "small"}, thread="small")
    assert await values(far, thread="small") == {"x": "small"}
    proxy.piece = 61
    await settle(far, "t")
    await OPERATIONS["put with parts"].call(far, "t")
    assert await listed(far, at(thread="t")) == await listed(near, at(thread="t"))
    proxy.piece, proxy.delay = 0, 0.01
    await far.acopy_thread("t", "t" + COPY)
    await far.aprune(["t"])
    assert await state(far, "t") == await state(near, "t")


# nats-py does not close a connection that is cut while it introduces itself.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_wire_that_is_cut_all_the_time_loses_and_doubles_nothing(
    far: JetStreamSaver, near: JetStreamSaver, proxy: Proxy
) -> None:
    """Ten threads of puts, each repeated until it is acknowledged."""
    await far.setup()
    errors = acknowledged = at_last_cut = 0
    written: dict[str, int] = {}
    done = asyncio.Event()

    def go_on() -> bool:
        # However slow the machine is, something succeeds between two cuts.
        return acknowledged > at_last_cut or done.is_set()

    async def cut() -> None:
        nonlocal at_last_cut
        while not done.is_set():
            await until(go_on)
            at_last_cut = acknowledged
            proxy.hang_up()

    async def write(thread: str) -> None:
        nonlocal errors, acknowledged
        parent = None
        for n in count():
            if n >= 8 and errors >= 40:
                break
            id = f"{n:03}"
            state = {"n": n, "large": f"{thread} {n} " * 400}
            while True:
                try:
                    await put(far, id, state, parent=parent, thread=thread)
                    await far.aput_writes(at(id, thread=thread), [("a", n)], "task")
                    acknowledged += 1
                    break
                except BROKEN:
                    errors += 1
            parent = id
        written[thread] = n

    cutting = asyncio.create_task(cut())
    try:
        async with asyncio.timeout(50):
            await asyncio.gather(*(write(f"thread {n}") for n in range(10)))
    finally:
        done.set()
        await cutting
    assert len(written) == 10
    for thread, puts in written.items():
        rows = await listed(near, at(thread=thread))
        numbers = [row.checkpoint["channel_values"]["n"] for row in rows]
        assert numbers == [*reversed(range(puts))]
        for row in rows:
            number = row.checkpoint["channel_values"]["n"]
            assert row.checkpoint["channel_values"]["large"] == (
                f"{thread} {number} " * 400
            )
            assert row.pending_writes == [("task", "a", number)]
        await check_threads(near.store, thread)
