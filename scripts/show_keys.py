"""Runs a small graph on a server of its own, and prints the keys that this leaves.

docs/storage.md shows what it prints; a test compares the shapes.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from operator import add
from typing import Annotated, Any, TypedDict

import nats
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from jskv_saver import JetStreamSaver, LocalServer

THREAD = "user:1/session 7"
KINDS = {
    "cp": "a checkpoint's record",
    "wr": "the writes of one task",
    "bl": "a part of channel values",
    "th": "index: the thread has this checkpoint namespace",
    "rn": "index: the run wrote to this thread",
}


class State(TypedDict):
    notes: Annotated[list[str], add]


async def keys() -> list[tuple[str, str]]:
    """The keys after one run up to an interrupt, with what each of them is."""
    async with LocalServer() as server:
        async with JetStreamSaver.from_conn_string(
            server.url, namespace="my_app", agent_id="reviewer-v1"
        ) as saver:
            builder = StateGraph(State)
            builder.add_node(
                "draft", lambda _: {"notes": ["a long text: " + "x" * 700]}
            )
            builder.add_node("ask", lambda _: {"notes": [interrupt("Send it?")]})
            builder.add_edge(START, "draft")
            builder.add_edge("draft", "ask")
            builder.add_edge("ask", END)
            config: Any = {
                "configurable": {"thread_id": THREAD},
                "metadata": {"run_id": str(uuid.uuid4())},
            }
            graph = builder.compile(checkpointer=saver)
            await graph.ainvoke({"notes": ["begin"]}, config)
        client = await nats.connect(server.url)
        try:
            bucket = await client.jetstream().key_value("jskv")
            names = await bucket.keys()
        finally:
            await client.close()
    order = list(KINDS)
    names.sort(key=lambda name: (order.index(name[:2]), name))
    return [(name, _kind(name)) for name in names]


def _kind(name: str) -> str:
    if name.startswith("cp.") and name.endswith(".-"):
        return "the epoch, which opens the checkpoint namespace"
    return KINDS[name[:2]]


def main() -> int:
    for name, kind in asyncio.run(keys()):
        print(f"{name}\n    {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
