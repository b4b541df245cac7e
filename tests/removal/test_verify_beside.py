"""Verification and repair beside writers and prunes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.checkpoint.saving import at, put, values
from tests.removal.verifying import TEXT, Saver, brief, fill, look


async def test_what_is_under_way_is_no_finding(
    saver: Saver, other: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put whose parts are stored, and whose record comes while it is looked."""
    await fill(saver)
    store = type(saver.store)
    put_many = store.put_many
    looked = asyncio.Event()
    stored = asyncio.Event()

    async def slow(self: Any, namespace: str, writes: Any, **options: Any) -> Any:
        *parts, last = writes
        if last[0] == "cp" and parts and not stored.is_set():
            await put_many(self, namespace, parts, **options)
            stored.set()
            await looked.wait()
        return await put_many(self, namespace, writes, **options)

    monkeypatch.setattr(store, "put_many", slow)
    text = TEXT[::-1] + "new" * 2000
    putting = asyncio.create_task(put(saver, "3", {"text": text}, parent="2"))
    await stored.wait()
    assert {kind for kind, _ in brief(await look(other))} == {"unreachable"}
    verifying = asyncio.create_task(other.averify(settle=5))
    await asyncio.sleep(0)
    looked.set()
    await putting
    assert (await verifying).ok


async def test_beside_writers_and_prunes_nothing_is_found_and_nothing_lost(
    saver: Saver, other: Saver
) -> None:
    stop = asyncio.Event()

    async def write() -> str:
        n, parent, text = 0, None, TEXT
        while (not stop.is_set() and n < 2_000) or n < 20:
            # The store in memory never pauses by itself.
            await asyncio.sleep(0)
            text = (text + f"{n} " * 300)[-9000:]
            id = f"{n:05}"
            await put(saver, id, {"text": text, "n": n}, parent=parent, run_id=id[:4])
            await saver.aput_writes(at(id), [("c", n)], "task")
            parent, n = id, n + 1
        return text

    async def prune() -> None:
        while not stop.is_set():
            await asyncio.sleep(0)
            await saver.aprune(["t"], keep_last=3)

    writing, pruning = asyncio.create_task(write()), asyncio.create_task(prune())
    try:
        for _ in range(3):
            report = await other.averify(settle=0.1)
            errors = [e for e in report.findings if e.severity == "error"]
            assert not errors
            await other.arepair()
    finally:
        stop.set()
    text = await writing
    await pruning
    await other.arepair()
    assert (await look(other)).ok
    assert (await values(other))["text"] == text
