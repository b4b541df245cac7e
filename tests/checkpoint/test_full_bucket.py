"""A bucket that is full: what was acknowledged stays whole, and room can be made."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.js.errors import ServiceUnavailableError
from tests.checkpoint.saving import (
    at,
    get,
    id_of,
    listed,
    numbered,
    put,
    put_chain,
    values,
)

from jskv_saver import JetStreamSaver
from jskv_saver.errors import StorageFullError

MAX_BYTES = 300_000


@pytest.fixture
async def saver(nats_url: str, bucket: str) -> AsyncIterator[JetStreamSaver]:
    opened = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, max_bytes=MAX_BYTES
    )
    async with opened as saver:
        yield saver


@pytest.fixture
async def other(
    nats_url: str, bucket: str, saver: JetStreamSaver
) -> AsyncIterator[JetStreamSaver]:
    """Another saver, which remembers nothing of what was stored."""
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as other:
        yield other


def _text(size: int) -> str:
    """Random text, of which nothing can be stored twice."""
    return secrets.token_hex(size // 2)


async def _fill(saver: JetStreamSaver, size: int, thread: str = "t") -> list[Any]:
    """Put a growing value until the bucket is full; the values acknowledged."""
    acknowledged: list[Any] = []
    log: list[str] = []
    parent = None
    for id in numbered(1000):
        log = [*log, _text(size)]
        state = {"log": log, "a": _text(size), "n": len(log)}
        try:
            await put(saver, id, state, parent=parent, thread=thread)
        except StorageFullError:
            return acknowledged
        acknowledged.append(state)
        parent = id
    raise AssertionError("the bucket is never full")


async def _loaded(saver: JetStreamSaver, thread: str = "t") -> list[Any]:
    """The values of all checkpoints of a thread, oldest first."""
    found = await listed(saver, at(thread=thread))
    return [each.checkpoint["channel_values"] for each in reversed(found)]


@pytest.mark.parametrize("size", [40, 900, 12_000, 70_000])
async def test_what_was_acknowledged_is_there_whole_and_nothing_else(
    saver: JetStreamSaver, other: JetStreamSaver, size: int
) -> None:
    acknowledged = await _fill(saver, size)
    assert acknowledged
    for each in (saver, other):
        assert await _loaded(each) == acknowledged
        assert await values(each) == acknowledged[-1]
        ids = numbered(len(acknowledged))
        assert [id_of(found) for found in await listed(each, at())] == ids[::-1]
        for id, state in zip(ids, acknowledged, strict=True):
            assert await values(each, id) == state


@pytest.mark.parametrize("sizes", [[300], [40_000], [5, 200_000, 5, 40_000]])
async def test_the_writes_of_a_task_are_there_all_or_none(
    saver: JetStreamSaver, other: JetStreamSaver, sizes: list[int]
) -> None:
    await put(saver, "1", {"n": 1})
    acknowledged: dict[str, list[Any]] = {}
    for task in numbered(5000):
        writes = [(f"c{n}", _text(size)) for n, size in enumerate(sizes)]
        try:
            await saver.aput_writes(at("1"), writes, task)
        except StorageFullError:
            break
        acknowledged[task] = writes
    else:
        raise AssertionError("the bucket is never full")

    assert acknowledged
    for each in (saver, other):
        found: dict[str, list[Any]] = {}
        for task, channel, value in (await get(each, "1")).pending_writes or ():
            found.setdefault(task, []).append((channel, value))
        assert found == acknowledged


async def test_what_is_refused_is_refused_again_and_changes_nothing(
    saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    acknowledged = await _fill(saver, 900)
    last = numbered(len(acknowledged))[-1]
    for each in (saver, other):
        for number in range(3):
            with pytest.raises(StorageFullError):
                await put(each, f"1{number}", {"log": _text(400_000)}, parent=last)
            with pytest.raises(StorageFullError):
                await each.aput_writes(at(last), [("x", _text(400_000))], "task")
            with pytest.raises(StorageFullError):
                await put(each, "1", {"log": _text(400_000)}, thread=f"new {number}")
    assert await _loaded(other) == acknowledged
    assert (await get(other)).pending_writes == []
    assert await other.aget_tuple(at(thread="new 1")) is None


async def test_the_same_checkpoint_again_is_accepted(saver: JetStreamSaver) -> None:
    acknowledged = await _fill(saver, 900)
    ids = numbered(len(acknowledged))
    await put(saver, ids[-1], acknowledged[-1], parent=ids[-2])
    assert await values(saver) == acknowledged[-1]


async def test_deleting_a_thread_makes_room(
    saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    await put(saver, "1", {"n": 1}, thread="kept")
    first = await _fill(saver, 900)
    await other.adelete_thread("t")

    assert await _loaded(saver) == []
    assert await values(saver, thread="kept") == {"n": 1}
    second = await _fill(saver, 900)
    assert abs(len(second) - len(first)) <= 1
    assert await _loaded(other) == second
    await saver.adelete_thread("t")
    await put(other, "2", {"n": 2}, parent="1", thread="kept")
    assert await values(saver, thread="kept") == {"n": 2}


async def test_pruning_and_copying_lose_nothing(
    saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    await put(saver, "1", {"room": _text(5000)}, thread="to be deleted")
    acknowledged = await _fill(saver, 900)
    with pytest.raises(StorageFullError):
        await other.acopy_thread("t", "copy")
    for each in await _loaded(other, "copy"):
        assert each in acknowledged
    assert await _loaded(other) == acknowledged
    await other.adelete_thread("copy")
    # A prune notes what it will remove, which needs room.
    await other.adelete_thread("to be deleted")
    await other.aprune(["t"])
    assert await _loaded(saver) == acknowledged[-1:]
    await put(saver, "1", {"n": 1}, parent=numbered(len(acknowledged))[-1])
    assert await values(other) == {"n": 1}


async def test_a_bucket_without_room_for_one_message_can_be_emptied(
    nats_url: str, bucket: str, saver: JetStreamSaver
) -> None:
    await put_chain(saver, numbered(50))
    client = await nats.connect(nats_url)
    entries = await client.jetstream().key_value(bucket)
    for size in (100_000, 10_000, 1000, 100, 0):
        for number in range(100):
            try:
                await entries.put(f"foreign.{size}.{number}", bytes(size))
            except ServiceUnavailableError:
                break
    await client.close()

    # Before something is removed it is noted that it will be.
    with pytest.raises(StorageFullError):
        await saver.aprune(["t"])
    assert await _loaded(saver) == [{"n": n} for n in range(50)]
    await saver.adelete_thread("t")
    assert await _loaded(saver) == []
    await put(saver, "3", {"n": 3})
    assert await values(saver) == {"n": 3}
