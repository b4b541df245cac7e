"""Threads as graphs leave them: done, asked, failed, forked, nested, with deltas."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.types import Command
from tests.acceptance.graphs import Log, approval, deltas, failing, sending

ODD = "user:1/séance 7.*>"


@dataclass
class Order:
    """A type of the user's."""

    number: int
    lines: list[str]


class Shop(TypedDict, total=False):
    orders: Annotated[list[Order], operator.add]
    messages: Annotated[list[Any], operator.add]


def shop() -> StateGraph[Any, Any, Any, Any]:
    """One node whose state has the user's types, messages, and what JSON has not."""

    def order(state: Shop) -> Shop:
        number = len(state.get("orders", []))
        said = [HumanMessage("one", id=f"h{number}"), AIMessage("done", id="a")]
        return {"orders": [Order(number, ["é", "\0"])], "messages": [*said, {1: b"x"}]}

    return StateGraph(Shop).add_node(order).set_entry_point("order")


def nested() -> StateGraph[Any, Any, Any, Any]:
    """A graph that asks, inside another one."""
    return (
        StateGraph(Log).add_node("inner", approval().compile()).set_entry_point("inner")
    )


def thread(name: str, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": name, **more}}


async def fill(saver: BaseCheckpointSaver[Any]) -> list[str]:
    """Run graphs on a saver. Their threads' ids."""

    def compiled(builder: StateGraph[Any, Any, Any, Any]) -> Any:
        return builder.compile(checkpointer=saver)

    buying = compiled(shop())
    for _ in range(3):
        await buying.ainvoke({}, thread(ODD))
    first = [state async for state in buying.aget_state_history(thread(ODD))][-2]
    # Another branch: its versions are those of the first one.
    await buying.ainvoke(None, first.config)

    asking = compiled(approval())
    await asking.ainvoke({"log": ["go"]}, thread("asked"))
    await asking.ainvoke(Command(resume="yes"), thread("asked"))

    await compiled(sending(4)).ainvoke({"log": []}, thread("sent"))
    await compiled(nested()).ainvoke({"log": ["go"]}, thread("nested"))
    # One of three tasks failed; what the others wrote waits.
    with pytest.raises(RuntimeError, match="no"):
        await compiled(failing(["no"])).ainvoke({"log": []}, thread("failed"))

    summing = compiled(deltas(asks=True))
    for _ in range(3):
        await summing.ainvoke({"items": [], "total": 0}, thread("deltas"))
        await summing.ainvoke(Command(resume="go on"), thread("deltas"))
    await summing.ainvoke({"items": ["x"], "total": 0}, thread("deltas"))
    return [ODD, "asked", "sent", "nested", "failed", "deltas"]


async def resume(saver: BaseCheckpointSaver[Any]) -> dict[str, Any]:
    """Go on with each thread; the states that come of it."""

    def compiled(builder: StateGraph[Any, Any, Any, Any]) -> Any:
        return builder.compile(checkpointer=saver)

    states = {
        ODD: await compiled(shop()).ainvoke({}, thread(ODD)),
        "asked": await compiled(approval()).ainvoke(
            Command(resume="twice"), thread("asked")
        ),
        "sent": await compiled(sending(2)).ainvoke({"log": ["more"]}, thread("sent")),
        "nested": await compiled(nested()).ainvoke(
            Command(resume="inside"), thread("nested")
        ),
        "failed": await compiled(failing([])).ainvoke(None, thread("failed")),
        "deltas": await compiled(deltas(asks=True)).ainvoke(
            Command(resume="at last"), thread("deltas")
        ),
    }
    # Interrupts have ids that are made of their namespace's, which is a new one.
    return {
        name: {key: value for key, value in state.items() if key != "__interrupt__"}
        for name, state in states.items()
    }
