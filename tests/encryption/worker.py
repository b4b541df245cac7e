"""A graph of three nodes that an agent runs in a process that may die.

    python -m tests.encryption.worker URL BUCKET NODE

It begins the thread `t`, with the keys of the environment, and kills itself in NODE.
"""

from __future__ import annotations

import asyncio
import operator
import os
import signal
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from jskv_saver import Encryption, JetStreamSaver

SECRET = "launch code 0000 "
THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    code: str


def builder(dies_in: str | None = None) -> StateGraph[State, None, State, State]:
    """The graph, one node of which may kill the process."""

    def node(name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            if name == dies_in:
                os.kill(os.getpid(), signal.SIGKILL)
            return {"log": [name], "code": state["code"] + SECRET * 100}

        return run

    made = StateGraph(State)
    names = ("plan", "act", "report")
    for before, name in zip((START, *names), names, strict=False):
        made.add_node(name, node(name))
        made.add_edge(before, name)
    made.add_edge("report", END)
    return made


async def main(url: str, bucket: str, dies_in: str) -> None:
    """Run until it dies."""
    async with JetStreamSaver.from_conn_string(
        url, bucket=bucket, encryption=Encryption.from_env()
    ) as saver:
        graph = builder(dies_in).compile(checkpointer=saver)
        await graph.ainvoke({"log": [], "code": ""}, THREAD, durability="sync")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
