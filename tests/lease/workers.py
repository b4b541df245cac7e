"""What processes do that share a thread. Each function is the whole of a process."""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from tests.checkpoint.saving import put
from tests.patience import PATIENCE, until

from jskv_saver import JetStreamSaver
from jskv_saver.errors import LeaseLostError, WriterConflictError

STEPS = 200
"""Of all processes together."""


def note(path: Path, line: str) -> None:
    """One line more in a file that several processes write."""
    with path.open("a") as file:
        file.write(f"{line}\n")


async def meet(folder: str, place: str, name: str, count: int) -> None:
    """Wait until so many processes are at a place."""
    (Path(folder) / f"{place}.{name}").touch()
    await until(lambda: len([*Path(folder).glob(f"{place}.*")]) >= count)


def config_of(thread: str, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **more}, "recursion_limit": 1000}


# -- a holder --------------------------------------------------------------------------


async def hold(url: str, bucket: str, ttl: float, report: str) -> None:
    """Take the lease and put one checkpoint after the other, until it is refused."""
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    # The block's own end says it once more.
    try:
        async with saver, saver.lease("t", ttl=ttl):
            n = 0
            while True:
                await put(saver, f"{n:06}", parent=f"{n - 1:06}" if n else None)
                n += 1
                if n == 3:
                    note(Path(report), "held")
    except LeaseLostError:
        note(Path(report), "LeaseLostError")


# -- an action that must happen once ---------------------------------------------------


class Order(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def ordering(
    effects: str, answered: Callable[[str], Awaitable[None]] | None = None
) -> StateGraph[Any, Any, Any, Any]:
    """Asks, and then does what cannot be undone: a line in a file.

    Args:
        effects: The file.
        answered: Awaited with the thread's id between the two.
    """

    async def ask(state: Order, config: RunnableConfig) -> Order:
        answer = interrupt("pay?")
        if answered is not None:
            await answered(config["configurable"]["thread_id"])
        return {"log": [answer]}

    def pay(state: Order, config: RunnableConfig) -> Order:
        note(Path(effects), config["configurable"]["thread_id"])
        return {"log": ["paid"]}

    graph = StateGraph(Order)
    graph.add_node("ask", ask)
    graph.add_node("pay", pay)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "pay")
    graph.add_edge("pay", END)
    return graph


async def resume_all(
    url: str, bucket: str, folder: str, name: str, threads: list[str], alone: bool
) -> None:
    """Resume each thread at the same time as another process does.

    Args:
        url: Of the server.
        bucket: The bucket.
        folder: Where processes meet, and where the actions are noted.
        name: Of this process.
        threads: The threads.
        alone: Under a lease; else both have resumed before one of them acts.
    """
    effects = f"{folder}/effects"

    async def answered(thread: str) -> None:
        await meet(folder, f"{thread}-answered", name, 2)

    async with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
        builder = ordering(effects, None if alone else answered)
        graph = builder.compile(checkpointer=saver)
        for thread in threads:
            config = config_of(thread)
            await meet(folder, thread, name, 2)
            if alone:
                async with saver.lease(thread, ttl=PATIENCE, wait=PATIENCE):
                    if (await graph.aget_state(config)).next:
                        await graph.ainvoke(Command(resume="yes"), config)
            else:
                await graph.ainvoke(Command(resume="yes"), config)


async def die_before_paying(url: str, bucket: str, folder: str, thread: str) -> None:
    """Take the lease, and die while the action is prepared."""

    def die(state: Order) -> Order:
        os.kill(os.getpid(), 9)
        raise AssertionError

    builder = ordering(f"{folder}/effects")
    graph = StateGraph(Order)
    graph.add_node("ask", builder.nodes["ask"].runnable)
    graph.add_node("pay", die)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "pay")
    async with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
        async with saver.lease(thread, ttl=3):
            await graph.compile(checkpointer=saver).ainvoke(
                Command(resume="yes"), config_of(thread), durability="sync"
            )


# -- many on one thread ----------------------------------------------------------------


TOGETHER = (1, STEPS // 2)
"""The steps that all processes are in at once: one of them is first."""


def counting(
    name: str, folder: str = "", count: int = 1
) -> StateGraph[Any, Any, Any, Any]:
    """A step after the other, each of which says who made it."""

    async def step(state: Order) -> Order:
        number = len(state["log"])
        if folder and number in TOGETHER:
            await meet(folder, f"step {number}", name, count)
        return {"log": [f"{number} {name}"]}

    def more(state: Order) -> Literal["step", "__end__"]:
        return "step" if len(state["log"]) < STEPS else "__end__"

    graph = StateGraph(Order)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", more)
    return graph


async def go_on(url: str, bucket: str, folder: str, name: str, count: int) -> None:
    """Continue a thread that others continue as well, until it is at its end.

    Whoever is told that another one was first reads the thread again, and goes on.
    """
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket, on_conflict="raise")
    config = config_of("t")
    async with saver:
        graph = counting(name, folder, count).compile(checkpointer=saver)
        conflicts = 0
        # Not `next`: a task whose writes are stored already is not named there.
        while len((await graph.aget_state(config)).values["log"]) < STEPS:
            try:
                await graph.ainvoke(None, config, durability="sync")
            except WriterConflictError:
                conflicts += 1
                # Or the slower ones would never be first.
                await asyncio.sleep(0.01)
    note(Path(folder) / "conflicts", f"{name} {conflicts}")
