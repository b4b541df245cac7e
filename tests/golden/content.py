"""What the golden buckets hold, and what is read of them: as text, to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt, Send
from tests.checkpoint.saving import at, listed, numbered, put

from jskv_saver import (
    CollectionSpec,
    DocumentCheckpointSaver,
    FieldSpec,
    JetStreamDocumentStore,
)

NAMESPACE: Final = "golden"
KEY: Final = "00112233445566778899aabbccddeeff" * 2
HOME: Final = Path(__file__).parent
LONG: Final = "thread " + "long/" * 150
THREADS: Final = (
    "chat",
    "types",
    "delta",
    "pruned",
    "waits",
    "user:1/s 7 Bücher",
    LONG,
)
CHANNELS: Final = {"delta": ("x",)}
ADMITTED: Final = datetime(2026, 1, 1, tzinfo=UTC)
TURNS: Final = 36
"""Checkpoints of the chat."""
_SHORT: Final = 64
"""Characters or bytes of a value that is kept as it is; of others a digest."""


async def fill(saver: DocumentCheckpointSaver, *, removes: bool = True) -> None:
    """Write one of each kind."""
    await _chat(saver)
    await _types(saver)
    await _delta(saver)
    await _waits(saver)
    for n, thread in enumerate(THREADS[5:]):
        for ns in ("", "sub:1|inner:2"):
            state = {"n": n, "text": thread}
            await put(saver, "1", state, thread=thread, ns=ns, run_id="run *")
    for id in numbered(6):
        parent = f"{int(id) - 1:06}" if int(id) else None
        state = {"keep": "k" * 3000, "n": id}
        await put(saver, id, state, parent=parent, thread="pruned", run_id=id)
        await saver.aput_writes(at(id, thread="pruned"), [("a", id)], "task")
    if removes:
        await saver.adelete_for_runs(["000001", "000003"])
        await put(saver, "7", {"n": 7}, parent="000005", thread="pruned")
    await saver.aadmit(at(thread="chat"), {"ask": ["refund", 89]}, request_id="r/1")
    await saver.apin("chat", "legal hold")


async def _chat(saver: DocumentCheckpointSaver) -> None:
    """Messages that grow, are edited and dropped; a file that stays."""
    messages: list[dict[str, Any]] = []
    parent = None
    for n in range(TURNS):
        messages.append(
            {"id": n, "role": "ai" if n % 2 else "human", "text": f"{n} " * 90}
        )
        if n == 20:
            messages[3]["text"] = "edited"
        if n == 25:
            del messages[:15]
        state: dict[str, Any] = {"messages": messages, "turn": n}
        versions = {"messages": n + 1, "turn": n + 1}
        if n >= 22:
            state["file"], versions["file"] = bytes(range(256)) * 40, 22
        new = {k: v for k, v in versions.items() if k != "file" or n == 22}
        id = f"1f1ed3d2-6a10-63a7-8003-{n:012}"
        await put(
            saver,
            id,
            state,
            parent=parent,
            thread="chat",
            versions=versions,
            new=new,
            step=n,
            run_id=f"run {n // 10}",
        )
        parent = id


async def _types(saver: DocumentCheckpointSaver) -> None:
    state = {
        "none": None,
        "numbers": [0, -1, 2**62, 1.5, True],
        "text": "a\x00b é 日本 🦜",
        "bytes": b"\x00\xff",
        "tuple": (1, "two"),
        "set": {3},
        "when": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "lasts": timedelta(days=1, seconds=2),
        "uuid": UUID(int=7),
        "sends": [Send("node", {"x": 1})],
        "empty": ["", [], {}],
    }
    versions = {name: f"{n:032}.5" for n, name in enumerate(state, 1)}
    await put(saver, "old", {"n": 1}, thread="types", v=3)
    await put(
        saver,
        "types",
        state,
        parent="old",
        thread="types",
        versions=versions,
        graph_version="7",
        nested={"deep": [1, {"er": None}]},
    )


async def _delta(saver: DocumentCheckpointSaver) -> None:
    """A delta channel: whole in the first, changes in the writes of the others."""
    for n in range(4):
        await put(
            saver,
            f"{n}",
            {} if n else {"x": ["seed"]},
            parent=f"{n - 1}" if n else None,
            thread="delta",
            versions={"x": n + 1},
            new={"x": n + 1},
            counters_since_delta_snapshot={"x": (n, n)} if n else {},
        )
        config = at(f"{n}", thread="delta")
        await saver.aput_writes(config, [("x", [n]), ("y", n)], f"task {n}", f"~p, {n}")


async def _waits(saver: DocumentCheckpointSaver) -> None:
    """Writes: regular and special ones, large ones, and some without a checkpoint."""
    config = at("2", thread="waits")
    await put(saver, "2", {"n": 1}, thread="waits")
    await saver.aput_writes(config, [("a", 1), ("b", [2])], "t1", "~__pregel_pull, a")
    await saver.aput_writes(config, [("__error__", "first")], "t2")
    await saver.aput_writes(config, [("__error__", "second")], "t2")
    asks = [Interrupt(value="really?", id="0" * 32)]
    await saver.aput_writes(config, [("__interrupt__", asks)], "t3")
    await saver.aput_writes(config, [("large", "x" * 270_000), ("small", 1)], "t4")
    await saver.aput_writes(at("3", thread="waits"), [("early", True)], "t5")


async def read(saver: DocumentCheckpointSaver) -> dict[str, Any]:
    """All of it, as JSON has it; what JSON lacks as its `repr`."""
    found: dict[str, Any] = {}
    for thread in THREADS:
        rows = await listed(saver, at(thread=thread, ns=None))
        found[thread] = [_row(row) for row in rows]
        single = await saver.aget_tuple(at(thread=thread))
        assert single is not None
        found[f"latest of {thread}"] = _row(single)
        for channel in CHANNELS.get(thread, ()):
            history = await saver.aget_delta_channel_history(
                config=at(thread=thread), channels=[channel]
            )
            found[f"history of {thread}"] = _plain(history)
    found["admitted"] = [
        [a.thread_id, a.request_id, _plain(a.request), a.begun]
        for a in await saver.aadmitted(begun=True)
    ]
    found["pinned"] = _plain(await saver.apinned())
    # As it comes back from a file.
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def _row(row: CheckpointTuple) -> dict[str, Any]:
    return {
        "config": _plain(row.config),
        "parent": _plain(row.parent_config),
        "metadata": _plain(row.metadata),
        "checkpoint": _plain(row.checkpoint),
        "writes": _plain(row.pending_writes),
    }


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _SHORT:
        return f"{value[:8]}… {len(value)} {_digest(value.encode())}"
    if isinstance(value, bytes) and len(value) > _SHORT:
        return f"{value[:4].hex()}… {len(value)} {_digest(value)}"
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(each) for each in value]
    return repr(value)


async def fill_documents(store: JetStreamDocumentStore) -> None:
    """Documents of one's own, with indexes, unique fields, and one that is deleted."""
    fields = (
        FieldSpec("state", "string", indexed=True),
        FieldSpec("due", "datetime", indexed=True),
        FieldSpec("number", "int", unique=True),
        FieldSpec("desk", "string"),
    )
    await store.ensure_collection(
        NAMESPACE, CollectionSpec("tickets", fields, (("desk", "number"),))
    )
    await store.ensure_collection(NAMESPACE, CollectionSpec("notes"))
    for n in range(5):
        state = "open" if n % 2 else "done"
        data: dict[str, Any] = {"state": state, "number": n - 2, "desk": "d 1"}
        data |= {"due": ADMITTED + timedelta(days=n), "more": [b"x", {"n": 1.5}]}
        await store.put(NAMESPACE, "tickets", ("desk", str(n)), data)
    await store.put(
        NAMESPACE, "tickets", ("desk", "1"), {"state": "closed", "number": 9}
    )
    await store.delete(NAMESPACE, "tickets", ("desk", "4"))
    await store.put(NAMESPACE, "notes", "first", {"text": "free"})


async def read_documents(store: JetStreamDocumentStore) -> dict[str, Any]:
    """All of them, by id and by index."""
    rows = [d async for d in store.iterate(NAMESPACE, "tickets")]
    opened = await store.find(NAMESPACE, "tickets", [("state", "eq", "open")])
    nine = await store.find(NAMESPACE, "tickets", [("number", "eq", 9)])
    later = await store.find(
        NAMESPACE, "tickets", [("due", "gt", ADMITTED)], order_by=("due", "desc")
    )
    note = await store.get(NAMESPACE, "notes", "first")
    found = {
        "collections": list(await store.collections(NAMESPACE)),
        "tickets": [[_plain(d.id), _plain(d.data)] for d in rows],
        "open": [_plain(d.id) for d in opened.items],
        "nine": [_plain(d.id) for d in nine.items],
        "later": [_plain(d.id) for d in later.items],
        "note": _plain(note.data),
    }
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain
