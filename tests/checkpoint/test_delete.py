"""Delete, prune and delete_for_runs: exactly what was asked for, nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.serde.types import ERROR
from tests.checkpoint.saving import (
    at,
    get,
    ids,
    listed,
    numbered,
    parent_of,
    put,
    put_chain,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import InvalidRequestError

COLLECTIONS = ("cp", "wr", "bl", "th", "rn")
LARGE = "keep" * 2000


async def _keys(saver: DocumentCheckpointSaver) -> dict[str, int]:
    return {c: len(await saver.store.ids("default", c)) for c in COLLECTIONS}


async def _large_thread(saver: DocumentCheckpointSaver, thread: str = "t") -> None:
    """Six checkpoints that share `keep`, run by run."""
    parent = None
    for n, id in enumerate(numbered(6)):
        await put(
            saver,
            id,
            {"keep": LARGE, "own": f"{n}" * 5000, "grow": ["g" * 900] * n},
            parent=parent,
            thread=thread,
            versions={"keep": 1, "own": n, "grow": n},
            new={"own": n, "grow": n} if n else None,
            run_id=f"run {n // 2}",
        )
        await saver.aput_writes(at(id, thread=thread), [("a", n)], "task")
        parent = id


def _state(n: int) -> dict[str, Any]:
    return {"keep": LARGE, "own": f"{n}" * 5000, "grow": ["g" * 900] * n}


async def test_a_deleted_thread_leaves_nothing_and_no_other_is_touched(
    saver: DocumentCheckpointSaver,
) -> None:
    await _large_thread(saver, "stays")
    before = await _keys(saver)
    await _large_thread(saver, "goes")
    await put(saver, "1", {"x": LARGE}, thread="goes", ns="child:1")
    await saver.aput_writes(
        at("2", thread="goes", ns="other"), [("a", "x" * 600_000)], "task"
    )

    await saver.adelete_thread("goes")
    await saver.adelete_thread("goes")

    assert await _keys(saver) == before
    assert await listed(saver, at(thread="goes", ns=None)) == []
    assert await values(saver, thread="stays") == _state(5)


async def test_what_was_deleted_does_not_come_back(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for each in (saver, other, saver):
        await put(each, "1", {"x": LARGE})
        await each.aput_writes(at("1"), [("a", "first"), (ERROR, "e")], "task")
        await put(each, "2", {"x": LARGE}, parent="1", new={})
        await other.adelete_thread("t")
        assert await each.aget_tuple(at()) is None
        assert await each.aget_tuple(at("1")) is None

        await put(each, "1", {"x": "other"})
        assert (await get(each)).pending_writes == []
        await each.aput_writes(at("1"), [("a", "second")], "task")
        assert (await get(each)).pending_writes == [("task", "a", "second")]
        await put(each, "2", {"x": "other", "y": 1}, parent="1")
        assert await values(other) == {"x": "other", "y": 1}
        await saver.adelete_thread("t")


async def test_a_put_after_another_s_delete_is_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    state = {"keep": LARGE, "grow": ["g" * 900] * 3}
    await put(saver, "1", state)
    await other.adelete_thread("t")
    await put(
        saver, "2", {**state, "new": 1}, parent="1", versions={"keep": "1"}, new={}
    )

    for each in (saver, other):
        assert await ids(each, at()) == ["2"]
        assert await values(each) == {**state, "new": 1}


@pytest.mark.parametrize("strategy", ["delete", "delete_all"])
async def test_prune_can_delete(saver: DocumentCheckpointSaver, strategy: str) -> None:
    for thread in "abc":
        await _large_thread(saver, thread)

    await saver.aprune(["a", "c", "unknown"], strategy=strategy)

    assert {f.config["configurable"]["thread_id"] for f in await listed(saver)} == {"b"}
    assert await values(saver, thread="b") == _state(5)
    await saver.aprune(["b"], strategy=strategy)
    assert set((await _keys(saver)).values()) == {0}


async def test_keep_latest_keeps_the_latest_of_each_namespace(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await _large_thread(saver)
    await _large_thread(saver, "untouched")
    await put_chain(saver, numbered(3), ns="child:1")

    await other.aprune(["t", "unknown"])

    for each in (saver, other):
        assert await ids(each, at()) == ["000005"]
        assert await ids(each, at(ns="child:1")) == ["000002"]
        assert len(await listed(each, at(thread="untouched"))) == 6
        assert await values(each) == _state(5)
        found = await get(each)
        assert found.pending_writes == [("task", "a", 5)]
        assert parent_of(found) == "000004"
        assert await each.aget_tuple(at("000004")) is None
    names = await saver.store.ids("default", "wr", within=("default", "t"))
    assert len(names) == 1


async def test_a_pruned_thread_goes_on(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await _large_thread(saver)
    await other.aprune(["t"])
    for each, id, parent in (
        (saver, "000006", "000005"),
        (other, "000007", "000006"),
        (saver, "000008", "000002"),
    ):
        await put(each, id, _state(3), parent=parent, versions={"keep": 1}, new={})
        for reader in (saver, other):
            assert await values(reader) == _state(3)
            assert await values(reader, "000005") == _state(5)


async def test_prune_removes_the_parts_that_nobody_needs(
    saver: DocumentCheckpointSaver,
) -> None:
    await _large_thread(saver)
    before = await _keys(saver)
    await saver.aprune(["t"])
    after = await _keys(saver)

    assert after["bl"] < before["bl"]
    # The epoch and one record; the writes of that record.
    assert after["cp"] == 2
    assert after["wr"] == 1
    await saver.aprune(["t"])
    assert await _keys(saver) == after


async def test_prune_takes_ids_and_a_strategy_that_exists(
    saver: DocumentCheckpointSaver,
) -> None:
    await _large_thread(saver)
    for strategy in ("keep", "", "KEEP_LATEST", "keep_last", None):
        with pytest.raises(ValueError, match="strategy"):
            await saver.aprune(["t"], strategy=strategy)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="strategy"):
            await saver.aprune([], strategy=strategy)  # type: ignore[arg-type]
    for threads in ("t", b"t"):
        with pytest.raises(InvalidRequestError, match="thread_ids"):
            await saver.aprune(threads, strategy="delete")  # type: ignore[arg-type]
    await saver.aprune([])
    await saver.aprune([], strategy="delete")

    assert len(await ids(saver, at())) == 6


async def test_the_checkpoints_of_a_run_go_and_the_others_stay_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await _large_thread(saver)
    await put(saver, "9", {"x": 1}, thread="second", run_id="run 1")
    await put(saver, "9", {"x": 1}, thread="second", ns="c:1", run_id="run 2")

    await other.adelete_for_runs(["run 1", "unknown", "run 1"])

    for each in (saver, other):
        assert await ids(each, at()) == ["000005", "000004", "000001", "000000"]
        assert await ids(each, at(thread="second", ns=None)) == ["9"]
        for n in (0, 1, 4, 5):
            found = await get(each, f"{n:06}")
            assert found.checkpoint["channel_values"] == _state(n)
            assert found.pending_writes == [("task", "a", n)]


async def test_when_the_head_s_run_goes_the_one_before_is_the_latest(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await _large_thread(saver)
    await saver.adelete_for_runs(["run 2"])

    for each in (saver, other):
        assert await values(each) == _state(3)
    await put(saver, "000004", {"x": "new"}, parent="000003", run_id="run 3")
    assert await values(other) == {"x": "new"}
    assert (await get(other)).pending_writes == []


async def test_run_ids_are_literal(saver: DocumentCheckpointSaver) -> None:
    runs = ["R1", "R", "R12", "*", ">", "r1", "R.1", "R1*"]
    for run in runs:
        await put(saver, "1", {"x": run}, thread=f"thread {run}", run_id=run)
    for gone, run in enumerate(runs):
        await saver.adelete_for_runs([run])
        left = {f.checkpoint["channel_values"]["x"] for f in await listed(saver)}
        assert left == set(runs[gone + 1 :])
    for bad in ("R1", b"R1"):
        with pytest.raises(InvalidRequestError, match="run_ids"):
            await saver.adelete_for_runs(bad)  # type: ignore[arg-type]
    await saver.adelete_for_runs([])
    await saver.adelete_for_runs([""])


async def test_a_run_that_writes_again_is_found_again(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"x": 1}, run_id="r")
    await put(saver, "2", {"x": 2}, parent="1", run_id="s")
    await other.adelete_for_runs(["r"])
    await put(saver, "3", {"x": 3}, parent="2", run_id="r")
    await other.adelete_for_runs(["r"])

    assert await ids(saver, at()) == ["2"]
    await put(saver, "4", {"x": 4}, parent="2", run_id="r")
    await put(saver, "5", {"x": 5}, parent="4", run_id="r")
    await saver.adelete_for_runs(["r", "s"])
    assert await listed(saver) == []
    assert await saver.store.ids("default", "rn") == []
