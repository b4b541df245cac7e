"""Pending writes: in order, first-wins or last-wins, whenever they arrive."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, SCHEDULED
from langgraph.types import Interrupt, Send
from tests.checkpoint.saving import at, get, listed, put

from jskv_saver import DocumentCheckpointSaver

Writes = list[tuple[str, str, Any]]


async def _pending(saver: DocumentCheckpointSaver, id: str = "1") -> Writes:
    found = await get(saver, id)
    assert found.pending_writes is not None
    (same,) = await listed(saver, at(id))
    assert same.pending_writes == found.pending_writes
    return found.pending_writes


async def test_writes_may_come_before_their_checkpoint(
    saver: DocumentCheckpointSaver,
) -> None:
    await saver.aput_writes(at("1"), [("a", 1), (INTERRUPT, "stop")], "task")
    assert await saver.aget_tuple(at()) is None
    assert await saver.aget_tuple(at("1")) is None
    await put(saver, "1")
    await put(saver, "1")

    assert await _pending(saver) == [("task", INTERRUPT, "stop"), ("task", "a", 1)]


async def test_writes_may_come_while_their_checkpoint_is_put(
    saver: DocumentCheckpointSaver,
) -> None:
    for n in range(25):
        id = f"{n:02}"
        await asyncio.gather(
            put(saver, id, {"x": n}),
            saver.aput_writes(at(id), [("a", n)], "task"),
            saver.aput_writes(at(id), [("b", n)], "other"),
        )

        assert await _pending(saver, id) == [("other", "b", n), ("task", "a", n)]


async def test_writes_come_in_the_order_of_path_task_and_number(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    calls = [
        ("z-task", "~__pregel_pull, a", 12),
        ("a-task", "~__pregel_pull, b", 11),
        ("m-task", "", 3),
        ("b-task", "", 2),
    ]
    for task, path, count in calls:
        writes = [("c", [task, n]) for n in range(count)]
        await saver.aput_writes(at("1"), writes, task, path)

    assert await _pending(saver) == [
        *(("b-task", "c", ["b-task", n]) for n in range(2)),
        *(("m-task", "c", ["m-task", n]) for n in range(3)),
        *(("z-task", "c", ["z-task", n]) for n in range(12)),
        *(("a-task", "c", ["a-task", n]) for n in range(11)),
    ]


async def test_special_writes_come_before_the_regular_ones(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    await saver.aput_writes(
        at("1"),
        [("a", 1), (ERROR, "e"), (SCHEDULED, "s"), (INTERRUPT, "i"), (RESUME, "r")],
        "task",
    )

    assert await _pending(saver) == [
        ("task", RESUME, "r"),
        ("task", INTERRUPT, "i"),
        ("task", SCHEDULED, "s"),
        ("task", ERROR, "e"),
        ("task", "a", 1),
    ]


async def test_a_regular_write_stays_and_a_special_one_is_replaced(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    await saver.aput_writes(at("1"), [("foo", "old"), (ERROR, "old")], "task")
    await saver.aput_writes(at("1"), [("foo", "new"), (ERROR, "new")], "task")
    assert await _pending(saver) == [("task", ERROR, "new"), ("task", "foo", "old")]

    await saver.aput_writes(at("1"), [(RESUME, [1])], "task")
    await saver.aput_writes(at("1"), [(RESUME, [1, 2])], "task")
    await saver.aput_writes(at("1"), [("foo", "third"), ("bar", "first")], "task")

    assert await _pending(saver) == [
        ("task", RESUME, [1, 2]),
        ("task", ERROR, "new"),
        ("task", "foo", "old"),
        ("task", "bar", "first"),
    ]


async def test_the_same_writes_again_are_stored_once(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1")
    for each in (saver, saver, other):
        await each.aput_writes(at("1"), [("a", 1), ("b", 2), (ERROR, "e")], "task")

    assert await _pending(other) == [
        ("task", ERROR, "e"),
        ("task", "a", 1),
        ("task", "b", 2),
    ]


async def test_no_writes_are_no_entry(saver: DocumentCheckpointSaver) -> None:
    await saver.aput_writes(at("1"), [], "task")

    assert await saver.store.ids("default", "wr") == []


async def test_parallel_tasks_lose_nothing(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1")
    await asyncio.gather(
        *(
            each.aput_writes(at("1"), [("a", n), ("b", -n)], f"task {n:02}", f"~{n:02}")
            for n in range(40)
            for each in (saver, other)
        )
    )

    assert await _pending(saver) == [
        (f"task {n:02}", channel, value)
        for n in range(40)
        for channel, value in (("a", n), ("b", -n))
    ]


async def test_parallel_calls_of_one_task_lose_nothing(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1")
    special = [ERROR, SCHEDULED, INTERRUPT, RESUME]
    await asyncio.gather(
        *(
            each.aput_writes(at("1"), [(channel, channel)], "task")
            for channel in special
            for each in (saver, other)
        ),
        saver.aput_writes(at("1"), [("a", 1)], "task"),
        other.aput_writes(at("1"), [("a", 1), ("b", 2)], "task"),
    )

    found = await _pending(saver)
    assert {(c, v) for _, c, v in found} == {("a", 1), ("b", 2)} | {
        (c, c) for c in special
    }
    assert len(found) == 6


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        0,
        False,
        [],
        {},
        b"",
        "a\x00b",
        Send("node", {"x": 1}),
        [Interrupt("stop?", id="i")],
        {1, 2},
    ],
    ids=repr,
)
async def test_a_write_of_any_value_survives(
    saver: DocumentCheckpointSaver, value: object
) -> None:
    await put(saver, "1")
    await saver.aput_writes(at("1"), [("a", value), ("", value)], "task")

    assert await _pending(saver) == [("task", "a", value), ("task", "", value)]


async def test_two_thousand_writes_in_one_call_are_all_there(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    path = "~__pregel_push, " + "x" * 1000
    writes = [(f"channel {n % 7}", {"n": n}) for n in range(2000)]
    await saver.aput_writes(at("1"), writes, "task", path)

    assert await _pending(saver) == [("task", c, v) for c, v in writes]


async def test_the_writes_of_two_thousand_tasks_are_all_there(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    for start in range(0, 2000, 100):
        await asyncio.gather(
            *(
                saver.aput_writes(at("1"), [("a", n)], f"task {n:04}")
                for n in range(start, start + 100)
            )
        )

    assert await _pending(saver) == [(f"task {n:04}", "a", n) for n in range(2000)]


async def test_large_writes_are_whole_and_merge(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    first = [("a", "x" * 3_000_000), ("b", b"y" * 1_500_000), ("c", 1)]
    await saver.aput_writes(at("1"), first, "task")
    await saver.aput_writes(at("1"), [("a", "other"), (ERROR, "z" * 700_000)], "task")
    await saver.aput_writes(at("1"), [("a", "small")], "other")

    assert await _pending(saver) == [
        ("other", "a", "small"),
        ("task", ERROR, "z" * 700_000),
        *(("task", channel, value) for channel, value in first),
    ]


async def test_parallel_large_writes_of_one_task_are_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1")
    await asyncio.gather(
        saver.aput_writes(at("1"), [("a", "x" * 900_000)], "task"),
        other.aput_writes(at("1"), [("a", "y" * 900_000)], "task"),
        saver.aput_writes(at("1"), [(ERROR, "e" * 900_000)], "task"),
        other.aput_writes(at("1"), [(RESUME, "r" * 900_000)], "task"),
    )

    found = {channel: value for _, channel, value in await _pending(saver)}
    assert found[ERROR] == "e" * 900_000
    assert found[RESUME] == "r" * 900_000
    assert found["a"] in ("x" * 900_000, "y" * 900_000)


async def test_a_listing_gives_large_writes_that_were_merged_meanwhile(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for n in range(300):
        await put(saver, f"{n:03}")
    await saver.aput_writes(at("001"), [("a", "x" * 900_000)], "task")
    listing = saver.alist(at())
    await anext(listing)
    await other.aput_writes(at("001"), [(ERROR, "e" * 900_000)], "task")

    rest = [found async for found in listing]

    assert len(rest) == 299
    assert rest[-2].pending_writes is not None
    assert ("task", "a", "x" * 900_000) in rest[-2].pending_writes


async def test_cancelled_writes_are_there_all_or_none_and_can_be_repeated(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")
    for n in range(40):
        size = 350_000 if n % 4 == 0 else 10
        writes = [("a", f"{n}" * size), ("b", n), (ERROR, n)]
        wanted = [writes[2], *writes[:2]]
        task = f"task {n:02}"
        call = asyncio.create_task(saver.aput_writes(at("1"), writes, task))
        for _ in range(n % 12):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        # What was sent may arrive between any two reads, so this is one.
        read = (await get(saver)).pending_writes or []
        found = [(c, v) for t, c, v in read if t == task]
        assert found in ([], wanted)
        await saver.aput_writes(at("1"), writes, task)
        found = [(c, v) for t, c, v in await _pending(saver) if t == task]
        assert found == wanted
