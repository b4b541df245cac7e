"""A thread with a DeltaChannel: its state is what its ancestors contributed."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from scripts.bench.peers import AnySaver
from scripts.bench.run import Bench

SUPERSTEPS = 500
IN_A_RUN = 10
READS = 40


def extended(state: list[Any] | None, writes: Sequence[list[Any]]) -> list[Any]:
    """All that was written, in order."""
    return [*(state or []), *(line for write in writes for line in write)]


class State(TypedDict):
    """A log that is stored as what was added."""

    log: Annotated[list[str], DeltaChannel(extended)]
    left: int


def compiled(saver: AnySaver) -> Any:
    """A node that says a line until none is left."""

    def say(state: State) -> dict[str, Any]:
        line = f"{len(state['log'])} lines, {state['left']} to go: " + "word " * 50
        return {"log": [line], "left": state["left"] - 1}

    async def asay(state: State) -> dict[str, Any]:
        return say(state)

    builder = StateGraph(State)
    builder.add_node("say", asay)
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", lambda state: "say" if state["left"] else END)
    return builder.compile(checkpointer=saver)


async def delta(bench: Bench) -> AsyncGenerator[None, None]:
    """Runs of ten supersteps, then the latest state and earlier ones by their ids."""
    graph = compiled(bench.saver)
    thread = {"configurable": {"thread_id": "delta"}}
    known: list[tuple[Any, list[str]]] = []
    log: list[str] = []
    for run in range(max(1, bench.size(SUPERSTEPS) // IN_A_RUN)):
        # The input is a superstep too. The log is snapshotted every hundredth time that
        # it is written: here the latest state is half-way between two snapshots.
        given = {"left": IN_A_RUN - 1}
        result = await graph.ainvoke(given, thread, durability="sync")
        bench.check(result["log"][: len(log)] == log, "what a run went on from")
        log = result["log"]
        bench.check(len(log) == (run + 1) * (IN_A_RUN - 1), "a run's log")
        known.append(((await graph.aget_state(thread)).config, log))
        yield
    rng = random.Random(5)
    for config, expected in rng.choices(known, k=bench.size(READS, 3)):
        state = await bench.timed("latest state", graph.aget_state(thread))
        bench.check(state.values["log"] == log, "the latest state of a delta channel")
        state = await bench.timed("state by id", graph.aget_state(config))
        bench.check(state.values["log"] == expected, "a delta channel's state by id")
        yield
    await bench.record_stored()
