"""Removals that put more than one epoch: what is spared, what goes in the end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checkpoint.saving import at, listed, put

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.errors import VersionConflictError

COUNTERS = {"d": (1, 1)}


async def test_a_second_epoch_takes_nothing_that_came_after_the_first(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3 is put again, with a write, while the removal finds that 2 is needed."""
    await put(saver, "1", {"d": ["seed"]}, run_id="r2")
    await put(
        saver, "2", parent="1", run_id="r2", counters_since_delta_snapshot=COUNTERS
    )
    await put(saver, "3", {"x": 1}, parent="1", run_id="r2")
    await put(saver, "4", {"d": [4]}, parent="1", run_id="r1")
    announce = Pruner._announce
    epochs = 0

    async def counted(pruner: Pruner, *what: Any) -> int:
        nonlocal epochs
        epochs += 1
        if epochs == 1:
            # A fork that was there before the removal could name what it needs.
            await put(
                other,
                "5",
                parent="2",
                run_id="r1",
                counters_since_delta_snapshot=COUNTERS,
            )
        else:
            await put(other, "3", {"x": 2}, run_id="r1")
            await other.aput_writes(at("3"), [("c", "acknowledged")], "task")
        return await announce(pruner, *what)

    monkeypatch.setattr(Pruner, "_announce", counted)
    await saver.adelete_for_runs(["r2"])
    assert epochs == 2
    found = await other.aget_tuple(at("3"))
    assert found
    assert found.checkpoint["channel_values"] == {"x": 2}
    assert found.pending_writes == [("task", "c", "acknowledged")]
    assert [row.checkpoint["id"] for row in await listed(saver, at())] == list("54321")


async def test_writes_of_the_dead_go_although_two_removals_died(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(saver, "1", {"x": 1})
    await saver.aput_writes(at("1"), [("c", "w")], "task")
    await put(saver, "2", {"x": 1}, parent="1")

    async def die(*_: Any) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        # After the records, before the writes.
        patch.setattr(Pruner, "_remove_writes", die)
        for id in "34":
            with pytest.raises(ConnectionAbortedError):
                await saver.aprune(["t"])
            await put(saver, id, {"x": 1}, parent=f"{int(id) - 1}")
    assert len(await saver.store.ids("default", "wr")) == 1
    await saver.aprune(["t"])
    assert await saver.store.ids("default", "wr") == []
    assert [row.checkpoint["id"] for row in await listed(saver, at())] == ["4"]


@pytest.mark.parametrize("id", ["x" * 2500, "é" * 1200])
async def test_an_id_that_is_long_for_a_small_store_is_removed_by_one_epoch(
    monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    announce = Pruner._announce
    epochs = 0

    async def counted(pruner: Pruner, *what: Any) -> int:
        nonlocal epochs
        epochs += 1
        assert epochs < 5
        return await announce(pruner, *what)

    monkeypatch.setattr(Pruner, "_announce", counted)
    store = MemoryDocumentStore(max_document_bytes=8192)
    async with DocumentCheckpointSaver(store) as saver:
        for each in (id, id + "2", id + "3"):
            await put(saver, each, {"x": 1})
        await saver.aprune(["t"])
        rows = await listed(saver, at())
    assert [row.checkpoint["id"] for row in rows] == [id + "3"]
    assert epochs == 2


async def test_writes_that_stay_of_one_that_is_gone_do_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where one id fills an epoch, and a write came to it after it was named."""
    ids = [letter + "x" * 2500 for letter in "abc"]
    announce = Pruner._announce
    epochs = 0

    async def counted(pruner: Pruner, *what: Any) -> int:
        nonlocal epochs
        epochs += 1
        assert epochs < 6
        return await announce(pruner, *what)

    async def written_then_dead(pruner: Pruner, scope: Any, *_: Any) -> None:
        await saver.aput_writes(at(ids[0]), [("c", "young")], "task")
        raise ConnectionAbortedError

    store = MemoryDocumentStore(max_document_bytes=8192)
    original = store.put

    async def overtaken(*what: Any, if_latest: Any = None, **how: Any) -> Any:
        # Somebody always writes before the epoch that names nobody.
        if if_latest is not None:
            raise VersionConflictError("overtaken", expected=1, actual=2)
        return await original(*what, **how)

    async with DocumentCheckpointSaver(store) as saver:
        await put(saver, ids[0], {"x": 1})
        await put(saver, ids[1], {"x": 1})
        with monkeypatch.context() as patch:
            patch.setattr(Pruner, "_remove_writes", written_then_dead)
            with pytest.raises(ConnectionAbortedError):
                await saver.aprune(["t"])
        await put(saver, ids[2], {"x": 1})
        monkeypatch.setattr(Pruner, "_announce", counted)
        monkeypatch.setattr(store, "put", overtaken)
        await saver.aprune(["t"])
        rows = await listed(saver, at())
    assert [row.checkpoint["id"] for row in rows] == ids[2:]
