"""The drill in which a thread is resumed by a graph that is another one by now."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from jskv_saver import DocumentCheckpointSaver, JetStreamSaver
from jskv_saver.checkpoint.inspect import ThreadRef, replay_plan
from jskv_saver.cli.drills.ground import Ground, Report
from jskv_saver.cli.drills.worker import NAMESPACE
from jskv_saver.errors import GraphVersionError


class Before(TypedDict):
    """The state as the thread has it."""

    log: Annotated[list[str], operator.add]


class Added(TypedDict):
    """The state with one more channel."""

    log: Annotated[list[str], operator.add]
    note: str


class Other(TypedDict):
    """The state with a channel of another type."""

    log: Annotated[int, operator.add]


async def change(ground: Ground, report: Report) -> None:
    """Stop a thread before a payment, change the graph, and go on."""
    report.columns = ("change", "without graph_version", "with graph_version")
    async with ground.open_saver() as saver:
        old = DocumentCheckpointSaver(
            saver.store, namespace=NAMESPACE, graph_version="1"
        )
        new = DocumentCheckpointSaver(
            saver.store, namespace=NAMESPACE, graph_version="2"
        )
        for name, options, expected in (
            ("nothing", {}, "it goes on: read pay"),
            ("a node is renamed", {"pay": "charge"}, "it ends, and pay never ran"),
            ("a channel is added", {"state": Added}, "it goes on: read pay"),
            ("a channel's type changes", {"state": Other}, "TypeError in pay"),
        ):
            thread = f"change {name}"
            config: Any = {"configurable": {"thread_id": thread}}
            await _graph(saver).ainvoke({"log": []}, config)
            seen = await _resume(_graph(saver, **options), config)
            report.check(f"{name}: {expected}", () if seen == expected else [seen])
            await saver.adelete_thread(thread)
            await _graph(old).ainvoke({"log": []}, config)
            before = await _rows(saver, config)
            told = await _resume(_graph(new, **options), config)
            report.check(
                f"{name}: another graph_version is told before anything runs",
                () if told == "GraphVersionError" else [told],
            )
            report.check(
                f"{name}: and nothing was written",
                () if await _rows(saver, config) == before else ["something was"],
            )
            plan = await replay_plan(
                saver.store, ThreadRef(NAMESPACE, saver.agent_id, thread)
            )
            planned = [task.node for task in plan.tasks]
            report.check(
                f"{name}: jskv replay-plan says that pay is left",
                () if planned == ["pay"] else [planned],
            )
            report.rows.append((name, seen, told))


def _graph(
    saver: DocumentCheckpointSaver, *, pay: str = "pay", state: Any = Before
) -> Any:
    """read, then a node that asks before it pays."""

    def read(_: Any) -> dict[str, Any]:
        return {"log": ["read"]}

    def ask(_: Any) -> dict[str, Any]:
        interrupt("pay?")
        return {"log": 1 if state is Other else ["pay"]}

    builder: Any = StateGraph(state)
    builder.add_node("read", read)
    builder.add_node(pay, ask)
    builder.add_edge(START, "read")
    builder.add_edge("read", pay)
    builder.add_edge(pay, END)
    return builder.compile(checkpointer=saver)


async def _resume(graph: Any, config: Any) -> str:
    """What comes of it."""
    try:
        state = await graph.ainvoke(Command(resume="yes"), config)
    except GraphVersionError:
        return "GraphVersionError"
    except TypeError:
        return "TypeError in pay"
    if "pay" in state["log"]:
        return f"it goes on: {' '.join(state['log'])}"
    return "it ends, and pay never ran"


async def _rows(saver: JetStreamSaver, config: Any) -> list[Any]:
    return [
        (row.config, row.metadata, row.pending_writes)
        async for row in saver.alist(config)
    ]
