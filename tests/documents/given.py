"""What blocks of the documents begin with: a graph that asks a person, its threads."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from jskv_saver import JetStreamSaver


class State(TypedDict, total=False):
    """Of a refund."""

    amount: int
    decision: str
    paid: int


def ask(state: State) -> dict[str, Any]:
    return {"decision": interrupt(f"Refund {state['amount']} EUR?")}


def pay(state: State) -> dict[str, Any]:
    return {"paid": state["amount"] if state["decision"] == "approved" else 0}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("pay", pay)
builder.add_edge(START, "ask")
builder.add_edge("ask", "pay")
builder.add_edge("pay", END)

config: RunnableConfig = {"configurable": {"thread_id": "user:1/refund 7"}}


def waiting(thread_id: str = "user:1/refund 7", **options: Any) -> None:
    """Run a thread up to its question, on the server of `NATS_URL`."""
    with JetStreamSaver.from_conn_string(**options) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"amount": 89}, {"configurable": {"thread_id": thread_id}})
