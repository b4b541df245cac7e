"""What is removed is gone, and nothing else; what was never there leaves no trace."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import ERROR
from nats.aio.client import Client
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    ids,
    listed,
    numbered,
    put,
    values,
)
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver

Saver = DocumentCheckpointSaver
COLLECTIONS = ("cp", "wr", "bl", "th", "rn")


async def _keys(saver: Saver) -> dict[str, list[Any]]:
    return {c: list(await saver.store.ids("default", c)) for c in COLLECTIONS}


async def _thread(saver: Saver, thread: str) -> None:
    """Two namespaces; values and writes in parts; two runs."""
    for ns in ("", "child:1"):
        for n, id in enumerate(numbered(3)):
            state = {"keep": "k" * 5000, "grow": ["g" * 900] * n}
            parent = f"{n - 1:06}" if n else None
            options: dict[str, Any] = {"versions": {"keep": 1, "grow": n + 1}}
            await put(
                saver,
                id,
                state,
                parent=parent,
                thread=thread,
                ns=ns,
                run_id=f"r{n % 2}",
                **options,
            )
            writes = [("a", "w" * 300_000 if n == 1 else n), (ERROR, "e")]
            await saver.aput_writes(at(id, thread=thread, ns=ns), writes, "task")


async def test_what_is_removed_in_any_way_leaves_no_key(saver: Saver) -> None:
    await _thread(saver, "stays")
    before = await _keys(saver)
    for thread in ("delete", "prune", "runs", "copied"):
        await _thread(saver, thread)
    await saver.adelete_thread("delete")
    await saver.aprune(["prune"], strategy="delete")
    await saver.acopy_thread("copied", "copy")
    await saver.adelete_thread("copied")
    await saver.adelete_thread("copy")
    after = await _keys(saver)
    assert {c: [k for k in after[c] if k[1] != "runs"] for c in after} == before
    await saver.adelete_thread("runs")
    assert await _keys(saver) == before
    assert len(await listed(saver)) == 6


async def test_what_is_not_there_is_removed_without_a_trace(saver: Saver) -> None:
    for turn in range(20):
        thread = f"unknown {turn}"
        assert await saver.aget_tuple(at(thread=thread)) is None
        assert await saver.aget_tuple(at("1", thread=thread)) is None
        assert await listed(saver, at(thread=thread, ns=None)) == []
        assert await listed(saver, at("1", thread=thread)) == []
        found = await saver.aget_delta_channel_history(
            config=at("1", thread=thread), channels=["x"]
        )
        assert found == {"x": {"writes": []}}
        await saver.adelete_thread(thread)
        await saver.adelete_for_runs([thread])
        await saver.aprune([thread])
        await saver.aprune([thread], strategy="delete")
        await saver.acopy_thread(thread, "copy")
    assert await listed(saver) == []
    assert await _keys(saver) == {c: [] for c in COLLECTIONS}


async def test_a_removed_id_is_free_again_with_all_its_writes(
    saver: Saver, other: Saver
) -> None:
    """However it was removed, and whoever remembers it."""

    async def by_delete() -> None:
        await other.adelete_thread("t")

    async def by_run() -> None:
        await other.adelete_for_runs(["r"])

    async def by_prune() -> None:
        await put(other, "9", parent="1", run_id="last")
        await other.aprune(["t"])

    for remove in (by_delete, by_run, by_prune):
        for large in ("", "x" * 400_000):
            await put(saver, "1", {"x": "old" + large}, run_id="r")
            writes = [("a", "old" + large), (ERROR, "old")]
            await saver.aput_writes(at("1"), writes, "task")
            await remove()
            assert await saver.aget_tuple(at("1")) is None
            await put(saver, "1", {"x": "new" + large}, run_id="new")
            assert (await get(saver, "1")).pending_writes == []
            await saver.aput_writes(at("1"), [("a", "new" + large)], "task")
            found = await get(other, "1")
            assert found.checkpoint["channel_values"] == {"x": "new" + large}
            assert found.pending_writes == [("task", "a", "new" + large)]
            await other.adelete_thread("t")
            await saver.adelete_thread("t")


@pytest.mark.parametrize("gone", [["r0"], ["r1"], ["r2"], ["r0", "r2"], ["r3", "r1"]])
async def test_what_survives_shares_what_it_needs(
    saver: Saver, other: Saver, gone: list[str]
) -> None:
    """Six checkpoints with one value in common, and each with its own."""
    states: dict[str, dict[str, Any]] = {}
    parent = None
    for n, id in enumerate(numbered(6)):
        states[id] = {"keep": "k" * 9000, "own": f"{n}" * 700, "log": ["l" * 600] * n}
        versions = {"keep": 1, "own": n, "log": n}
        new = {"own": n, "log": n} if n else versions
        run = f"r{n % 4}"
        await put(
            saver, id, states[id], parent=parent, versions=versions, new=new, run_id=run
        )
        await saver.aput_writes(at(id), [("a", n)], "task")
        parent = id
    await other.adelete_for_runs(gone)
    left = [id for n, id in enumerate(states) if f"r{n % 4}" not in gone]
    for reader in (saver, other):
        assert await ids(reader, at()) == left[::-1]
        for id in left:
            found = await get(reader, id)
            assert found.checkpoint["channel_values"] == states[id]
            assert found.pending_writes == [("task", "a", int(id))]
    await other.aprune(["t"])
    for reader in (saver, other):
        assert await ids(reader, at()) == left[-1:]
        assert await values(reader) == states[left[-1]]


async def _messages(client: Client, bucket: str) -> int:
    """How many there are; those that tell for a minute of a deletion do not count."""
    context, stream = client.jetstream(), f"KV_{bucket}"
    notices = f"$KV.{bucket}.th.*.*.*"
    told = (await context.stream_info(stream, subjects_filter=notices)).state.subjects
    info = await context.stream_info(stream)
    assert info.state.consumer_count == 0
    messages: int = info.state.messages
    return messages - len(told or ())


@pytest.mark.parametrize("kind", ["jetstream", "plain"] if SOAK else ["jetstream"])
async def test_a_thousand_threads_that_were_deleted_leave_no_message(
    open_saver: OpenSaver, kind: str, client: Client, bucket: str
) -> None:
    async with open_saver() as saver:
        await _thread(saver, "stays")
        before = await _messages(client, bucket)

        async def live(thread: str) -> None:
            await put(saver, "1", {"x": "x" * 900}, thread=thread, run_id=thread)
            await saver.aput_writes(at("1", thread=thread), [("a", 1)], "task")
            await saver.adelete_thread(thread)
            # What is not there is deleted without a marker, too.
            await saver.adelete_thread(thread)

        for start in range(0, 1000, 50):
            await asyncio.gather(*(live(f"{n}") for n in range(start, start + 50)))
        assert await _messages(client, bucket) == before


@pytest.mark.parametrize("kind", ["jetstream", "plain"])
async def test_reads_of_unknown_threads_leave_no_message(
    open_saver: OpenSaver, kind: str, client: Client, bucket: str
) -> None:
    async with open_saver() as saver:
        for n in range(20):
            assert await saver.aget_tuple(at(thread=f"{n}")) is None
            assert await listed(saver, at(thread=f"{n}")) == []
        assert await listed(saver) == []
    assert await _messages(client, bucket) == 0
