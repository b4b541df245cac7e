"""Threads of everything, and what is left of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.checkpoint.saving import at, put

from jskv_saver import DocumentCheckpointSaver

COLLECTIONS = ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn")
LARGE = "l" * 400_000
TEXT = "x" * 5000
ANY_AGE = timedelta(microseconds=1)
DAY = timedelta(days=1)


async def keys(saver: DocumentCheckpointSaver, thread: str = "t") -> list[Any]:
    within = ("default", thread)
    return [
        (name, id)
        for name in COLLECTIONS
        for id in await saver.store.ids("default", name, within=within)
    ]


async def fill(saver: DocumentCheckpointSaver, thread: str = "t") -> None:
    """A thread of everything: parts, writes, runs, two namespaces."""
    for ns in ("", "child:1"):
        parent = None
        for n in range(3):
            id = f"{n}"
            text = f"{id}" + TEXT
            await put(
                saver,
                id,
                {"text": text},
                parent=parent,
                thread=thread,
                ns=ns,
                run_id=id,
            )
            await saver.aput_writes(at(id, thread=thread, ns=ns), [("c", n)], "task")
            parent = id
    await saver.aput_writes(at("2", thread=thread), [("c", LARGE)], "large")
    await saver.aadmit(at(thread=thread), {"do": "it"})


async def states(saver: DocumentCheckpointSaver) -> dict[Any, Any]:
    """All checkpoints by namespace and id, without what came late."""
    states: dict[Any, Any] = {}
    async for found in saver.alist(at(ns=None)):
        writes = [write for write in found.pending_writes or [] if write[0] != "late"]
        key = found.config["configurable"]["checkpoint_ns"], found.checkpoint["id"]
        states[key] = found._replace(pending_writes=writes)
    return states
