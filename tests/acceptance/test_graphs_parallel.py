"""Parallel nodes, sent tasks and subgraphs."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from tests.acceptance.conftest import Driver, comparable, thread
from tests.acceptance.graphs import Log, failing, node, note, sending


async def test_after_a_failure_the_others_are_not_run_again(
    drive: Driver, memory: Driver, tmp_path: Path
) -> None:
    histories = []
    for each, name in ((drive, "ours"), (memory, "theirs")):
        journal = tmp_path / name
        config = thread(journal=str(journal))
        # One after the other, so that two have finished when the third fails.
        config["max_concurrency"] = 1
        graph = each.compile(failing(["second", "first"]))
        given: Any = {"log": []}
        for text in ("first", "second"):
            with pytest.raises(RuntimeError, match=text):
                await each.invoke(graph, given, config)
            given = None
            state = await each.state(graph, config)
            assert state.next == ("c",)
            assert [bool(task.error) for task in state.tasks] == [False, False, True]
            assert text in state.tasks[2].error
        result = await each.invoke(graph, None, config)
        assert result == {"log": ["a", "b", "c", "d"]}
        assert sorted(journal.read_text().split()) == ["a", "b", "c", "c", "c", "d"]
        histories.append(comparable(await each.history(graph, config)))

    assert histories[0] == histories[1]


async def test_sent_tasks_all_arrive(drive: Driver, memory: Driver) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(sending(30))
        result = await each.invoke(graph, {"log": []}, thread())
        assert result["log"] == [
            "start",
            *(f"work {n} {n}" for n in range(30)),
            "work 3 5",
        ]
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]


async def test_sent_tasks_survive_a_failure(drive: Driver, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    builder = sending(8)
    failures = ["later"]

    def fail(state: Log, config: RunnableConfig) -> Log:
        note(config, "fail")
        if failures:
            raise RuntimeError(failures.pop())
        return {"log": ["late"]}

    builder.add_node("fail", fail)
    builder.add_edge("start", "fail")
    graph = drive.compile(builder)
    config = thread(journal=str(journal))
    # One after the other, so that the sent tasks have finished when the last fails.
    config["max_concurrency"] = 1
    with pytest.raises(RuntimeError, match="later"):
        await drive.invoke(graph, {"log": []}, config)
    assert journal.read_text().splitlines()[-1] == "fail"
    result = await drive.invoke(graph, None, config)

    assert sorted(result["log"]) == sorted(
        ["start", "late", *(f"work {n} {n}" for n in range(8)), "work 3 5"]
    )
    runs = journal.read_text().splitlines()
    assert runs.count("work 5") == 1
    assert runs.count("work 3") == 2
    assert runs.count("fail") == 2


class Outer(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def _child(name: str, *, asks: bool = False, **options: Any) -> Any:
    def ask(state: Outer) -> Outer:
        answer = interrupt(f"{name}?") if asks else "unasked"
        return {"log": [f"{name} {answer} {len(state['log'])}"]}

    graph = StateGraph(Outer)
    graph.add_node("first", node(f"{name} first"))
    graph.add_node("ask", ask)
    graph.add_edge(START, "first")
    graph.add_edge("first", "ask")
    graph.add_edge("ask", END)
    return graph.compile(**options)


def _parent(*children: tuple[str, Any]) -> Any:
    graph = StateGraph(Outer)
    graph.add_node("last", node("last"))
    for name, child in children:
        graph.add_node(name, child)
        graph.add_edge(START, name)
    graph.add_edge([name for name, _ in children], "last")
    graph.add_edge("last", END)
    return graph


@pytest.mark.parametrize("checkpointer", [None, True])
async def test_a_subgraph_stops_and_goes_on(
    drive: Driver, memory: Driver, checkpointer: bool | None
) -> None:
    results = []
    for each in (drive, memory):
        child = _child("child", asks=True, checkpointer=checkpointer)
        graph = each.compile(_parent(("child", child)))
        seen = []
        for turn in range(2):
            seen.append(await each.invoke(graph, {"log": [f"turn {turn}"]}, thread()))
            inner = await each.state(graph, thread(), subgraphs=True)
            seen.append(inner.tasks[0].state.values)
            seen.append(inner.tasks[0].state.next)
            seen.append(await each.invoke(graph, Command(resume="yes"), thread()))
        for result in seen:
            if isinstance(result, dict):
                result.pop("__interrupt__", None)
        results.append(seen)

    assert results[0] == results[1]
    assert "last" in results[0][-1]["log"]


async def test_parallel_subgraphs_stop_and_go_on(drive: Driver, memory: Driver) -> None:
    results = []
    for each in (drive, memory):
        children = [(f"c{n}", _child(f"c{n}", asks=n % 2 == 0)) for n in range(6)]
        graph = each.compile(_parent(*children))
        stopped = await each.invoke(graph, {"log": ["in"]}, thread())
        questions = {i.id: i.value for i in stopped["__interrupt__"]}
        assert sorted(questions.values()) == ["c0?", "c2?", "c4?"]
        resume = {id: f"to {question}" for id, question in questions.items()}
        ended = await each.invoke(graph, Command(resume=resume), thread())
        assert [line for line in ended["log"] if "to " in line] == [
            f"c{n} to c{n}? 2" for n in (0, 2, 4)
        ]
        results.append((ended, comparable(await each.history(graph, thread()))))

    assert results[0] == results[1]


async def test_a_nested_subgraph_has_a_history_of_its_own(
    drive: Driver, memory: Driver
) -> None:
    results = []
    for each in (drive, memory):
        middle = _parent(("inner", _child("inner", asks=True))).compile()
        graph = each.compile(_parent(("middle", middle)))
        await each.invoke(graph, {"log": ["in"]}, thread())
        state = await each.state(graph, thread(), subgraphs=True)
        inner = state.tasks[0].state.tasks[0].state
        assert inner.config["configurable"]["checkpoint_ns"].count(":") == 2
        ns = inner.config["configurable"]["checkpoint_ns"]
        past = await each.history(graph, thread(checkpoint_ns=ns))
        results.append(comparable(past))
        assert [s.next for s in past] == [("ask",), ("first",), ("__start__",)]
        ended = await each.invoke(graph, Command(resume="yes"), thread())
        results.append(ended)

    assert results[:2] == results[2:]


async def test_a_subgraph_that_keeps_its_state_remembers_turns(drive: Driver) -> None:
    child = _child("child", checkpointer=True)
    graph = drive.compile(_parent(("child", child)))
    lengths = []
    for turn in range(3):
        await drive.invoke(graph, {"log": [f"turn {turn}"]}, thread())
        inner = await drive.state(graph, thread(checkpoint_ns="child"))
        lengths.append(len(inner.values["log"]))

    assert lengths == sorted(set(lengths))
    assert len(lengths) == 3
