"""A process of the demo: runs its graph, and reports each step to its parent.

The first line of its input says what to do, as JSON; the end of its input is the
parent's death, and ends it. What it reports are lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from jskv_saver import JetStreamSaver
from jskv_saver.cli.demo_graph import REQUEST, build


@dataclass(frozen=True)
class Order:
    """What the parent wants.

    Attributes:
        url: The server.
        thread: The thread's id.
        tally: The file that counts how often nodes ran.
        action: `start` a thread, `continue` it, or `answer` what it asked.
        answer: The answer.
        hang_in: A node that never goes on; None: all do.
    """

    url: str
    thread: str
    tally: str
    action: str
    answer: str = ""
    hang_in: str | None = None


class Reporter:
    """Counts what nodes do in the tally, and tells the parent."""

    def __init__(self, order: Order) -> None:
        self._order = order

    async def started(self, node: str) -> None:
        """A node starts."""
        self._count(node, "started")
        if node == self._order.hang_in:
            await asyncio.Event().wait()

    def finished(self, node: str) -> None:
        """A node has ended."""
        self._count(node, "finished")

    def _count(self, node: str, what: str) -> None:
        with open(self._order.tally, "a") as tally:
            tally.write(f"{os.getpid()} {node} {what}\n")
        tell(what, node=node)


def tell(event: str, **details: Any) -> None:
    """Report to the parent."""
    print(json.dumps({"event": event, **details}), flush=True)


def open_saver(url: str) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any]]:
    """The saver: all that this process keeps is there."""
    return JetStreamSaver.from_conn_string(
        url, namespace="demo", agent_id="refund-agent-v1"
    )


async def work(order: Order) -> None:
    """Run the graph until it ends or asks something."""
    async with open_saver(order.url) as saver:
        graph = build(saver, Reporter(order))
        config = {"configurable": {"thread_id": order.thread}}
        inputs: Any = None
        if order.action == "start":
            inputs = {"messages": [REQUEST]}
        else:
            tell("found", **await _state(graph, config))
        if order.action == "answer":
            inputs = Command(resume=order.answer)
        # Each step is stored before the next one starts.
        await graph.ainvoke(inputs, config, durability="sync")
        state = await _state(graph, config)
        if state["next"]:
            tell("waiting", **state)
            await asyncio.Event().wait()
        tell("ended", **state)


async def _state(graph: Any, config: Any) -> dict[str, Any]:
    snapshot = await graph.aget_state(config)
    values = snapshot.values
    return {
        "checkpoint": snapshot.config["configurable"].get("checkpoint_id"),
        "next": list(snapshot.next),
        "asks": [str(each.value) for each in snapshot.interrupts],
        "state": {
            "messages": [f"{m.type}: {m.content}" for m in values.get("messages", ())],
            "findings": list(values.get("findings", ())),
            "decision": values.get("decision"),
        },
    }


def _end_with_parent() -> None:
    while sys.stdin.readline():
        pass
    os._exit(1)


def main() -> None:
    """Do what the parent wants."""
    order = Order(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(work(order))


if __name__ == "__main__":
    main()
