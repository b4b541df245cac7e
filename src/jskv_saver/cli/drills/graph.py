"""The graph of the drills: its nodes write down that they started and finished.

         ┌─ check_a ──┐
read ────┤            ├─── decide ─── pay ─── answer
         └─ check_b ──┘
"""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

STEPS: Final = (("read",), ("check_a", "check_b"), ("decide",), ("pay",), ("answer",))
"""The nodes of each step."""
REQUEST: Final = {"log": ["please"]}
EXPECTED: Final = ("please", *(name for step in STEPS for name in step))
"""The log at the end."""


class State(TypedDict):
    """What the graph knows."""

    log: Annotated[list[str], operator.add]


class Event(NamedTuple):
    """Something that a node did."""

    pid: int
    node: str
    what: str


class Tally:
    """A file in which each node of each process writes a line, before it goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, node: str, what: str) -> None:
        """Write that a node `started` or `finished`."""
        with self._path.open("a") as tally:
            tally.write(f"{os.getpid()} {node} {what}\n")

    def events(self) -> list[Event]:
        """All that was written, in order."""
        if not self._path.exists():
            return []
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return [Event(int(pid), node, what) for pid, node, what in lines]


def build(
    saver: BaseCheckpointSaver[Any],
    tally: Tally,
    *,
    fails: Collection[str] = (),
    asks: Collection[str] = (),
) -> Any:
    """The compiled graph.

    Args:
        saver: Its checkpointer.
        tally: Where the nodes write down what they do.
        fails: Nodes that raise when they have started.
        asks: Nodes that ask when they have started, and go on with the answer.
    """
    builder = StateGraph(State)

    def node(name: str) -> Any:
        async def run(state: State) -> dict[str, list[str]]:
            tally.add(name, "started")
            if name in fails:
                raise DrillError(f"{name} fails, as it was told to")
            if name in asks:
                interrupt(f"{name}?")
            tally.add(name, "finished")
            return {"log": [name]}

        return run

    for step in STEPS:
        for name in step:
            builder.add_node(name, node(name))
    builder.add_edge(START, "read")
    builder.add_edge("read", "check_a")
    builder.add_edge("read", "check_b")
    builder.add_edge(["check_a", "check_b"], "decide")
    builder.add_edge("decide", "pay")
    builder.add_edge("pay", "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


class DrillError(Exception):
    """What a node raises that is told to fail."""


def nodes(events: Iterable[Event], what: str) -> list[str]:
    """The nodes of some events of one kind, in order."""
    return [event.node for event in events if event.what == what]
