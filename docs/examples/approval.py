"""An approval over two processes: one asks and ends, another one goes on.

    python docs/examples/approval.py                    # both, one after the other

or, on a server that runs (`NATS_URL`, the NATS context, or localhost:4222):

    python docs/examples/approval.py ask refund-7 89
    python docs/examples/approval.py answer refund-7 approved

Between the two nothing runs but the NATS server; a day may pass. An answer to a
thread that waits for none is refused, so that it is not acted upon twice.

It prints:

    process 1: Refund 89 EUR for refund-7?
    process 1 has ended with 0
    process 2: paid 89 EUR
    process 2 has ended with 0
    process 3: refund-7 waits for no answer
    process 3 has ended with 1
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from jskv_saver import JetStreamSaver, LocalServer


class Refund(TypedDict, total=False):
    """What is to be paid, and what was decided."""

    name: str
    amount: int
    decision: str
    paid: int


def approve(state: Refund) -> Refund:
    asked = f"Refund {state['amount']} EUR for {state['name']}?"
    return {"decision": interrupt(asked)}


def pay(state: Refund) -> Refund:
    return {"paid": state["amount"] if state["decision"] == "approved" else 0}


builder = StateGraph(Refund)
builder.add_node("approve", approve)
builder.add_node("pay", pay)
builder.add_edge(START, "approve")
builder.add_edge("approve", "pay")
builder.add_edge("pay", END)


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def saver() -> JetStreamSaver:
    return JetStreamSaver.from_conn_string(namespace="examples", agent_id="approval")


def ask(name: str, amount: int) -> None:
    """Run up to the question, and end."""
    with saver() as checkpointer:
        graph = builder.compile(checkpointer=checkpointer)
        result = graph.invoke({"name": name, "amount": amount}, thread(name))
        print(result["__interrupt__"][0].value)


def answer(name: str, decision: str) -> None:
    """Go on where another process has stopped; two that answer at once take turns."""
    with saver() as checkpointer, checkpointer.lease(name):
        graph = builder.compile(checkpointer=checkpointer)
        if not graph.get_state(thread(name)).interrupts:
            sys.exit(f"{name} waits for no answer")
        result = graph.invoke(Command(resume=decision), thread(name))
        print(f"paid {result['paid']} EUR")


def show() -> None:
    """Both, each in a process of its own."""
    with ExitStack() as stack:
        if "NATS_URL" not in os.environ:
            os.environ["NATS_URL"] = stack.enter_context(LocalServer()).url
        calls = [
            ["ask", "refund-7", "89"],
            ["answer", "refund-7", "approved"],
            ["answer", "refund-7", "approved"],
        ]
        for number, arguments in enumerate(calls, 1):
            done = subprocess.run(
                [sys.executable, __file__, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            print(f"process {number}: {done.stdout.strip()}")
            print(f"process {number} has ended with {done.returncode}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            show()
        case ["ask", name, amount]:
            ask(name, int(amount))
        case ["answer", name, decision]:
            answer(name, decision)
        case _:
            sys.exit(__doc__)
