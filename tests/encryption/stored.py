"""A thread that has one of everything, and what of it is in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.saving import AnySaver, at, listed, put

from jskv_saver import DocumentStore
from jskv_saver.document.model import Path, path_of

COLLECTIONS = ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn")
LARGE = "large " * 2_000
HUGE = "huge " * 110_000


async def fill(saver: AnySaver, thread: str = "t", about: str = "about") -> None:
    """Two checkpoints with small and large values, in two namespaces, with writes."""
    for ns in ("", "sub:1"):
        where: dict[str, Any] = {"thread": thread, "ns": ns}
        state: dict[str, Any] = {"small": about, "large": LARGE + about}
        if not ns:
            # Larger than any record, so that there are parts.
            state["huge"] = HUGE + about
        await put(saver, "1", state, run_id="run", about=about, **where)
        await put(saver, "2", state | {"n": 1}, parent="1", new={"n": 1}, **where)
        config = at("2", thread=thread, ns=ns)
        await saver.aput_writes(config, [("small", about), ("other", [1])], "task")
        if not ns:
            writes = [("huge", HUGE[:270_000] + about)]
            await saver.aput_writes(config, writes, "large task", "path")


async def documents(
    store: DocumentStore, namespace: str = "default"
) -> dict[tuple[str, Path], dict[str, Any]]:
    """All that is stored, as whoever has no key sees it."""
    found: dict[tuple[str, Path], dict[str, Any]] = {}
    for collection in COLLECTIONS:
        for id in await store.ids(namespace, collection):
            document = await store.get(namespace, collection, id)
            found[collection, path_of(id)] = document.data
    return found


async def everything(saver: AnySaver, thread: str = "t") -> list[CheckpointTuple]:
    """All checkpoints of a thread, listed and one by one."""
    found = await listed(saver, at(thread=thread, ns=None))
    for each in found:
        assert await saver.aget_tuple(each.config) == each
    return found


def changed(data: Mapping[str, Any], at: int, bits: int = 1) -> dict[str, Any]:
    """An encrypted document with some bits of one byte turned over."""
    sealed = bytearray(data["sealed"])
    sealed[at] ^= bits
    return {"sealed": bytes(sealed)}
