"""What docs/graph-changes.md says of a thread whose graph has changed."""

from __future__ import annotations

import dataclasses
import operator
import sys
import types
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.inspect import ThreadRef, replay_plan

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Before(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    order: Any


class Added(Before, total=False):
    note: str


class Removed(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Retyped(TypedDict, total=False):
    log: Annotated[int, operator.add]
    order: Any


@pytest.fixture
async def saver() -> AsyncIterator[DocumentCheckpointSaver]:
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as opened:
        yield opened


def _graph(
    saver: DocumentCheckpointSaver,
    state: Any = Before,
    *,
    read: str = "read",
    pay: str = "pay",
    after: str | None = None,
    order: Any = None,
) -> Any:
    """read → pay, which asks → (after)."""
    entry: Any = 1 if state is Retyped else None

    def node(name: str, *, asks: bool = False) -> Any:
        def run(_: Any) -> dict[str, Any]:
            if asks:
                interrupt("pay?")
            return {"log": entry or [name]} | ({"order": order} if order else {})

        return run

    builder: Any = StateGraph(state)
    builder.add_node(read, node(read))
    builder.add_node(pay, node(pay, asks=True))
    builder.add_edge(START, read)
    builder.add_edge(read, pay)
    if after is not None:
        builder.add_node(after, node(after))
        builder.add_edge(pay, after)
    builder.add_edge(after or pay, END)
    return builder.compile(checkpointer=saver)


async def _wait(saver: DocumentCheckpointSaver, order: Any = None) -> None:
    await _graph(saver, order=order).ainvoke({"log": []}, CONFIG)


async def _resumed(graph: Any) -> Any:
    return (await graph.ainvoke(Command(resume="yes"), CONFIG))["log"]


async def _left(saver: DocumentCheckpointSaver) -> list[str]:
    plan = await replay_plan(saver.store, ThreadRef("default", "default", "t"))
    return [task.node for task in plan.tasks]


async def test_the_same_graph_goes_on(saver: DocumentCheckpointSaver) -> None:
    await _wait(saver)
    assert await _resumed(_graph(saver)) == ["read", "pay"]


async def test_a_waiting_node_that_is_renamed_never_runs(
    saver: DocumentCheckpointSaver,
) -> None:
    await _wait(saver)
    assert await _resumed(_graph(saver, pay="charge")) == ["read"]
    assert (await _graph(saver, pay="charge").aget_state(CONFIG)).next == ()
    assert await _left(saver) == ["pay"]
    # New input begins anew, with the old state.
    state = await _graph(saver, pay="charge").ainvoke({"log": ["again"]}, CONFIG)
    assert state["log"] == ["read", "again", "read"]
    assert await _left(saver) == ["charge"]


async def test_a_node_that_has_run_may_be_renamed(
    saver: DocumentCheckpointSaver,
) -> None:
    await _wait(saver)
    assert await _resumed(_graph(saver, read="load")) == ["read", "pay"]


async def test_a_channel_may_be_added(saver: DocumentCheckpointSaver) -> None:
    await _wait(saver)
    graph = _graph(saver, Added)
    assert await _resumed(graph) == ["read", "pay"]
    assert "note" not in (await graph.aget_state(CONFIG)).values
    await graph.aupdate_state(CONFIG, {"note": "n"})
    assert (await graph.aget_state(CONFIG)).values["note"] == "n"


async def test_a_channel_may_be_removed(saver: DocumentCheckpointSaver) -> None:
    await _wait(saver, order=4711)
    assert await _resumed(_graph(saver, Removed)) == ["read", "pay"]
    found = await saver.aget_tuple(CONFIG)
    assert found is not None
    assert "order" not in found.checkpoint["channel_values"]


async def test_a_reducer_that_cannot_take_the_old_value_raises(
    saver: DocumentCheckpointSaver,
) -> None:
    await _wait(saver)
    with pytest.raises(TypeError, match="concatenate"):
        await _resumed(_graph(saver, Retyped))
    # What the node gave is stored beside the checkpoint, and meets the old graph too.
    plan = await replay_plan(saver.store, ThreadRef("default", "default", "t"))
    assert [(task.node, task.state) for task in plan.tasks] == [("pay", "done")]
    graph = _graph(saver)
    with pytest.raises(TypeError, match="concatenate"):
        await _resumed(graph)
    # A replay of that checkpoint runs the node again.
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_id": plan.id}}
    await graph.ainvoke(None, config)
    assert await _resumed(graph) == ["read", "pay"]


async def test_a_class_that_has_changed_comes_as_a_dict(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = types.ModuleType("shop_of_the_test")
    monkeypatch.setitem(sys.modules, shop.__name__, shop)
    old = dataclasses.make_dataclass("Order", [("id", int)])
    new = dataclasses.make_dataclass("Order", [("id", int), ("sum", int)])
    for each in (old, new):
        monkeypatch.setattr(each, "__module__", shop.__name__)
    monkeypatch.setattr(shop, "Order", old, raising=False)
    await _wait(saver, order=old(4711))
    assert (await _graph(saver).aget_state(CONFIG)).values["order"] == old(4711)
    monkeypatch.setattr(shop, "Order", new)
    assert (await _graph(saver).aget_state(CONFIG)).values["order"] == {"id": 4711}
    assert await _resumed(_graph(saver)) == ["read", "pay"]


async def test_an_edge_may_change(saver: DocumentCheckpointSaver) -> None:
    await _wait(saver)
    graph = _graph(saver, after="report")
    assert await _resumed(graph) == ["read", "pay", "report"]
