"""A real graph: five nodes in a row, then four side by side."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from scripts.bench.peers import AnySaver, open_blocking
from scripts.bench.run import Bench

ROW, FAN = 5, 4
RUNS = 40
BLOCK = 4
Durability = Literal["sync", "async", "exit"]
DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")


class State(TypedDict):
    """What the nodes said."""

    log: Annotated[list[str], operator.add]


def compiled(saver: AnySaver, *, blocking: bool = False) -> Any:
    """The graph on a saver; its nodes are of the same kind as the calls."""
    builder = StateGraph(State)

    def add(name: str) -> None:
        def node(state: State) -> dict[str, list[str]]:
            return {"log": [f"{name} has read {len(state['log'])} lines " * 5]}

        async def anode(state: State) -> dict[str, list[str]]:
            return node(state)

        builder.add_node(name, node if blocking else anode)

    row = [f"row{n}" for n in range(ROW)]
    for before, name in zip([START, *row], row, strict=False):
        add(name)
        builder.add_edge(before, name)
    for name in [f"fan{n}" for n in range(FAN)]:
        add(name)
        builder.add_edge(row[-1], name)
        builder.add_edge(name, END)
    return builder.compile(checkpointer=saver)


async def graph(bench: Bench) -> AsyncGenerator[None, None]:
    """Whole runs on new threads, in each durability, and through the blocking face."""
    built = compiled(bench.saver)
    for at in range(0, bench.size(RUNS, 2), BLOCK):
        for durability in DURABILITIES:
            for number in range(at, at + BLOCK):
                config = _config(f"{durability}-{number}")
                result = await bench.timed(
                    f"{durability}, a run",
                    built.ainvoke({"log": ["in"]}, config, durability=durability),
                )
                state = await built.aget_state(config)
                bench.check(state.values == result, "a graph's state")
                bench.check(len(result["log"]) == 1 + ROW + FAN, "a graph's result")
            yield
        # Not on the loop: it must be free where the saver needs it.
        for spent in await asyncio.to_thread(_blocking, bench, at):
            bench.record("blocking, a run", spent)
        yield


def _blocking(bench: Bench, at: int) -> list[float]:
    times = []
    with open_blocking(bench.place.address) as saver:
        built = compiled(saver, blocking=True)
        for number in range(at - 1, at + BLOCK):
            config = _config(f"blocking-{number}")
            before = time.perf_counter()
            result = built.invoke({"log": ["in"]}, config)
            times.append((time.perf_counter() - before) * 1000)
            bench.check(built.get_state(config).values == result, "a graph's state")
    # The first is the opening's.
    return times[1:]


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}
