"""How many messages an operation stores: the cost that everything else follows from."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import Any

import nats
import pytest
from langgraph.checkpoint.base.id import uuid6
from tests.checkpoint.saving import at, checkpoint, meta, put

from jskv_saver import JetStreamSaver

Stored = Callable[[Awaitable[Any]], Awaitable[int]]


@pytest.fixture
async def jetstream(nats_url: str, bucket: str) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        yield saver


@pytest.fixture
async def stored(
    nats_url: str, bucket: str, jetstream: JetStreamSaver
) -> AsyncIterator[Stored]:
    """Awaits a call and tells how many messages it stored."""
    client = await nats.connect(nats_url)
    stream = client.jetstream()

    async def last() -> int:
        return (await stream.stream_info(f"KV_{bucket}")).state.last_seq

    async def count(call: Awaitable[Any]) -> int:
        before = await last()
        await call
        return await last() - before

    yield count
    await client.close()


async def test_a_small_step_is_one_message(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    # The first one in a thread: its index entry, its epoch, itself.
    assert await stored(put(jetstream, "1", {"n": 1})) == 3
    assert await stored(put(jetstream, "2", {"n": 2}, parent="1")) == 1
    assert await stored(put(jetstream, "3", {"n": 3}, parent="2")) == 1


async def test_few_new_bytes_are_one_message_with_their_checkpoint(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    ids = [str(uuid6(clock_seq=n)) for n in range(41)]
    log = [f"message {n}: {secrets.token_hex(150)}" for n in range(3)]
    await put(jetstream, ids[0], {"log": log})
    for parent, id in pairwise(ids):
        log = [*log, f"message {len(log)}: {secrets.token_hex(150)}"]
        call = put(jetstream, id, {"log": log}, parent=parent)
        # When there are 32 small runs, all are stored again as one, and that is apart.
        assert await stored(call) == (2 if len(log) == 33 else 1)
    found = await jetstream.aget_tuple(at())
    assert found is not None
    assert found.checkpoint["channel_values"] == {"log": log}


async def test_new_parts_are_one_message_more(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    messages = ["x" * 600, "y" * 600]
    await put(jetstream, "1", {"a": messages, "b": messages})
    grown = [*messages, "z" * 600]
    call = put(jetstream, "2", {"a": grown, "b": [*grown, "!"]}, parent="1")
    assert await stored(call) == 2


async def test_a_large_value_that_stays_is_not_stored_again(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    document = "d" * 200_000
    await put(jetstream, "1", {"document": document, "n": 1})
    made = checkpoint("2", {"document": document, "n": 2}, {"document": "1", "n": "2"})
    call = jetstream.aput(at("1"), made, meta(), {"n": "2"})
    assert await stored(call) == 1


async def test_a_new_run_is_one_message_more(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    await put(jetstream, "1", run_id="r1")
    assert await stored(put(jetstream, "2", parent="1", run_id="r1")) == 1
    assert await stored(put(jetstream, "3", parent="2", run_id="r2")) == 2


async def test_the_writes_of_a_task_are_one_message(
    jetstream: JetStreamSaver, stored: Stored
) -> None:
    await put(jetstream, "1")
    writes = [("a", "x" * 1000), ("b", None), ("c", [1, 2])]
    assert await stored(jetstream.aput_writes(at("1"), writes, "task")) == 1


async def test_reading_stores_nothing_and_deleting_what_tells_of_it(
    nats_url: str, bucket: str, jetstream: JetStreamSaver, stored: Stored
) -> None:
    await put(jetstream, "1", {"a": "x" * 1000}, run_id="r")
    await jetstream.aput_writes(at("1"), [("a", "y")], "task")

    async def read() -> None:
        assert await jetstream.aget_tuple(at()) is not None
        assert await jetstream.aget_tuple(at("1")) is not None
        assert [found async for found in jetstream.alist(None)]
        assert await jetstream.aget_tuple(at(thread="nobody")) is None
        await jetstream.adelete_thread("nobody")

    assert await stored(read()) == 0
    await jetstream.adelete_thread("t")
    client = await nats.connect(nats_url)
    filter = f"$KV.{bucket}.>"
    info = await client.jetstream().stream_info(f"KV_{bucket}", subjects_filter=filter)
    assert info.state.subjects == {f"$KV.{bucket}.th./default.default.t": 1}
    await client.close()
