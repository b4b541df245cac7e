"""How the tests of the saver speak to it, shortly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from jskv_saver import DocumentCheckpointSaver

OpenSaver = Callable[..., DocumentCheckpointSaver]
"""Makes a saver on the test's storage, each on a connection of its own."""

AnySaver = BaseCheckpointSaver[Any]

HOSTILE = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "a ",
    "a.",
    ".a",
    "a.b",
    "a..b",
    ".",
    "..",
    "a|b",
    "a:1|b:2",
    "a/b",
    "a\\b",
    "*",
    "a*",
    ">",
    "to>*",
    "$SYS",
    "$KV.x.y",
    "None",
    "__empty__",
    "%2E",
    "=2E",
    "é",
    "e\u0301",
    "日本語",
    "🦜🔗",
    "\u202e",
    "a\r\nPUB x 1\r\ny",
    "a\n",
    "\t",
    "user:1/session 7",
    "x@example.org",
    "0" * 600,
    "0" * 599 + "1",
    "é" * 700,
]
"""Ids that are free text, all different; none of them may meet another."""


def at(
    id: str | None = None, *, thread: object = "t", ns: str | None = "", **more: Any
) -> RunnableConfig:
    """A config: of a checkpoint, or of the latest."""
    configurable: dict[str, Any] = {"thread_id": thread, **more}
    if ns is not None:
        configurable["checkpoint_ns"] = ns
    if id is not None:
        configurable["checkpoint_id"] = id
    return {"configurable": configurable}


def checkpoint(
    id: str,
    values: Mapping[str, Any] | None = None,
    versions: Mapping[str, Any] | None = None,
    *,
    v: int = 4,
) -> Checkpoint:
    """A checkpoint; each channel's version is its id, unless given."""
    values = dict(values or {})
    return Checkpoint(
        v=v,
        id=id,
        ts="2026-01-01T00:00:00+00:00",
        channel_values=values,
        channel_versions=(
            dict.fromkeys(values, id) if versions is None else dict(versions)
        ),
        versions_seen={},
        updated_channels=None,
    )


def meta(**metadata: Any) -> CheckpointMetadata:
    """Metadata of a step."""
    return cast(CheckpointMetadata, {"source": "loop", "step": 0, **metadata})


async def put(
    saver: AnySaver,
    id: str,
    values: Mapping[str, Any] | None = None,
    *,
    parent: str | None = None,
    thread: object = "t",
    ns: str = "",
    versions: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    v: int = 4,
    **metadata: Any,
) -> RunnableConfig:
    """Store a checkpoint; all its channels are new, unless given."""
    made = checkpoint(id, values, versions, v=v)
    return await saver.aput(
        at(parent, thread=thread, ns=ns),
        made,
        meta(**metadata),
        made["channel_versions"] if new is None else dict(new),
    )


async def put_chain(
    saver: AnySaver,
    ids: Sequence[str],
    *,
    thread: object = "t",
    ns: str = "",
    **metadata: Any,
) -> None:
    """Store checkpoints, each the parent of the next; `n` counts them."""
    parent = None
    for n, id in enumerate(ids):
        await put(
            saver, id, {"n": n}, parent=parent, thread=thread, ns=ns, step=n, **metadata
        )
        parent = id


def numbered(count: int, start: int = 0) -> list[str]:
    """Checkpoint ids, ascending."""
    return [f"{n:06}" for n in range(start, start + count)]


async def get(
    saver: AnySaver, id: str | None = None, *, thread: object = "t", ns: str = ""
) -> CheckpointTuple:
    """A checkpoint that is there."""
    found = await saver.aget_tuple(at(id, thread=thread, ns=ns))
    assert found is not None, f"checkpoint {id!r} is not there"
    return found


async def values(
    saver: AnySaver, id: str | None = None, *, thread: object = "t", ns: str = ""
) -> dict[str, Any]:
    """The channel values of a checkpoint that is there."""
    return (await get(saver, id, thread=thread, ns=ns)).checkpoint["channel_values"]


async def listed(
    saver: AnySaver, config: RunnableConfig | None = None, **options: Any
) -> list[CheckpointTuple]:
    """All that a listing gives."""
    return [found async for found in saver.alist(config, **options)]


async def ids(
    saver: AnySaver, config: RunnableConfig | None = None, **options: Any
) -> list[str]:
    """The checkpoint ids that a listing gives, in its order."""
    return [id_of(found) for found in await listed(saver, config, **options)]


def id_of(found: CheckpointTuple) -> str:
    """The id of a checkpoint, the same in its config and in itself."""
    id: str = found.config["configurable"]["checkpoint_id"]
    assert found.checkpoint["id"] == id
    return id


def parent_of(found: CheckpointTuple) -> str | None:
    """The id of the parent."""
    if found.parent_config is None:
        return None
    id: str = found.parent_config["configurable"]["checkpoint_id"]
    return id
