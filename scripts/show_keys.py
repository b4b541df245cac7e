"""Prints the keys that a small graph leaves, and those of documents of one's own.

On a server of its own. docs/storage.md shows what it prints; a test compares shapes.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from datetime import UTC, datetime
from operator import add
from typing import Annotated, Any, TypedDict

import nats
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from jskv_saver import (
    CollectionSpec,
    FieldSpec,
    JetStreamDocumentStore,
    JetStreamSaver,
    LocalServer,
)

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
                "draft", lambda _: {"notes": ["a long text: " + "x" * 5000]}
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


TICKETS = CollectionSpec(
    "tickets",
    (
        FieldSpec("state", "string", indexed=True),
        FieldSpec("effort", "float", indexed=True),
        FieldSpec("due", "datetime", indexed=True),
        FieldSpec("number", "int", unique=True),
        FieldSpec("desk", "string"),
    ),
    (("desk", "number"),),
)
FAMILIES = {"d": "a document", "c": "the declaration", "t": "the change tick"}
INDEXES = {
    "state": "index on `state`",
    "effort": "index on `effort`",
    "due": "index on `due`",
    "number": "unique key on `number`",
    "desk--00number": "unique key on `desk` and `number` together",
}


async def documents() -> list[tuple[str, str]]:
    """The keys of two collections: one indexed and unique, one without a declaration
    of fields."""
    async with LocalServer() as server:
        async with JetStreamDocumentStore.from_conn_string(server.url) as store:
            docs = store.bind("my_app")
            await docs.ensure_collection(TICKETS)
            await docs.ensure_collection(CollectionSpec("notes"))
            due = datetime(2026, 3, 1, tzinfo=UTC)
            for number, effort in ((-2, -1.5), (7, 0.5)):
                await docs.put(
                    "tickets",
                    ("desk 1", str(number)),
                    {
                        "state": "open",
                        "effort": effort,
                        "due": due,
                        "number": number,
                        "desk": "1",
                    },
                )
            await docs.put("tickets", "gone", {})
            await docs.delete("tickets", "gone")
            await docs.put("notes", "first", {"text": "hello"})
            client = await nats.connect(server.url)
            try:
                bucket = await client.jetstream().key_value("jskv")
                names = await bucket.keys()
            finally:
                await client.close()
    names.sort(key=lambda name: (name.startswith("ix."), name))
    return [(name, _document_kind(name)) for name in names]


def _document_kind(name: str) -> str:
    tokens = name.split(".")
    if tokens[1].startswith("//"):
        return "an intent: the last write of one writer"
    return INDEXES[tokens[3]] if tokens[0] == "ix" else FAMILIES[tokens[2]]


def _kind(name: str) -> str:
    if name.startswith("cp.") and name.endswith(".-"):
        return "the epoch, which opens the checkpoint namespace"
    return KINDS[name[:2]]


def main() -> int:
    for name, kind in asyncio.run(keys()) + asyncio.run(documents()):
        print(f"{name}\n    {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
