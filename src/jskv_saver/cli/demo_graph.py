"""The agent of the demo: it answers a request for a refund, and asks a person.

            ┌─ check_order ──┐
    read ───┤                ├─── propose ─── ask_person ─── pay ─── answer
            └─ check_policy ─┘

Its replies are fixed texts: no model is called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Protocol, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

REQUEST = HumanMessage("My kettle broke after two days. I want my 89 EUR back.")


class State(TypedDict):
    """What the agent knows."""

    messages: Annotated[list[AnyMessage], add_messages]
    findings: Annotated[list[str], operator.add]
    decision: str


class Watch(Protocol):
    """Is told when a node starts and ends, and may keep it from going on."""

    async def started(self, node: str) -> None:
        """Before the node does anything."""

    def finished(self, node: str) -> None:
        """After it has done everything."""


Node = Callable[[State], dict[str, Any]]


def build(saver: BaseCheckpointSaver[Any] | None, watch: Watch) -> Any:
    """The compiled graph."""
    builder = StateGraph(State)
    for name, node in _BODIES.items():
        builder.add_node(name, _watched(name, node, watch))
    builder.add_edge(START, "read")
    builder.add_edge("read", "check_order")
    builder.add_edge("read", "check_policy")
    builder.add_edge(["check_order", "check_policy"], "propose")
    builder.add_edge("propose", "ask_person")
    builder.add_edge("ask_person", "pay")
    builder.add_edge("pay", "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def _watched(name: str, node: Node, watch: Watch) -> Any:
    async def run(state: State) -> dict[str, Any]:
        await watch.started(name)
        update = node(state)
        watch.finished(name)
        return update

    return run


def _says(text: str) -> dict[str, Any]:
    return {"messages": [AIMessage(text)]}


def _read(state: State) -> dict[str, Any]:
    return _says("I am sorry to hear that. Let me look at your order.")


def _check_order(state: State) -> dict[str, Any]:
    return {"findings": ["order 4711: kettle, 89 EUR, delivered 2 days ago"]}


def _check_policy(state: State) -> dict[str, Any]:
    return {"findings": ["policy: a refund above 50 EUR needs a person's approval"]}


def _propose(state: State) -> dict[str, Any]:
    count = len(state["findings"])
    return _says(f"I found {count} facts and propose a refund of 89 EUR.")


def _ask_person(state: State) -> dict[str, Any]:
    answer = interrupt("Refund 89 EUR for order 4711?")
    return {"decision": answer}


def _pay(state: State) -> dict[str, Any]:
    return {"findings": [f"payment: 89 EUR refunded ({state['decision']})"]}


def _answer(state: State) -> dict[str, Any]:
    return _says("Your 89 EUR are on their way back to you.")


_BODIES: dict[str, Node] = {
    "read": _read,
    "check_order": _check_order,
    "check_policy": _check_policy,
    "propose": _propose,
    "ask_person": _ask_person,
    "pay": _pay,
    "answer": _answer,
}
