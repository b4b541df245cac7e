"""Time travel: history, updates, forks and replays."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StateUpdate
from tests.acceptance.conftest import Driver, comparable, driving, thread
from tests.acceptance.graphs import Log, approval, deltas, node

from jskv_saver import JetStreamSaver
from jskv_saver.errors import WriterConflictError


def _line(*names: str) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Log)
    for name in names:
        graph.add_node(name, node(name))
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph


async def _past(each: Driver, graph: Any, *next_: str) -> Any:
    """The config of the newest checkpoint before some nodes."""
    found = await each.history(graph, thread())
    return next(state.config for state in found if state.next == next_)


async def test_the_history_is_that_of_the_memory_saver(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(_line("a", "b", "c"))
        for turn in range(3):
            await each.invoke(graph, {"log": [f"turn {turn}"]}, thread())
        found = await each.history(graph, thread())
        bound = found[4].config
        histories.append(
            [
                comparable(found),
                comparable(await each.history(graph, thread(), before=bound)),
                comparable(await each.history(graph, thread(), limit=4)),
                comparable(
                    await each.history(graph, thread(), filter={"source": "input"})
                ),
            ]
        )

    assert histories[0] == histories[1]
    assert len(histories[0][0]) == 15
    assert len(histories[0][1]) == 10
    assert len(histories[0][3]) == 3


async def test_a_replay_runs_what_comes_after_again(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(_line("a", "b", "c"))
        await each.invoke(graph, {"log": ["in"]}, thread())
        old = await _past(each, graph, "b")
        result = await each.invoke(graph, None, old)
        assert result == {"log": ["in", "a", "b", "c"]}
        histories.append(comparable(await each.history(graph, thread())))
        assert (await each.state(graph, old)).values == {"log": ["in", "a"]}

    assert histories[0] == histories[1]


async def test_an_update_makes_a_fork_and_the_old_branch_stays(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(_line("a", "b", "c"))
        await each.invoke(graph, {"log": ["in"]}, thread())
        old = await _past(each, graph, "b")
        head = (await each.state(graph, thread())).config
        fork = await each.update(graph, old, {"log": ["edited"]}, as_node="a")
        assert (await each.state(graph, fork)).next == ("b",)
        assert await each.invoke(graph, None, fork) == {
            "log": ["in", "a", "edited", "b", "c"]
        }
        assert (await each.state(graph, head)).values == {"log": ["in", "a", "b", "c"]}
        assert (await each.state(graph, thread())).values["log"][2] == "edited"
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]


async def test_an_update_may_answer_for_a_node(drive: Driver, memory: Driver) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(approval())
        await each.invoke(graph, {"log": ["in"]}, thread())
        await each.update(graph, thread(), {"log": ["skipped"]}, as_node="ask")
        result = await each.invoke(graph, None, thread())
        assert result == {"log": ["in", "draft", "skipped", "send"]}
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]


async def test_many_updates_at_once_and_a_fresh_thread(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(_line("a", "b"))
        await each.update(graph, thread(), {"log": ["first"]}, as_node="a")
        updates = [
            [StateUpdate({"log": ["x"]}, "a")],
            [StateUpdate({"log": ["y"]}, "b")],
        ]
        if each.way == "async":
            await graph.abulk_update_state(thread(), updates)
        else:
            await asyncio.to_thread(graph.bulk_update_state, thread(), updates)
        await each.update(graph, thread(), None, as_node=END)
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]
    assert histories[0][0][0] == {"log": ["first", "x", "y"]}


async def test_an_interrupt_is_answered_again_from_the_past(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(approval())
        await each.invoke(graph, {"log": ["in"]}, thread())
        asked = await _past(each, graph, "ask")
        for answer in ("yes", "no"):
            await each.invoke(graph, Command(resume=answer), thread())
        first = (await each.state(graph, thread())).values
        assert first["answer"] == "yes no"
        await each.invoke(graph, None, asked)
        for answer in ("other", "answer"):
            await each.invoke(graph, Command(resume=answer), thread())
        assert (await each.state(graph, thread())).values["answer"] == "other answer"
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]


async def test_a_fork_of_a_delta_graph_never_replays_the_old_branch(
    drive: Driver, memory: Driver
) -> None:
    results = []
    for each in (drive, memory):
        graph = each.compile(deltas())
        for turn in range(3):
            await each.invoke(graph, {"items": [f"turn {turn}"]}, thread())
        past = await each.history(graph, thread())
        seen = [state.values for state in past]
        old = past[6].config
        fork = await each.update(graph, old, {"items": ["forked"]}, as_node="last")
        seen.append((await each.state(graph, fork)).values)
        seen.append(await each.invoke(graph, {"items": ["more"]}, fork))
        seen.append((await each.state(graph, thread())).values)
        assert [s.values for s in await each.history(graph, thread())][-12:] == seen[
            :12
        ]
        results.append(seen)

    assert results[0] == results[1]


async def test_with_on_conflict_raise_a_graph_does_all_of_it(
    nats_url: str, bucket: str
) -> None:
    first = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, on_conflict="raise"
    )
    second = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, on_conflict="raise"
    )
    async with first, second:
        each = Driver("async", first)
        graph = each.compile(approval())
        await each.invoke(graph, {"log": ["in"]}, thread())
        asked = await _past(each, graph, "ask")
        for answer in ("yes", "no"):
            await each.invoke(graph, Command(resume=answer), thread())
        await each.update(graph, thread(), {"log": ["edited"]}, as_node="send")
        await each.invoke(graph, None, asked)
        await each.invoke(graph, Command(resume="a"), thread())

        # Another one replays, from the past and from where the first stopped.
        elsewhere = Driver("async", second)
        same = elsewhere.compile(approval())
        await elsewhere.invoke(same, None, await _past(elsewhere, same, "draft"))
        await elsewhere.invoke(same, Command(resume="b"), thread())
        await elsewhere.invoke(same, Command(resume="c"), thread())
        assert (await each.state(graph, thread())).values["answer"] == "b c"
        await each.invoke(graph, {"log": ["again"]}, thread())


async def test_a_run_that_was_overtaken_is_told(
    drive: Driver, nats_url: str, bucket: str
) -> None:
    overtaken = threading.Event()
    waiting = threading.Event()

    def wait(state: Log) -> Log:
        waiting.set()
        assert overtaken.wait(30)
        return {"log": ["waited"]}

    builder = StateGraph(Log)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    saver = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, on_conflict="raise"
    )
    async with driving(drive.way, saver) as slow:
        graph = slow.compile(builder)
        run = asyncio.create_task(slow.invoke(graph, {"log": ["slow"]}, thread()))
        assert await asyncio.to_thread(waiting.wait, 30)
        other = drive.compile(_line("a"))
        await drive.invoke(other, {"log": ["quick"]}, thread())
        overtaken.set()
        with pytest.raises(WriterConflictError):
            await run
        state = await drive.state(other, thread())
        assert state.values["log"][-1] == "a"
