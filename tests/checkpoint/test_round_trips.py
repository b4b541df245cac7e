"""How often an operation asks the server: messages sent, and times waited.

The saver gets a client that counts. A round trip ends when an answer has come and
something is sent again: what is sent together is one.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from nats.aio.client import Client
from tests.checkpoint.saving import at, listed, numbered, put

from jskv_saver import JetStreamSaver


class Counters(dict[str, int]):
    """A client's counters, which notice when it sends after it had an answer."""

    trips = 0
    _answered = -1

    def __setitem__(self, name: str, value: int) -> None:
        if name == "out_msgs" and self["in_msgs"] != self._answered:
            self.trips += 1
            self._answered = self["in_msgs"]
        super().__setitem__(name, value)


class Counting(Client):
    """Counts what it sends, and how often it had an answer before it sent more."""

    def __init__(self) -> None:
        super().__init__()
        self.counters = Counters(self.stats)
        self.stats = self.counters

    @property
    def trips(self) -> int:
        return self.counters.trips


@dataclass(frozen=True)
class Cost:
    messages: int
    trips: int


@dataclass
class Measured:
    """A saver, and the client that counts for it."""

    saver: JetStreamSaver
    client: Counting
    fast: bool = False

    async def cost(self, call: Awaitable[Any]) -> Cost:
        """Await a call and tell what it cost."""
        messages, trips = self.client.stats["out_msgs"], self.client.trips
        await call
        return Cost(self.client.stats["out_msgs"] - messages, self.client.trips - trips)


async def _open(url: str, bucket: str) -> AsyncIterator[Measured]:
    client = Counting()
    await client.connect(url)
    async with JetStreamSaver(client, bucket=bucket) as saver:
        await saver.setup()
        info = await client.jetstream().stream_info(f"KV_{bucket}")
        yield Measured(saver, client, bool(info.config.allow_batched))
    await client.close()


@pytest.fixture
async def writer(nats_url: str, bucket: str) -> AsyncIterator[Measured]:
    async for measured in _open(nats_url, bucket):
        yield measured


@pytest.fixture
async def reader(
    nats_url: str, bucket: str, writer: Measured
) -> AsyncIterator[Measured]:
    """Another one on the same bucket, which remembers nothing of the writer's."""
    async for measured in _open(nats_url, bucket):
        yield measured


def _text(size: int = 600) -> str:
    """Random text: no part of it is in another."""
    return secrets.token_hex(size // 2)


async def _rows(saver: JetStreamSaver, count: int, thread: str) -> None:
    """A thread whose checkpoints have a value in parts, and writes."""
    log: list[str] = []
    parent = None
    for id in numbered(count):
        log = [*log, _text()]
        values = {"log": log, "n": id}
        await put(saver, id, values, parent=parent, thread=thread, step=1)
        writes = [("log", _text()), ("x", 1)]
        await saver.aput_writes(at(id, thread=thread), writes, "task")
        parent = id


async def _listing(reader: Measured, count: int, **options: Any) -> Cost:
    """What it costs to list all of a thread, or what the options leave of it."""
    return await reader.cost(listed(reader.saver, at(thread=f"{count}"), **options))


async def test_a_small_step_is_one_message(writer: Measured) -> None:
    await put(writer.saver, "1", {"n": 1})
    cost = await writer.cost(put(writer.saver, "2", {"n": 2}, parent="1"))
    assert cost == Cost(1, 1)


async def test_the_first_step_of_a_thread_asks_for_it_and_opens_it(
    writer: Measured,
) -> None:
    # Is there anything? The epoch; then the thread's name and the step.
    cost = await writer.cost(put(writer.saver, "1", {"n": 1}))
    assert cost.messages == 4
    assert cost.trips <= 4


@pytest.mark.parametrize("parts", [1, 2, 3])
async def test_new_parts_go_in_one_batch_with_their_checkpoint(
    writer: Measured, parts: int
) -> None:
    await put(writer.saver, "1", {"n": 1})
    # About 512 KiB make a part.
    state = {"x": _text(parts * 500_000)}
    cost = await writer.cost(put(writer.saver, "2", state, parent="1"))
    assert cost.messages == parts + 1
    # Without fast batches the order is kept by waiting for each answer.
    assert cost.trips <= (1 if writer.fast else parts + 1)


async def test_the_writes_of_a_task_are_one_message(writer: Measured) -> None:
    await put(writer.saver, "1")
    writes = [("a", _text(5000)), ("b", None), ("c", [1, 2])]
    cost = await writer.cost(writer.saver.aput_writes(at("1"), writes, "task"))
    assert cost == Cost(1, 1)


@pytest.mark.parametrize("id", [None, "2", "1"])
async def test_a_small_checkpoint_is_read_in_two_round_trips(
    writer: Measured, reader: Measured, id: str | None
) -> None:
    await put(writer.saver, "1", {"n": 1})
    await put(writer.saver, "2", {"n": 2}, parent="1")
    await writer.saver.aput_writes(at("2"), [("n", 3)], "task")
    cost = await reader.cost(reader.saver.aget_tuple(at(id)))
    assert cost.messages <= 2
    assert cost.trips <= 2


@pytest.mark.parametrize("id", [None, "000001", "000199"])
async def test_parts_take_no_request_more_than_two(
    writer: Measured, reader: Measured, id: str | None
) -> None:
    await _rows(writer.saver, 200, "t")
    cost = await reader.cost(reader.saver.aget_tuple(at(id)))
    assert cost.messages <= 2
    assert cost.trips <= 2


async def test_what_is_not_there_takes_no_more(
    writer: Measured, reader: Measured
) -> None:
    await put(writer.saver, "1", {"n": 1})
    for config in (at(thread="nobody"), at("2"), at("1", thread="nobody")):
        cost = await reader.cost(reader.saver.aget_tuple(config))
        assert cost.trips <= 2


@pytest.mark.parametrize(
    "options", [{}, {"limit": 5}, {"filter": {"step": 1}}, {"before": at("000008")}]
)
async def test_a_listing_does_not_ask_for_each_row(
    writer: Measured, reader: Measured, options: dict[str, Any]
) -> None:
    costs = {}
    for count in (10, 50, 200):
        await _rows(writer.saver, count, f"{count}")
        costs[count] = await _listing(reader, count, **options)
    assert costs[50].messages <= 8
    assert costs[200].messages - costs[10].messages <= 6


@pytest.mark.parametrize("limit", [1, 10, 12])
async def test_the_newest_are_listed_by_three_requests(
    writer: Measured, reader: Measured, limit: int
) -> None:
    for count in (10, 200):
        await _rows(writer.saver, count, f"{count}")
        cost = await _listing(reader, count, limit=limit)
        assert cost == Cost(3, 3)


async def test_the_latest_that_was_read_or_written_here_is_one_round_trip(
    writer: Measured, reader: Measured
) -> None:
    await _rows(writer.saver, 3, "t")
    assert (await reader.cost(reader.saver.aget_tuple(at(thread="t")))).trips == 2
    for each in (writer, reader):
        cost = await each.cost(each.saver.aget_tuple(at(thread="t")))
        assert cost == Cost(2, 1)


async def test_a_thread_is_deleted_by_a_purge_and_a_look(writer: Measured) -> None:
    await _rows(writer.saver, 50, "t")
    # In between the marker that tells of it, if there was something.
    assert await writer.cost(writer.saver.adelete_thread("t")) == Cost(3, 3)
    assert await writer.cost(writer.saver.adelete_thread("t")) == Cost(2, 2)


async def test_a_delta_history_does_not_ask_for_each_ancestor(
    writer: Measured, reader: Measured
) -> None:
    parent = None
    for id in numbered(201):
        seeds = {} if parent else {"x": _DeltaSnapshot([0])}
        await put(
            writer.saver,
            id,
            seeds,
            parent=parent,
            versions={"x": id},
            new={"x": id},
            counters_since_delta_snapshot={"x": (1, 1)} if parent else {},
        )
        await writer.saver.aput_writes(at(id), [("x", _text())], "task")
        parent = id
    found: list[Any] = []

    async def read() -> None:
        history = await reader.saver.aget_delta_channel_history(
            config=at(), channels=("x",)
        )
        found.extend(history["x"]["writes"])

    assert (await reader.cost(read())).messages <= 12
    assert len(found) == 200
