"""Graphs, driven both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from jskv_saver import JetStreamSaver

Builder = StateGraph[Any, Any, Any, Any]


def thread(name: str = "t", **more: Any) -> RunnableConfig:
    """The config of a thread."""
    return {"configurable": {"thread_id": name, **more}}


@dataclass
class Driver:
    """Calls a graph's methods: the asynchronous ones, or the others in a thread."""

    way: str
    saver: BaseCheckpointSaver[Any]

    def compile(self, builder: Builder, **options: Any) -> Any:
        return builder.compile(checkpointer=self.saver, **options)

    async def invoke(self, graph: Any, given: Any, config: Any, **options: Any) -> Any:
        if self.way == "async":
            return await graph.ainvoke(given, config, **options)
        return await asyncio.to_thread(graph.invoke, given, config, **options)

    async def state(self, graph: Any, config: Any, **options: Any) -> Any:
        if self.way == "async":
            return await graph.aget_state(config, **options)
        return await asyncio.to_thread(graph.get_state, config, **options)

    async def history(self, graph: Any, config: Any, **options: Any) -> list[Any]:
        if self.way == "async":
            return [s async for s in graph.aget_state_history(config, **options)]
        found = graph.get_state_history
        return await asyncio.to_thread(lambda: list(found(config, **options)))

    async def update(self, graph: Any, config: Any, *args: Any, **options: Any) -> Any:
        if self.way == "async":
            return await graph.aupdate_state(config, *args, **options)
        return await asyncio.to_thread(graph.update_state, config, *args, **options)


@asynccontextmanager
async def driving(way: str, saver: JetStreamSaver) -> AsyncIterator[Driver]:
    """A driver on a saver that is entered one way or the other."""
    if way == "async":
        async with saver:
            yield Driver(way, saver)
    else:
        await asyncio.to_thread(saver.__enter__)
        yield Driver(way, saver)
        await asyncio.to_thread(saver.__exit__, None, None, None)


@pytest.fixture(params=["async", "sync"])
async def drive(
    request: pytest.FixtureRequest, nats_url: str, bucket: str
) -> AsyncIterator[Driver]:
    """A driver on JetStream."""
    saver = JetStreamSaver.from_conn_string(nats_url, bucket=bucket)
    async with driving(request.param, saver) as driver:
        yield driver


@pytest.fixture
def memory(drive: Driver) -> Driver:
    """The same way of driving, on LangGraph's own saver in memory."""
    return Driver(drive.way, InMemorySaver())


def comparable(states: list[Any]) -> list[Any]:
    """What two runs of the same graph have in common."""
    return [
        (
            state.values,
            state.next,
            {
                k: v
                for k, v in (state.metadata or {}).items()
                if k in ("source", "step")
            },
            [
                (task.name, task.error and repr(task.error), task.result)
                for task in state.tasks
            ],
            [found.value for found in state.interrupts],
        )
        for state in states
    ]
