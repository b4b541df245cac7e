"""What is said to run from a checkpoint is what LangGraph then runs."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from tests.acceptance.graphs import approval, deltas, failing, sending, slow

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.inspect import (
    PlannedTask,
    ReplayPlan,
    ThreadRef,
    replay_plan,
)
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError

REF = ThreadRef("default", "default", "t")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    ran: Annotated[list[str], operator.add]


class Recorder:
    """The nodes of a graph: they say that they ran, and fail or ask on demand."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: set[str] = set()
        self.asks: set[str] = set()

    def node(self, name: str) -> Any:
        async def run(state: Any) -> dict[str, Any]:
            self.calls.append(name)
            if name in self.fails:
                raise ValueError(f"{name} fails")
            if name in self.asks:
                interrupt(f"may {name}?")
            return {"ran": [name]}

        return run

    def take(self) -> list[str]:
        """The calls since the last time, sorted."""
        calls, self.calls = sorted(self.calls), []
        return calls


def _diamond(recorder: Recorder) -> StateGraph[Any, Any, Any, Any]:
    """a → (b, c) → d → two of s sent, and e."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in "abcdes":
        builder.add_node(name, recorder.node(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a", "c")
    builder.add_edge(["b", "c"], "d")
    builder.add_conditional_edges(
        "d", lambda state: [Send("s", state), Send("s", state), "e"], ["s", "e"]
    )
    builder.add_edge("e", END)
    return builder


@pytest.fixture
async def saver() -> AsyncIterator[DocumentCheckpointSaver]:
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as opened:
        yield opened


async def _plan(saver: DocumentCheckpointSaver, id: str | None = None) -> ReplayPlan:
    return await replay_plan(saver.store, REF, id)


def _runs(plan: ReplayPlan, *, replay: bool = False) -> list[str]:
    return sorted(task.node for task in plan.tasks if replay or task.on_resume)


async def _history(graph: Any) -> list[Any]:
    return [snapshot async for snapshot in graph.aget_state_history(CONFIG)]


def _id(snapshot: Any) -> str:
    id: str = snapshot.config["configurable"]["checkpoint_id"]
    return id


async def _agrees(saver: DocumentCheckpointSaver, graph: Any) -> int:
    """Of each checkpoint the plan names the tasks that LangGraph names itself."""
    history = await _history(graph)
    for snapshot in history:
        plan = await _plan(saver, _id(snapshot))
        named = sorted(task.name for task in snapshot.tasks)
        assert sorted(task.node for task in plan.tasks) == named, snapshot
        ids = {task.id for task in snapshot.tasks}
        assert {task.task for task in plan.tasks if task.task} <= ids
        assert plan.latest == (snapshot is history[0])
    return len(history)


async def test_a_resume_runs_what_is_said_to_run(
    saver: DocumentCheckpointSaver,
) -> None:
    recorder = Recorder()
    graph = _diamond(recorder).compile(checkpointer=saver)
    recorder.fails = {"c"}
    with pytest.raises(ValueError, match="c fails"):
        await graph.ainvoke({"ran": []}, CONFIG)
    assert recorder.take() == ["a", "b", "c"]
    plan = await _plan(saver)
    states = {task.node: (task.state, task.detail) for task in plan.tasks}
    assert states == {"b": ("done", None), "c": ("failed", "\"ValueError('c fails')\"")}
    assert _runs(plan) == ["c"]

    recorder.fails, recorder.asks = set(), {"e"}
    await graph.ainvoke(None, CONFIG)
    assert recorder.take() == ["c", "d", "e", "s", "s"]
    plan = await _plan(saver)
    asking = next(task for task in plan.tasks if task.node == "e")
    assert (asking.state, asking.detail) == ("asks", '"may e?"')
    assert asking.triggers == ("branch:to:e",)
    sent = [task for task in plan.tasks if task.node == "s"]
    assert [(t.state, t.triggers) for t in sent] == [("done", ("__pregel_tasks",))] * 2
    assert _runs(plan) == ["e"]
    await _agrees(saver, graph)

    recorder.asks = set()
    await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert recorder.take() == ["e"]
    assert (await _plan(saver)).tasks == ()
    assert await _agrees(saver, graph) == 6


async def test_a_replay_runs_what_is_said_to_run(
    saver: DocumentCheckpointSaver,
) -> None:
    recorder = Recorder()
    graph = _diamond(recorder).compile(checkpointer=saver)
    await graph.ainvoke({"ran": []}, CONFIG)
    assert recorder.take() == ["a", "b", "c", "d", "e", "s", "s"]
    for snapshot in await _history(graph):
        id = _id(snapshot)
        if "__start__" in snapshot.next:
            continue
        # Each in a thread of its own, so that none is a branch beside another.
        await saver.acopy_thread("t", id)
        plan = await replay_plan(saver.store, replace(REF, thread=id), id)
        expected = _runs(plan, replay=True)
        for step in plan.followed:
            expected += step.nodes
        config: Any = {"configurable": {"thread_id": id, "checkpoint_id": id}}
        await graph.ainvoke(None, config)
        assert recorder.take() == sorted(expected)
        # The branch that this made is told of as the first one was.
        again = await replay_plan(saver.store, replace(REF, thread=id), id)
        assert [step.nodes for step in again.followed] == [
            step.nodes for step in plan.followed
        ]
        assert not again.latest


@pytest.mark.parametrize(
    "builder",
    [approval, slow, lambda: failing([]), lambda: sending(12), deltas],
    ids=["approval", "slow", "failing", "sending", "deltas"],
)
async def test_it_names_the_tasks_of_any_graph(
    saver: DocumentCheckpointSaver, builder: Any
) -> None:
    graph = builder().compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t", "go": True}}
    await graph.ainvoke({"log": []}, config, durability="sync")
    assert await _agrees(saver, graph) > 1


async def test_calls_in_a_task_are_named_too(saver: DocumentCheckpointSaver) -> None:
    called: list[str] = []

    @task
    async def charge(n: int) -> int:
        called.append(f"charge {n}")
        return n

    @entrypoint(checkpointer=saver)
    async def shop(n: int) -> int:
        called.append("shop")
        done = await charge(n)
        interrupt("sure?")
        return done

    await shop.ainvoke(1, CONFIG)
    assert called == ["shop", "charge 1"]
    plan = await _plan(saver)
    assert [(t.node, t.state) for t in plan.tasks] == [
        ("shop", "asks"),
        ("a call in shop", "done"),
    ]
    called.clear()
    await shop.ainvoke(Command(resume=True), CONFIG)
    assert called == ["shop"]


async def test_a_subgraph_is_pointed_at(saver: DocumentCheckpointSaver) -> None:
    recorder = Recorder()
    recorder.asks = {"y"}
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in "xy":
        inner.add_node(name, recorder.node(name))
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "sub")
    graph = outer.compile(checkpointer=saver)
    await graph.ainvoke({"ran": []}, CONFIG)
    (planned,) = (await _plan(saver)).tasks
    assert planned.node == "sub"
    (below,) = planned.subgraphs
    inside = await replay_plan(saver.store, REF, ns=below)
    assert [(t.node, t.state) for t in inside.tasks] == [("y", "asks")]
    assert recorder.take() == ["x", "y"]
    await graph.ainvoke(None, CONFIG)
    assert recorder.take() == ["y"]


async def test_a_join_waits_for_all(saver: DocumentCheckpointSaver) -> None:
    recorder = Recorder()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("a", "b", "b2", "d"):
        builder.add_node(name, recorder.node(name))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "b2")
    builder.add_edge(["a", "b2"], "d")
    graph = builder.compile(checkpointer=saver)
    for _ in range(2):
        await graph.ainvoke({"ran": []}, CONFIG)
    assert await _agrees(saver, graph) == 10


async def test_a_deferred_join_waits_for_the_end(
    saver: DocumentCheckpointSaver,
) -> None:
    recorder = Recorder()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, recorder.node(name))
    builder.add_node("d", recorder.node("d"), defer=True)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "c")
    builder.add_edge(["a", "b"], "d")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"ran": []}, CONFIG)
    await _agrees(saver, graph)


async def test_the_graph_version_is_told() -> None:
    store = MemoryDocumentStore()
    async with DocumentCheckpointSaver(store, graph_version="7") as saver:
        await (
            _diamond(Recorder())
            .compile(checkpointer=saver)
            .ainvoke({"ran": []}, CONFIG)
        )
        assert (await _plan(saver)).graph_version == "7"


async def test_what_is_not_there_is_an_error(saver: DocumentCheckpointSaver) -> None:
    with pytest.raises(DocumentNotFoundError, match="no checkpoint '1'"):
        await _plan(saver, "1")
    with pytest.raises(DocumentNotFoundError, match="no checkpoint in"):
        await _plan(saver)


async def test_an_encrypted_checkpoint_is_not_guessed_at() -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    store = MemoryDocumentStore()
    async with DocumentCheckpointSaver(store, serde=serde) as saver:
        graph = _diamond(Recorder()).compile(checkpointer=saver)
        await graph.ainvoke({"ran": []}, CONFIG)
        with pytest.raises(InvalidRequestError, match=r"get_state\(config\)\.next"):
            await _plan(saver)


def test_a_task_whose_error_is_handled_does_not_run() -> None:
    assert not PlannedTask("a", "handled").on_resume
    assert PlannedTask("a", "failed").on_resume
