"""Ids are free text; different ones never meet."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.checkpoint.saving import (
    HOSTILE,
    OpenSaver,
    at,
    get,
    ids,
    listed,
    parent_of,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import JskvError


async def test_hostile_thread_ids_stay_apart(saver: DocumentCheckpointSaver) -> None:
    for thread in HOSTILE:
        await put(saver, "1", {"x": thread}, thread=thread, run_id=thread)
        await put(saver, "2", {"x": [thread]}, parent="1", thread=thread, run_id="r")
        await saver.aput_writes(at("2", thread=thread), [("c", thread)], "task")

    for thread in HOSTILE:
        found = await get(saver, thread=thread)
        assert found.config["configurable"]["thread_id"] == thread
        assert found.checkpoint["channel_values"] == {"x": [thread]}
        assert found.pending_writes == [("task", "c", thread)]
        assert await ids(saver, at(thread=thread)) == ["2", "1"]
    everything = await listed(saver)
    assert sorted(f.config["configurable"]["thread_id"] for f in everything) == sorted(
        HOSTILE * 2
    )
    for at_hand, thread in enumerate(HOSTILE):
        await saver.adelete_thread(thread)
        left = {f.config["configurable"]["thread_id"] for f in await listed(saver)}
        assert left == set(HOSTILE[at_hand + 1 :])


async def test_hostile_namespaces_stay_apart(saver: DocumentCheckpointSaver) -> None:
    for ns in HOSTILE:
        await put(saver, "1", {"x": ns}, ns=ns, run_id="r")
        await put(saver, "2", {"x": [ns]}, parent="1", ns=ns, run_id="other")
        await saver.aput_writes(at("1", ns=ns), [("c", ns)], "task")

    for ns in HOSTILE:
        found = await get(saver, ns=ns)
        assert found.config["configurable"]["checkpoint_ns"] == ns
        assert found.checkpoint["channel_values"] == {"x": [ns]}
        assert parent_of(found) == "1"
        assert await ids(saver, at(ns=ns)) == ["2", "1"]
        assert (await get(saver, "1", ns=ns)).pending_writes == [("task", "c", ns)]
    assert len(await listed(saver, at(ns=None))) == 2 * len(HOSTILE)
    await saver.aprune(["t"])
    assert len(await listed(saver, at(ns=None))) == len(HOSTILE)
    await saver.adelete_for_runs(["other"])
    assert await listed(saver, at(ns=None)) == []


async def test_hostile_checkpoint_and_task_ids_stay_apart(
    saver: DocumentCheckpointSaver,
) -> None:
    hostile = [id for id in HOSTILE if id]
    for id in hostile:
        await put(saver, id, {"x": id})
        for task in HOSTILE:
            await saver.aput_writes(at(id), [(task, [id, task])], task)

    assert await ids(saver, at()) == sorted(hostile, reverse=True)
    for id in hostile:
        found = await get(saver, id)
        assert found.checkpoint["channel_values"] == {"x": id}
        assert found.pending_writes == [(t, t, [id, t]) for t in sorted(HOSTILE)]
    assert await values(saver) == {"x": max(hostile)}


async def test_channels_may_have_any_name(saver: DocumentCheckpointSaver) -> None:
    state = {name: name * 2 for name in [*HOSTILE, "a\x00b", "s", "m", "c"]}
    await put(saver, "1", state)
    await put(saver, "2", {**state, "new": 1}, parent="1", new={"new": "2"})

    assert await values(saver, "1") == state
    assert await values(saver, "2") == {**state, "new": 1}


async def test_ids_that_meet_when_joined_stay_apart(
    saver: DocumentCheckpointSaver,
) -> None:
    places = [("a", "b|c"), ("a|b", "c"), ("a.b", ""), ("a", "b"), ("a", "b.1")]
    for thread, ns in places:
        await put(saver, "1", {"x": [thread, ns]}, thread=thread, ns=ns)
    await saver.aput_writes(at("1", thread="a.b"), [("z", 1)], "t.1")
    await saver.aput_writes(at("1", thread="a.b"), [("1.z", 2)], "t")

    for thread, ns in places:
        assert await values(saver, thread=thread, ns=ns) == {"x": [thread, ns]}
    assert len(await listed(saver)) == len(places)
    found = await get(saver, thread="a.b")
    assert found.pending_writes == [("t", "1.z", 2), ("t.1", "z", 1)]


@pytest.mark.parametrize("length", [100, 511, 512, 513, 2_000, 4_000, 20_000])
async def test_long_ids_are_told_apart_or_refused_and_the_saver_goes_on(
    saver: DocumentCheckpointSaver, length: int
) -> None:
    stored = []
    for end in "ab":
        thread = "x" * length + end
        try:
            await put(saver, "1", {"x": end}, thread=thread, ns=thread, run_id=thread)
        except JskvError:
            assert length > 512
        else:
            stored.append((end, thread))

    if stored:
        assert await listed(saver, at(thread="x" * length, ns=None)) == []
    else:
        assert await listed(saver) == []
    for end, thread in stored:
        assert await values(saver, thread=thread, ns=thread) == {"x": end}
        assert len(await listed(saver, at(thread=thread, ns=None))) == 1
    await put(saver, "1", {"x": "short"}, thread="short")
    assert await values(saver, thread="short") == {"x": "short"}


async def test_the_namespace_of_a_deeply_nested_run_is_stored(
    saver: DocumentCheckpointSaver,
) -> None:
    ns = "|".join(f"node:{uuid.UUID(int=n)}" for n in range(40))
    await put(saver, "1", {"x": 1}, ns=ns)
    await put(saver, "1", {"x": 2}, ns=ns[:-1] + "8")

    assert await values(saver, ns=ns) == {"x": 1}
    assert [
        found.config["configurable"]["checkpoint_ns"]
        for found in await listed(saver, at(ns=ns))
    ] == [ns]


@pytest.mark.parametrize("bad", ["a\x00b", "half \ud83d"])
async def test_an_id_that_cannot_be_stored_is_refused_and_the_saver_goes_on(
    saver: DocumentCheckpointSaver, bad: str
) -> None:
    calls: list[dict[str, Any]] = [{"thread": bad}, {"ns": bad}]
    for place in calls:
        try:
            await put(saver, "1", {"x": bad}, **place)
        except JskvError:
            assert await listed(saver) == []
        else:
            assert (await get(saver, **place)).config == at(
                "1", **{"thread": "t", "ns": "", **place}
            )
            await saver.adelete_thread(place.get("thread", "t"))
    await put(saver, "1", {"x": 1})
    assert await values(saver) == {"x": 1}


async def test_neighbours_of_a_thread_are_not_met(
    saver: DocumentCheckpointSaver,
) -> None:
    threads = ["a", "ab", "a.b", "a|b", "a ", "A", "a.", "b.a"]
    for thread in threads:
        await put(saver, "1", thread=thread)

    assert len(await listed(saver, at(thread="a"))) == 1
    await saver.adelete_thread("a")
    assert {f.config["configurable"]["thread_id"] for f in await listed(saver)} == set(
        threads[1:]
    )


@pytest.mark.parametrize(
    "apart",
    [
        {"namespace": "other"},
        {"agent_id": "other"},
        {"namespace": "default.x"},
        {"agent_id": "*"},
        {"namespace": "other", "agent_id": "other"},
    ],
    ids=str,
)
async def test_owners_and_agents_never_meet(
    open_saver: OpenSaver, apart: dict[str, str]
) -> None:
    async with open_saver() as mine, open_saver(**apart) as theirs:
        for saver, name in ((mine, "mine"), (theirs, "theirs")):
            for n in "123":
                await put(saver, n, {"x": name}, thread="t", run_id="r")
                await put(saver, n, {"x": name}, thread="t", ns="c:1", run_id="r")
            await saver.aput_writes(at("3"), [("c", name)], "task")

        await theirs.aprune(["t"])
        assert await ids(theirs, at()) == ["3"]
        assert await ids(mine, at(ns=None)) == ["3", "3", "2", "2", "1", "1"]
        await theirs.acopy_thread("t", "copy")
        assert await listed(mine, at(thread="copy")) == []
        await theirs.adelete_for_runs(["r"])
        assert await listed(theirs) == []
        assert len(await listed(mine)) == 6
        await put(theirs, "1", {"x": "theirs"}, thread="t")
        await theirs.adelete_thread("t")
        await theirs.aprune(["t"], strategy="delete")
        assert len(await listed(mine)) == 6
        found = await get(mine)
        assert found.checkpoint["channel_values"] == {"x": "mine"}
        assert found.pending_writes == [("task", "c", "mine")]
