"""Going back in a graph whose subgraph keeps a state of its own."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from tests.checkpoint.saving import AnySaver

from jskv_saver import DocumentCheckpointSaver


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def _graph(saver: AnySaver, *, asks: bool) -> Any:
    """The child is given the turn, and remembers all it was given."""

    def child(state: Log) -> Log:
        answer = interrupt("go on?") if asks else "seen"
        return {"log": [f"{answer} {len(state['log'])}"]}

    inner = StateGraph(Log)
    inner.add_node("child", child)
    inner.add_edge(START, "child")
    inner.add_edge("child", END)
    outer = StateGraph(Log)
    outer.add_node("sub", inner.compile(checkpointer=True))
    outer.add_node("last", lambda state: {"log": ["last"]})
    outer.add_edge(START, "sub")
    outer.add_edge("sub", "last")
    outer.add_edge("last", END)
    return outer.compile(checkpointer=saver)


async def _travel(saver: AnySaver, asks: bool) -> list[Any]:
    """Three turns; then from before and after the child of each, and each child."""
    graph = _graph(saver, asks=asks)
    main: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(3):
        await graph.ainvoke({"log": [f"turn {turn}"]}, main)
        if asks:
            await graph.ainvoke(Command(resume=f"answer {turn}"), main)
    past = [state async for state in graph.aget_state_history(main)]
    seen: list[Any] = [(state.values, state.next) for state in past]
    for state in past:
        if state.next == ("sub",):
            whole = await graph.aget_state(state.config, subgraphs=True)
            inner = [task.state for task in whole.tasks if task.state]
            seen += [(each.values, each.next) for each in inner]
    for state in past:
        if state.next in (("sub",), ("last",)):
            ran = await graph.ainvoke(None, state.config)
            ran.pop("__interrupt__", None)
            seen.append(ran)
            if asks and state.next == ("sub",):
                seen.append(await graph.ainvoke(Command(resume="again"), main))
            children: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}
            inner = [each async for each in graph.aget_state_history(children)]
            seen.append([(each.values, each.next) for each in inner])
    return seen


@pytest.mark.parametrize("asks", [False, True])
async def test_a_child_starts_from_what_it_was_then(
    saver: DocumentCheckpointSaver, asks: bool
) -> None:
    """Its state is looked for before the parent's id, which it does not have."""
    seen = await _travel(saver, asks)
    assert seen == await _travel(InMemorySaver(), asks)
    lengths = {len(each["log"]) for each in seen if isinstance(each, dict)}
    assert len(lengths) > 2
