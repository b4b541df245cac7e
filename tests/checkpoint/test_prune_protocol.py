"""Removing checkpoints: what was acknowledged stays, beside writers and crashes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.types import Send
from tests.checkpoint.saving import OpenSaver, at, put, put_chain
from tests.patience import PATIENCE

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.errors import DocumentNotFoundError, StoreUnavailableError


async def listed(saver: DocumentCheckpointSaver, thread: str = "t") -> list[str]:
    return [
        found.config["configurable"]["checkpoint_id"]
        async for found in saver.alist(at(thread=thread))
    ]


async def runs(saver: DocumentCheckpointSaver, *ids: str) -> None:
    """One checkpoint for each run, each the parent of the next."""
    parent = None
    for n, run in enumerate(ids, 1):
        await put(saver, str(n), {"n": n}, parent=parent, run_id=run)
        parent = str(n)


async def test_what_was_put_again_is_not_pruned_as_dead(
    saver: DocumentCheckpointSaver,
) -> None:
    await runs(saver, "r1", "r2")
    await saver.adelete_for_runs(["r2"])
    await put(saver, "2", {"n": 2}, parent="1", run_id="r3")
    await saver.aprune(["t"])
    assert await listed(saver) == ["2"]


async def test_what_was_put_again_survives_the_deletion_of_another_run(
    saver: DocumentCheckpointSaver,
) -> None:
    await runs(saver, "r1", "r2")
    await saver.adelete_for_runs(["r2"])
    await put(saver, "2", {"n": 2}, parent="1", run_id="r3")
    await put(saver, "3", {"n": 3}, parent="2", run_id="r4")
    await saver.adelete_for_runs(["r4"])
    assert await listed(saver) == ["2", "1"]


async def test_the_writes_of_what_was_put_again_stay(
    saver: DocumentCheckpointSaver,
) -> None:
    await runs(saver, "r1", "r2")
    await saver.aput_writes(at("2"), [("a", "old")], "task")
    await saver.adelete_for_runs(["r2"])
    await saver.aput_writes(at("2"), [("a", "new")], "task")
    await put(saver, "2", {"n": 2}, parent="1", run_id="r3")
    await saver.aprune(["t"])
    found = await saver.aget_tuple(at("2"))
    assert found
    assert found.pending_writes == [("task", "a", "new")]


async def test_a_child_of_what_was_put_again_has_a_parent(
    open_saver: OpenSaver, saver: DocumentCheckpointSaver
) -> None:
    await runs(saver, "r1", "r2")
    await saver.adelete_for_runs(["r2"])
    await put(saver, "2", {"n": 2}, parent="1", run_id="r3")
    await put(saver, "25", {"n": 2}, parent="1", run_id="r3")
    counters = {"n": (1, 1)}
    async with open_saver() as other:
        await put(other, "3", {}, parent="2", counters_since_delta_snapshot=counters)
        assert await listed(other) == ["3", "25", "2", "1"]


@pytest.fixture
def before_removal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Does something once, right after the epoch of the next prune."""

    def arrange(act: Callable[[], Awaitable[None]]) -> None:
        original = Pruner._remove

        async def remove(pruner: Pruner, *claim: Any) -> None:
            monkeypatch.setattr(Pruner, "_remove", original)
            await act()
            await original(pruner, *claim)

        monkeypatch.setattr(Pruner, "_remove", remove)

    return arrange


async def test_a_prune_beside_the_deletion_of_a_run_keeps_a_latest(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    before_removal: Callable[..., None],
) -> None:
    await runs(saver, "r1", "r2")
    before_removal(lambda: other.aprune(["t"]))
    await saver.adelete_for_runs(["r2"])
    assert await listed(saver) == ["1"]


async def test_a_prune_after_one_that_crashed_finishes_it_and_keeps_a_latest(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    before_removal: Callable[..., None],
) -> None:
    async def crash() -> None:
        raise ConnectionAbortedError

    await runs(saver, "r1", "r1", "r2")
    await saver.aput_writes(at("3"), [("a", 1)], "task")
    before_removal(crash)
    with pytest.raises(ConnectionAbortedError):
        await saver.adelete_for_runs(["r2"])
    await other.aprune(["t"])
    assert await listed(other) == ["2"]
    assert not await other.store.ids("default", "wr", within=("default", "t"))


async def test_nobody_builds_on_what_an_epoch_has_named(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read while it is still there, and continued when its parts are about to go."""
    text = "x" * 1000
    await put(saver, "1", {"text": text}, run_id="r1")
    await put(saver, "2", {"text": text + "2"}, parent="1", run_id="r2")
    remove_records, remove_parts = Pruner._remove_records, Pruner._records
    latest: list[str] = []

    async def read_first(pruner: Pruner, *what: Any) -> None:
        found = await other.aget_tuple(at())
        assert found
        latest.append(found.checkpoint["id"])
        await remove_records(pruner, *what)
        monkeypatch.setattr(Pruner, "_records", mark_then_write)

    async def mark_then_write(pruner: Pruner, *what: Any) -> Any:
        monkeypatch.setattr(Pruner, "_records", remove_parts)
        survivors = await remove_parts(pruner, *what)
        await put(other, "3", {"text": text + "23"}, parent="2")
        return survivors

    monkeypatch.setattr(Pruner, "_remove_records", read_first)
    await saver.adelete_for_runs(["r2"])
    assert latest == ["1"]
    for each in (saver, other):
        found = await each.aget_tuple(at("3"))
        assert found
        assert found.checkpoint["channel_values"] == {"text": text + "23"}
        assert await listed(each) == ["3", "1"]


async def test_writes_that_a_crashed_prune_left_are_removed(
    saver: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def crash(*_: Any) -> None:
        raise ConnectionAbortedError

    await runs(saver, "r1", "r2")
    await saver.aput_writes(at("2"), [("a", 1)], "task")
    with monkeypatch.context() as patched:
        patched.setattr(Pruner, "_remove_writes", crash)
        with pytest.raises(ConnectionAbortedError):
            await saver.adelete_for_runs(["r2"])
    await saver.aprune(["t"])
    assert await listed(saver) == ["1"]
    assert not await saver.store.ids("default", "wr", within=("default", "t"))


async def test_large_writes_that_an_epoch_overtakes_stay_whole(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parts are older than the epoch, their document is younger."""
    await put_chain(saver, ["1", "2"])
    await saver.aput_writes(at("1"), [("c", "small")], "other")
    store = type(saver.store)
    put_many, remove_writes = store.put_many, Pruner._remove_writes
    named, stored = asyncio.Event(), asyncio.Event()

    async def split(self: Any, namespace: str, writes: Any, **options: Any) -> Any:
        first, *rest = writes
        if first[0] != "wr" or not rest or named.is_set():
            return await put_many(self, namespace, writes, **options)
        *parts, whole = writes
        await put_many(self, namespace, parts, **options)
        pruning.append(asyncio.create_task(other.aprune(["t"])))
        await named.wait()
        return await put_many(self, namespace, [whole], **options)

    async def wait(pruner: Pruner, *what: Any) -> None:
        named.set()
        await stored.wait()
        await remove_writes(pruner, *what)

    pruning: list[asyncio.Task[None]] = []
    monkeypatch.setattr(store, "put_many", split)
    monkeypatch.setattr(Pruner, "_remove_writes", wait)
    large = "w" * 700_000
    await saver.aput_writes(at("1"), [("c", large)], "task")
    stored.set()
    await pruning[0]
    await put(saver, "1", {"n": 0})
    found = await saver.aget_tuple(at("1"))
    assert found
    assert found.pending_writes == [("task", "c", large)]
    assert await listed(saver) == ["2", "1"]


async def test_more_dead_than_one_epoch_can_name(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        ids = [f"{n:03}" + "é" * 500 for n in range(300)]
        room = saver.store.limits.data
        assert sum(6 * len(id) for id in ids) > room / 2
        await put_chain(saver, ids)
        await saver.aprune(["t"])
        assert await listed(saver) == [ids[-1]]


async def test_a_prune_ends_beside_a_writer_that_does_not_pause(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, [f"{n:06}" for n in range(300)])
    stop = False

    async def write() -> str:
        last = "000299"
        for n in range(300, 100_000):
            if stop:
                break
            await put(other, f"{n:06}", {"n": n}, parent=last)
            last = f"{n:06}"
            await asyncio.sleep(0)
        return last

    writer = asyncio.create_task(write())
    try:
        async with asyncio.timeout(PATIENCE):
            await saver.aprune(["t"])
    finally:
        stop = True
    last = await writer
    kept = await listed(saver)
    assert kept[0] == last
    assert "000000" not in kept


async def test_the_tasks_that_an_old_parent_sent_stay(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"n": 1}, v=3)
    await saver.aput_writes(at("1"), [("__pregel_tasks", Send("x", 1))], "task")
    await put(saver, "2", {"n": 1}, parent="1", v=3)
    await saver.aprune(["t"])
    found = await saver.aget_tuple(at("2"))
    assert found
    assert found.checkpoint["channel_values"]["__pregel_tasks"] == [Send("x", 1)]


async def test_what_is_put_before_the_epoch_spares_what_it_needs(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = {"x": (1, 1)}
    await put(saver, "1", {"x": ["seed"]})
    await saver.aput_writes(at("1"), [("x", "x1")], "task")
    await put(saver, "2", {"n": 2}, parent="1")
    announce = Pruner._announce

    async def late(pruner: Pruner, *what: Any) -> int:
        monkeypatch.setattr(Pruner, "_announce", announce)
        # A fork from the checkpoint that is about to be named as dead.
        await put(other, "3", {}, parent="1", counters_since_delta_snapshot=counters)
        return await announce(pruner, *what)

    monkeypatch.setattr(Pruner, "_announce", late)
    await saver.aprune(["t"])
    assert await listed(saver) == ["3", "2", "1"]
    history = await saver.aget_delta_channel_history(config=at("3"), channels=["x"])
    assert history["x"] == {"writes": [("task", "x", "x1")], "seed": ["seed"]}


@pytest.mark.parametrize("run", [uuid.UUID(int=7), 7])
async def test_a_run_id_that_is_no_text_is_found_by_its_text(
    saver: DocumentCheckpointSaver, run: Any
) -> None:
    await put(saver, "1", {"n": 1}, run_id=run)
    await saver.adelete_for_runs([run])
    assert await listed(saver) == []


async def test_a_history_that_is_pruned_while_it_is_read_is_no_damage(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put_chain(saver, ["1", "2", "3", "4", "5"])
    read = type(saver.store).get_many
    pruned = False

    async def get_many(store: Any, *reads: Any) -> Any:
        nonlocal pruned
        found = await read(store, *reads)
        if not pruned:
            pruned = True
            await other.aprune(["t"])
        return found

    monkeypatch.setattr(type(saver.store), "get_many", get_many)
    with pytest.raises(DocumentNotFoundError, match="removed"):
        await saver.aget_delta_channel_history(config=at("4"), channels=["x"])


async def test_a_latest_that_is_always_overtaken_is_no_empty_thread(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put(other, "000", {"n": "x" * 600})
    read = type(saver.store).get_many
    number, busy = 0, False

    async def overtaken(store: Any, *reads: Any) -> Any:
        nonlocal number, busy
        if store is saver.store and not busy:
            # Whatever it was about to read is gone by then.
            busy, number = True, number + 1
            parent = f"{number - 1:03}"
            await put(other, f"{number:03}", {"n": f"{number}" * 600}, parent=parent)
            await other.aprune(["t"])
            busy = False
        return await read(store, *reads)

    monkeypatch.setattr(type(saver.store), "get_many", overtaken)
    with pytest.raises(StoreUnavailableError, match="removed faster"):
        await saver.aget_tuple(at())
