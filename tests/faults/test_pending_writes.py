"""Pending writes that others lose, repeat, overwrite or mix up."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, SCHEDULED, TASKS
from langgraph.types import Interrupt, Send
from tests.checkpoint.saving import OpenSaver, at, get, listed, put

from jskv_saver import DocumentCheckpointSaver

Saver = DocumentCheckpointSaver
SPECIAL = sorted(WRITES_IDX_MAP)
FALSY: list[Any] = [None, "", 0, False, [], {}, b"", 0.0, set()]


async def test_any_sequence_of_calls_gives_what_langgraph_s_own_saver_gives(
    saver: Saver,
) -> None:
    """Regular beside special ones, alone, mixed, repeated, longer and shorter."""
    choose = random.Random(11)
    channels = ["foo", "bar", *SPECIAL]
    for number in range(60):
        reference = InMemorySaver()
        thread = f"{number}"
        calls = []
        for call in range(choose.randrange(1, 8)):
            names = choose.sample(channels, choose.randrange(1, len(channels)))
            writes = [(name, [call, name]) for name in names]
            task = choose.choice(["t1", "t10", "t2"])
            calls.append((writes, task, f"~{task[::-1]}"))
        at_put = choose.randrange(len(calls) + 1)
        for place, (writes, task, path) in enumerate(calls):
            for each in (saver, reference):
                if place == at_put:
                    await put(each, "1", thread=thread)
                await each.aput_writes(at("1", thread=thread), writes, task, path)
        for each in (saver, reference):
            await put(each, "1", thread=thread)
        found = (await get(saver, thread=thread)).pending_writes
        wanted = (await get(reference, thread=thread)).pending_writes
        assert found == wanted, calls


@pytest.mark.parametrize("special", SPECIAL)
async def test_a_special_write_never_takes_the_place_of_another(
    saver: Saver, special: str
) -> None:
    await put(saver, "1")
    regular = [("foo", 1), ("bar", 2)]
    await saver.aput_writes(at("1"), regular, "task")
    await saver.aput_writes(at("1"), [(special, "alone")], "task")
    assert (await get(saver)).pending_writes == [
        ("task", special, "alone"),
        *(("task", *write) for write in regular),
    ]
    mixed = [("foo", "new"), (special, "mixed"), ("x", 3), ("y", 4)]
    await saver.aput_writes(at("1"), mixed, "task")
    assert (await get(saver)).pending_writes == [
        ("task", special, "mixed"),
        *(("task", *write) for write in [*regular, ("x", 3), ("y", 4)]),
    ]


@pytest.mark.parametrize("special", SPECIAL)
async def test_a_falsy_write_is_a_write_and_replaces_one(
    saver: Saver, special: str
) -> None:
    for n, value in enumerate(FALSY):
        thread = f"{n}"
        await put(saver, "1", thread=thread)
        writes = [("a", value), (special, "old"), ("b", value)]
        await saver.aput_writes(at("1", thread=thread), writes, "task")
        writes = [("a", "late"), (special, value)]
        await saver.aput_writes(at("1", thread=thread), writes, "task")
        (found,) = await listed(saver, at(thread=thread))
        assert found.pending_writes == [
            ("task", special, value),
            ("task", "a", value),
            ("task", "b", value),
        ]
        assert {type(given) for *_, given in found.pending_writes} == {type(value)}


async def test_putting_the_checkpoint_again_keeps_its_writes(saver: Saver) -> None:
    """In every order of the checkpoint, its writes and the checkpoint again."""
    steps: dict[str, Callable[[str], Awaitable[Any]]] = {
        "put": lambda t: put(saver, "1", {"x": 1}, thread=t),
        "regular": lambda t: saver.aput_writes(at("1", thread=t), [("a", 1)], "task"),
        "interrupt": lambda t: saver.aput_writes(
            at("1", thread=t), [(INTERRUPT, [Interrupt("stop?", id="i")])], "task"
        ),
        "put again": lambda t: put(saver, "1", {"x": 1}, thread=t),
    }
    for order in itertools.permutations(steps):
        thread = " ".join(order)
        for step in order:
            await steps[step](thread)
        await put(saver, "2", {"x": 2}, parent="1", thread=thread)
        assert (await get(saver, "1", thread=thread)).pending_writes == [
            ("task", INTERRUPT, [Interrupt("stop?", id="i")]),
            ("task", "a", 1),
        ]
        assert (await get(saver, thread=thread)).pending_writes == []


async def test_sent_tasks_come_back_with_what_they_carry(saver: Saver) -> None:
    calls = [{"name": "f", "args": {"x": [1, None]}, "id": "c", "type": "tool_call"}]
    messages = [HumanMessage("a\x00b", id="1"), AIMessage("", id="2", tool_calls=calls)]
    sends = [
        Send("node", {"messages": messages, "n": n, "again": Send("inner", messages)})
        for n in range(3)
    ]
    await put(saver, "1", {TASKS: sends, "x": sends[0]}, v=1)
    writes: list[tuple[str, Any]] = [(TASKS, send) for send in sends]
    await saver.aput_writes(at("1"), [*writes, ("x", sends)], "task")
    await put(saver, "2", {"x": 1}, parent="1", v=1)

    for found in (await get(saver, "1"), (await listed(saver, at()))[1]):
        assert found.checkpoint["channel_values"] == {TASKS: sends, "x": sends[0]}
        assert found.pending_writes == [
            *(("task", TASKS, send) for send in sends),
            ("task", "x", sends),
        ]
    # An old checkpoint's tasks are in its parent's writes.
    (sent,) = [
        each.checkpoint["channel_values"][TASKS]
        for each in await listed(saver, at("2"))
    ]
    assert sent == sends
    assert all(type(each) is Send for each in sent)


async def test_of_ten_first_writers_after_a_delete_one_wins(
    open_saver: OpenSaver,
) -> None:
    async with open_saver() as first, open_saver() as second:
        for turn in range(5):
            await put(first, "1", {"x": turn})
            await first.aput_writes(at("1"), [("a", "before"), (ERROR, "e")], "task")
            await second.adelete_thread("t")
            await asyncio.gather(
                *(
                    each.aput_writes(at("1"), [("a", n), ("b", n)], "task")
                    for n, each in enumerate([first, second] * 5)
                )
            )
            await put(second, "1", {"x": "again"})
            found = (await get(first)).pending_writes
            assert found is not None
            winner = found[0][2]
            assert winner in range(10)
            assert found == [("task", "a", winner), ("task", "b", winner)]
            assert (await get(second)).pending_writes == found
            await first.adelete_thread("t")


async def test_forty_tasks_that_try_again_are_stored_once(saver: Saver) -> None:
    await put(saver, "1")
    for _ in range(2):
        await asyncio.gather(
            *(
                saver.aput_writes(
                    at("1"), [("a", n), ("b", [n]), (SCHEDULED, n)], f"task {n}", "~1"
                )
                for n in range(40)
            )
        )
    tasks = sorted(f"task {n}" for n in range(40))
    wanted = [
        (task, channel, value)
        for task in tasks
        for n in [int(task[5:])]
        for channel, value in ((SCHEDULED, n), ("a", n), ("b", [n]))
    ]
    assert (await get(saver)).pending_writes == wanted


async def test_writes_of_a_resumed_task_stay_in_order_of_their_number(
    saver: Saver,
) -> None:
    """Ten comes after nine, whatever calls brought them, and after RESUME."""
    await put(saver, "1")
    for count in (3, 12, 25, 7):
        writes: list[tuple[str, Any]] = [("c", n) for n in range(count)]
        await saver.aput_writes(at("1"), [*writes, (RESUME, [count])], "task")
    assert (await get(saver)).pending_writes == [
        ("task", RESUME, [7]),
        *(("task", "c", n) for n in range(25)),
    ]
