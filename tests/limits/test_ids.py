"""Ids of any length: told apart, or refused by name; the connection lives on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from tests.checkpoint.saving import at, get, id_of, ids, listed, put, values
from tests.limits.lines import Line, refusal
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import InvalidRequestError

Saver = DocumentCheckpointSaver
LENGTHS = [100, 510, 511, 512, 513, 1000, 1024, 2000, 4000, 4095, 4096, 4097, 20_000]
if SOAK:
    LENGTHS = [*range(160, 540), *range(1000, 4200, 50), *LENGTHS, 200_000, 2_000_000]
LARGEST = 4096
"""Bytes of one id."""


async def _thread(saver: Saver, id: str, other: str) -> None:
    for each in (id, other):
        await put(saver, "1", {"x": each}, thread=each)
        await saver.aput_writes(at("1", thread=each), [("a", each)], "task")
    for each in (id, other):
        found = await get(saver, thread=each)
        assert found.config["configurable"]["thread_id"] == each
        assert found.checkpoint["channel_values"] == {"x": each}
        assert found.pending_writes == [("task", "a", each)]
        assert await ids(saver, at(thread=each)) == ["1"]
    await saver.acopy_thread(id, "copy")
    await saver.aprune([id])
    await saver.adelete_thread(id)
    assert await values(saver, thread=other) == {"x": other}
    assert await values(saver, thread="copy") == {"x": id}
    await saver.aprune([other, "copy"], strategy="delete")


async def _ns(saver: Saver, id: str, other: str) -> None:
    for each in (id, other):
        await put(saver, "1", {"x": each}, ns=each)
        await saver.aput_writes(at("1", ns=each), [("a", each)], "task")
    for each in (id, other):
        (found,) = await listed(saver, at(ns=each))
        assert found.config["configurable"]["checkpoint_ns"] == each
        assert found == await get(saver, ns=each)
        assert found.pending_writes == [("task", "a", each)]
    assert len(await listed(saver, at(ns=None))) == 2


async def _checkpoint(saver: Saver, id: str, other: str) -> None:
    await put(saver, id, {"x": id})
    await put(saver, other, {"x": other}, parent=id)
    for each in (id, other):
        await saver.aput_writes(at(each), [("a", each)], "task")
        found = await get(saver, each)
        assert found.checkpoint["channel_values"] == {"x": each}
        assert found.pending_writes == [("task", "a", each)]
    assert (await get(saver)).parent_config == at(id)
    assert await ids(saver, at()) == [other, id]
    assert await ids(saver, at(), before=at(other)) == [id]
    await saver.aprune(["t"])
    assert id_of(await get(saver)) == other


async def _task(saver: Saver, id: str, other: str) -> None:
    await put(saver, "1")
    for each in (other, id, id):
        await saver.aput_writes(at("1"), [("a", each), ("b", 2)], each)
    assert (await get(saver)).pending_writes == [
        (each, *write) for each in (id, other) for write in (("a", each), ("b", 2))
    ]


async def _run(saver: Saver, id: str, other: str) -> None:
    for n, each in enumerate((id, other)):
        await put(saver, f"{n}", {"x": n}, run_id=each)
    assert await ids(saver, at(), filter={"run_id": id}) == ["0"]
    await saver.adelete_for_runs([id])
    assert await ids(saver, at()) == ["1"]


PLACES: Mapping[str, Callable[[Saver, str, str], Awaitable[None]]] = {
    "thread_id": _thread,
    "checkpoint_ns": _ns,
    "checkpoint_id": _checkpoint,
    "task_id": _task,
    "run_id": _run,
}


@pytest.mark.parametrize("letter", ["x", ":", "é", "🦜"])
@pytest.mark.parametrize("place", PLACES)
async def test_long_ids_are_told_apart_or_refused(
    stock: Line, place: str, letter: str
) -> None:
    for length in LENGTHS:
        id = letter * (length // len(letter.encode()))
        before = await stock.keys()
        refused = await refusal(PLACES[place](stock.saver, id + "a", id + "b"))
        assert (refused is not None) == (len(id.encode()) + 1 > LARGEST)
        if refused is not None:
            assert isinstance(refused, InvalidRequestError)
            assert place in str(refused)
            assert len(str(refused)) < 500
        await stock.saver.adelete_thread("t")
        assert await stock.keys() <= before
    await stock.lives()


@pytest.mark.parametrize("letter", ["x", ":", "é", "🦜"])
async def test_long_ids_in_all_places_at_once_are_told_apart(
    stock: Line, letter: str
) -> None:
    for length in (126, 500, 512, 513, 1024, 4095):
        id = letter * (length // len(letter.encode()))
        names = [id + end for end in "ab"]
        owner = letter * 120
        for name in names:
            for agent in names:
                saver = Saver(stock.saver.store, namespace=owner, agent_id=agent)
                await put(saver, name, {"x": agent}, thread=name, ns=name, run_id=name)
                writes = [(name, agent)]
                await saver.aput_writes(at(name, thread=name, ns=name), writes, name)
        for name in names:
            for agent in names:
                saver = Saver(stock.saver.store, namespace=owner, agent_id=agent)
                (found,) = await listed(saver, at(thread=name, ns=name))
                assert found.config == at(name, thread=name, ns=name)
                assert found.checkpoint["channel_values"] == {"x": agent}
                assert found.pending_writes == [(name, name, agent)]
                await saver.adelete_for_runs([name])
                await saver.adelete_thread(name)
    assert await stock.keys() == set()
    await stock.lives()


@pytest.mark.parametrize(
    "owner",
    [
        {"agent_id": "x" * 4097},
        {"agent_id": "é" * 2049},
        {"agent_id": "a\0b"},
        {"agent_id": "half \ud83d"},
        {"namespace": "x" * 129},
        {"namespace": "a\0b"},
        {"namespace": "half \ud83d"},
    ],
    ids=ascii,
)
def test_an_owner_that_cannot_be_stored_is_refused_at_once(
    stock: Line, owner: dict[str, Any]
) -> None:
    (name,) = owner
    with pytest.raises(InvalidRequestError, match=name):
        Saver(stock.saver.store, **owner)
