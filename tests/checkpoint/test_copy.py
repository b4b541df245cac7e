"""Copies of threads: everything, under another name, alive on its own."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from tests.checkpoint.saving import (
    HOSTILE,
    at,
    get,
    id_of,
    ids,
    listed,
    numbered,
    put,
    put_chain,
    values,
)

from jskv_saver import DocumentCheckpointSaver


async def _make(saver: DocumentCheckpointSaver, thread: str) -> None:
    """Two namespaces, a fork, large values and writes of every kind."""
    parent = None
    for n, id in enumerate(numbered(20)):
        state = {"keep": "k" * 5000, "grow": ["v" * 200] * n, "n": n}
        await put(
            saver,
            id,
            state,
            parent=parent,
            thread=thread,
            versions={"keep": 1, "grow": n, "n": n},
            new={"grow": n, "n": n} if n else None,
            run_id=f"run {n % 3}",
        )
        config = at(id, thread=thread)
        await saver.aput_writes(config, [("a", n), (ERROR, "e")], "t 1", "~2")
        await saver.aput_writes(config, [("b", n), ("b", n)], "t 2", "~1")
        parent = id
    await put(
        saver, "000005f", {"n": "fork"}, parent="000005", thread=thread, source="fork"
    )
    for n, id in enumerate(numbered(3)):
        await put(saver, id, {"n": n}, thread=thread, ns="node:1|child:2")
        large = [("a", "x" * 700_000), (INTERRUPT, "stop")]
        await saver.aput_writes(
            at(id, thread=thread, ns="node:1|child:2"), large, "task"
        )


def _without_thread(found: CheckpointTuple) -> tuple[Any, ...]:
    parent = found.parent_config
    return (
        found.config["configurable"]["checkpoint_ns"],
        found.checkpoint,
        found.metadata,
        parent and parent["configurable"]["checkpoint_id"],
        found.pending_writes,
    )


async def _rows(saver: DocumentCheckpointSaver, thread: str) -> list[tuple[Any, ...]]:
    found = await listed(saver, at(thread=thread, ns=None))
    for each in found:
        assert each.config["configurable"]["thread_id"] == thread
        if each.parent_config:
            assert each.parent_config["configurable"]["thread_id"] == thread
    return [_without_thread(each) for each in found]


@pytest.mark.parametrize(("source", "target"), [("a.b", "to>*"), ("a", "a.b")])
async def test_a_copy_is_equal_and_lives_on_its_own(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    source: str,
    target: str,
) -> None:
    await _make(saver, source)
    original = await _rows(saver, source)
    assert len(original) == 24

    await other.acopy_thread(source, target)
    await saver.acopy_thread(source, target)
    assert await _rows(saver, target) == original
    assert await _rows(other, source) == original

    await saver.adelete_thread(source)
    assert await _rows(other, target) == original
    await other.acopy_thread(source, target)
    assert await _rows(saver, target) == original
    await put(saver, "9", {"x": 1}, parent="000019", thread=target)
    await other.aprune([target])
    assert await ids(saver, at(thread=target)) == ["9"]


async def test_a_copy_shares_what_it_can_with_itself(
    saver: DocumentCheckpointSaver,
) -> None:
    await _make(saver, "a")
    await saver.acopy_thread("a", "b")

    parts = {
        thread: len(await saver.store.ids("default", "bl", within=("default", thread)))
        for thread in "ab"
    }
    assert parts["b"] <= parts["a"]


async def test_what_the_source_does_later_is_copied_by_the_next_call(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, numbered(3), thread="a")
    await saver.acopy_thread("a", "b")
    await put(saver, "000003", {"n": 3}, parent="000002", thread="a")
    await saver.aput_writes(at("000000", thread="a"), [("late", 1)], "task")
    await saver.acopy_thread("a", "b")

    assert await _rows(saver, "b") == await _rows(saver, "a")


async def test_the_runs_of_a_copy_are_found(saver: DocumentCheckpointSaver) -> None:
    await _make(saver, "a")
    await saver.acopy_thread("a", "b")
    await saver.adelete_for_runs(["run 1"])

    for thread in "ab":
        found = await listed(saver, at(thread=thread), filter={"run_id": "run 1"})
        assert found == []
        assert len(await ids(saver, at(thread=thread))) == 14
    assert await _rows(saver, "b") == await _rows(saver, "a")


async def test_nothing_can_be_copied_and_onto_itself(
    saver: DocumentCheckpointSaver,
) -> None:
    await saver.acopy_thread("unknown", "b")
    assert await listed(saver) == []
    await put_chain(saver, numbered(3), thread="a")
    before = await _rows(saver, "a")
    await saver.acopy_thread("a", "a")
    await saver.acopy_thread(42, "b")  # type: ignore[arg-type]
    assert await _rows(saver, "a") == before
    assert await listed(saver, at(thread="b")) == []


async def test_any_target_gets_its_own_copy(saver: DocumentCheckpointSaver) -> None:
    await put_chain(saver, numbered(2), thread="the source")
    wanted = await _rows(saver, "the source")
    for target in HOSTILE:
        await saver.acopy_thread("the source", target)
    for target in HOSTILE:
        assert await _rows(saver, target) == wanted
    assert len(await listed(saver)) == 2 * (len(HOSTILE) + 1)


async def test_a_pruned_thread_can_be_copied(saver: DocumentCheckpointSaver) -> None:
    await _make(saver, "a")
    await saver.aprune(["a"])
    await saver.acopy_thread("a", "b")

    assert await _rows(saver, "b") == await _rows(saver, "a")
    assert id_of(await get(saver, thread="b")) == "000019"


async def test_a_pruned_thread_with_delta_channels_can_be_copied(
    saver: DocumentCheckpointSaver,
) -> None:
    """The oldest survivor's own delta channels may need what is gone."""
    counters = {"x": (1, 1), "y": (1, 1)}
    await put(saver, "1", {"x": ["seed"], "y": ["seed"]})
    await saver.aput_writes(at("1"), [("x", "x1"), ("y", "y1")], "task")
    await put(saver, "2", parent="1", counters_since_delta_snapshot=counters)
    await saver.aput_writes(at("2"), [("x", "x2"), ("y", "y2")], "task")
    # x has a snapshot, y goes on from it only later; y has one at the head.
    await put(
        saver,
        "3",
        {"x": ["snap"]},
        parent="2",
        counters_since_delta_snapshot={"y": (2, 2)},
    )
    await saver.aput_writes(at("3"), [("x", "x3")], "task")
    await put(
        saver,
        "4",
        {"y": ["snap"]},
        parent="3",
        counters_since_delta_snapshot={"x": (1, 1)},
    )
    await saver.aprune(["t"])
    assert await ids(saver, at()) == ["4", "3"]

    await saver.acopy_thread("t", "copy")

    assert await _rows(saver, "copy") == await _rows(saver, "t")
    assert await values(saver, thread="copy") == {"y": ["snap"]}
    histories = [
        await saver.aget_delta_channel_history(config=at(thread=thread), channels=["x"])
        for thread in ("t", "copy")
    ]
    assert histories[0] == histories[1]
    assert histories[0] == {"x": {"seed": ["snap"], "writes": [("task", "x", "x3")]}}
