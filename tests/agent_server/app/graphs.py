"""What the Agent Server serves in the tests."""

from __future__ import annotations

import operator
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    said: Annotated[list[str], operator.add]


async def draft(state: State) -> dict[str, Any]:
    return {"said": ["a draft"]}


async def approve(state: State) -> dict[str, Any]:
    return {"said": [f"approved: {interrupt('publish it?')}"]}


async def publish(state: State) -> dict[str, Any]:
    return {"said": ["published"]}


async def sleep(state: State) -> dict[str, Any]:
    time.sleep(0.01)  # noqa: ASYNC251 - which is what the server has to notice
    return {"said": ["slept"]}


approval = (
    StateGraph(State).add_sequence([draft, approve, publish]).set_entry_point("draft")
).compile()
rude = StateGraph(State).add_node(sleep).set_entry_point("sleep").compile()
