"""Graphs for the tests, and a program that runs them in a process of its own.

    python -m tests.acceptance.graphs SETTINGS-AS-JSON

The program prints the final state as JSON.
"""

from __future__ import annotations

import asyncio
import json
import operator
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from jskv_saver import JetStreamSaver

ROOT = Path(__file__).parents[2]


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    answer: str


def note(config: RunnableConfig, name: str) -> None:
    """Note in the journal that a node ran; it survives the death of the process."""
    path = config["configurable"].get("journal")
    if path:
        with open(path, "a") as journal:
            journal.write(name + "\n")


def node(name: str) -> Any:
    """A node that logs its name."""

    def run(state: Log, config: RunnableConfig) -> Log:
        note(config, name)
        return {"log": [name]}

    return run


def approval() -> StateGraph[Any, Any, Any, Any]:
    """Stops twice to ask."""

    def ask(state: Log, config: RunnableConfig) -> Log:
        note(config, "ask")
        first = interrupt({"question": "first?", "so far": state["log"]})
        second = interrupt("second?")
        return {"log": ["ask"], "answer": f"{first} {second}"}

    graph = StateGraph(Log)
    graph.add_node("draft", node("draft"))
    graph.add_node("ask", ask)
    graph.add_node("send", node("send"))
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "ask")
    graph.add_edge("ask", "send")
    graph.add_edge("send", END)
    return graph


def slow() -> StateGraph[Any, Any, Any, Any]:
    """One and two, then fast beside slow, which never ends unless told to go on."""

    def hang(state: Log, config: RunnableConfig) -> Log:
        note(config, "slow")
        if not config["configurable"].get("go"):
            threading.Event().wait()
        return {"log": ["slow"]}

    graph = StateGraph(Log)
    for name in ("one", "two", "fast", "last"):
        graph.add_node(name, node(name))
    graph.add_node("slow", hang)
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", "fast")
    graph.add_edge("two", "slow")
    graph.add_edge(["fast", "slow"], "last")
    graph.add_edge("last", END)
    return graph


def failing(failures: list[str]) -> StateGraph[Any, Any, Any, Any]:
    """Three nodes in parallel; one fails as long as there are failures left."""

    def fail(state: Log, config: RunnableConfig) -> Log:
        note(config, "c")
        if failures:
            raise RuntimeError(failures.pop())
        return {"log": ["c"]}

    graph = StateGraph(Log)
    for name in "abd":
        graph.add_node(name, node(name))
    graph.add_node("c", fail)
    for name in "abc":
        graph.add_edge(START, name)
    graph.add_edge(["a", "b", "c"], "d")
    graph.add_edge("d", END)
    return graph


def sending(count: int) -> StateGraph[Any, Any, Any, Any]:
    """Sends work to many tasks at once, and once more from there."""

    def plan(state: Log) -> list[Send]:
        return [Send("work", {"n": n, "text": "x" * n}) for n in range(count)]

    def work(state: Any, config: RunnableConfig) -> Command[str]:
        note(config, f"work {state['n']}")
        log = {"log": [f"work {state['n']} {len(state['text'])}"]}
        if state["n"] == 3 and len(state["text"]) == 3:
            again = Send("work", {"n": 3, "text": "again"})
            return Command(update=log, goto=again)
        return Command(update=log)

    graph = StateGraph(Log)
    graph.add_node("start", node("start"))
    graph.add_node("work", work)
    graph.add_edge(START, "start")
    graph.add_conditional_edges("start", plan, ["work"])
    return graph


def appended(state: list[Any], writes: list[Any]) -> list[Any]:
    """The reducer of a delta channel; its order matters."""
    return [
        *state,
        *(
            x
            for write in writes
            for x in (write if isinstance(write, list) else [write])
        ),
    ]


class Deltas(TypedDict, total=False):
    items: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=4)]
    rest: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=1000)]
    total: Annotated[int, operator.add]


def deltas(*, asks: bool = False) -> StateGraph[Any, Any, Any, Any]:
    """Three nodes in parallel write one delta channel, then a last one another."""

    def item(name: str) -> Any:
        def run(state: Deltas) -> Deltas:
            return {"items": [f"{name} {len(state['items'])}"], "total": 1}

        return run

    def last(state: Deltas) -> Deltas:
        answer = interrupt("go on?") if asks else "last"
        return {"rest": [f"{answer} {len(state['items'])}"]}

    graph = StateGraph(Deltas)
    for name in ("zebra", "ape", "mouse"):
        graph.add_node(name, item(name))
        graph.add_edge(START, name)
    graph.add_node("last", last)
    graph.add_edge(["zebra", "ape", "mouse"], "last")
    graph.add_edge("last", END)
    return graph


GRAPHS: dict[str, Callable[[], StateGraph[Any, Any, Any, Any]]] = {
    "approval": approval,
    "slow": slow,
    "deltas": lambda: deltas(asks=True),
}


def command(**settings: Any) -> list[str]:
    """How to run a graph in another process."""
    return [sys.executable, "-m", "tests.acceptance.graphs", json.dumps(settings)]


def elsewhere(**settings: Any) -> dict[str, Any]:
    """Run a graph in another process, and give back its final state."""
    ended = subprocess.run(
        command(**settings), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    state: dict[str, Any] = json.loads(ended.stdout)
    return state


def main(settings: dict[str, Any]) -> None:
    """Run what the settings say: graph, way, url, bucket, input or resume."""
    given = settings.get("input")
    if "resume" in settings:
        given = Command(resume=settings["resume"])
    config: RunnableConfig = {"configurable": settings["configurable"]}
    builder = GRAPHS[settings["graph"]]()
    saver = JetStreamSaver.from_conn_string(settings["url"], bucket=settings["bucket"])
    options = {"durability": settings.get("durability", "sync")}
    if settings["way"] == "sync":
        with saver:
            graph = builder.compile(checkpointer=saver)
            state = graph.invoke(given, config, **options)
    else:

        async def run() -> Any:
            async with saver:
                graph = builder.compile(checkpointer=saver)
                return await graph.ainvoke(given, config, **options)

        state = asyncio.run(run())
    print(json.dumps({k: v for k, v in state.items() if k != "__interrupt__"}))  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
