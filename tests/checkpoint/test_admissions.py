"""A request is accepted once, and listed until its thread has a younger checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.checkpoint.saving import HOSTILE, OpenSaver, at, listed, put, put_chain

from jskv_saver import Admission, DocumentCheckpointSaver
from jskv_saver.errors import (
    DocumentNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    StoreUnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)

REQUEST = {"messages": [HumanMessage("refund me", id="m1")]}


async def _open(
    saver: DocumentCheckpointSaver, thread: str | None = None
) -> list[tuple[str, str]]:
    return [(a.thread_id, a.request_id) for a in await saver.aadmitted(thread)]


async def test_a_request_is_listed_until_its_thread_has_a_checkpoint(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    before = datetime.now(UTC)
    admission = await saver.aadmit(at(), REQUEST, request_id="r1")
    assert admission.new
    assert not admission.begun
    found = await other.aadmitted()
    assert [(a.thread_id, a.request_id, a.request) for a in found] == [
        ("t", "r1", REQUEST)
    ]
    assert found[0].admitted_at == admission.admitted_at
    assert abs((admission.admitted_at - before).total_seconds()) < 60
    await put(saver, "1", {"n": 1})
    assert await _open(other) == []
    (kept,) = await other.aadmitted(begun=True)
    assert (kept.request_id, kept.begun, kept.new) == ("r1", True, False)


async def test_the_same_id_twice_is_accepted_once(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    first = await saver.aadmit(at(), REQUEST, request_id="r")
    again = await other.aadmit(at(), REQUEST, request_id="r")
    assert (first.new, again.new) == (True, False)
    assert again.admitted_at == first.admitted_at
    assert len(await saver.aadmitted()) == 1
    with pytest.raises(VersionConflictError, match="another request_id"):
        await other.aadmit(at(), {"other": 1}, request_id="r")
    # Elsewhere it is another request.
    assert (await saver.aadmit(at(thread="u"), REQUEST, request_id="r")).new


async def test_of_many_at_once_one_accepts(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    admissions = await asyncio.gather(
        *(
            each.aadmit(at(), REQUEST, request_id="r")
            for each in (saver, other)
            for _ in range(10)
        )
    )
    assert sum(a.new for a in admissions) == 1


async def test_without_an_id_each_is_new(saver: DocumentCheckpointSaver) -> None:
    first, second = [await saver.aadmit(at(), REQUEST) for _ in range(2)]
    assert first.new
    assert second.new
    assert await _open(saver) == [("t", first.request_id), ("t", second.request_id)]


async def test_a_request_to_an_old_thread_needs_a_younger_checkpoint(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["1", "2"])
    await saver.aadmit(at(), REQUEST, request_id="r1")
    assert await _open(saver) == [("t", "r1")]
    await put(saver, "3", {"n": 3}, parent="2")
    assert await _open(saver) == []
    await saver.aadmit(at(), REQUEST, request_id="r2")
    assert await _open(saver) == [("t", "r2")]
    # Neither the writes of a task nor a prune begins anything.
    await saver.aput_writes(at("3"), [("a", 1)], "task")
    await saver.aprune(["t"])
    assert await _open(saver) == [("t", "r2")]


async def test_a_run_whose_clock_is_behind_has_begun(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["5", "6"])
    await saver.aadmit(at(), REQUEST, request_id="r")
    await put(saver, "55", {"n": 1}, parent="6")
    assert await _open(saver) == []
    # Also where a prune wrote last.
    for id in ("1", "2"):
        await put(saver, id, {"n": 1}, thread="u", run_id=id)
    await saver.aadmit(at(thread="u"), REQUEST, request_id="r")
    await put(saver, "11", {"n": 1}, parent="2", thread="u", run_id="11")
    await saver.adelete_for_runs(["1"])
    assert await _open(saver) == []


async def test_many_threads_are_listed_in_order_without_one_read_each(
    saver: DocumentCheckpointSaver,
) -> None:
    for n in range(70):
        await saver.aadmit(at(thread=f"t{n}"), n, request_id="r")
        if n % 2:
            await put(saver, "1", {"n": n}, thread=f"t{n}")
    await put(saver, "1", {"n": 1}, thread="not asked for")
    with _counted(saver) as calls:
        found = await saver.aadmitted()
    assert [a.request for a in found] == list(range(0, 70, 2))
    assert len(calls) == 4
    assert [a.request for a in await saver.aadmitted("t7", begun=True)] == [7]
    assert await saver.aadmitted("t7") == []


async def test_it_goes_with_its_thread(saver: DocumentCheckpointSaver) -> None:
    for thread in ("t", "u"):
        await saver.aadmit(at(thread=thread), REQUEST, request_id="r")
    await saver.adelete_thread("t")
    assert await _open(saver) == [("u", "r")]
    assert await saver.store.ids("default", "ad", within=("default", "t")) == []
    # The name is free again.
    assert (await saver.aadmit(at(), {"other": 1}, request_id="r")).new


async def test_admissions_are_no_checkpoints(saver: DocumentCheckpointSaver) -> None:
    await saver.aadmit(at(), REQUEST, request_id="r")
    assert await saver.aget_tuple(at()) is None
    assert await listed(saver) == []
    await saver.aprune(["t"])
    await saver.arepair(["t"])
    assert await _open(saver) == [("t", "r")]


async def test_namespaces_and_agents_are_apart(open_saver: OpenSaver) -> None:
    async with (
        open_saver(namespace="a") as a,
        open_saver(namespace="b") as b,
        open_saver(namespace="a", agent_id="other") as c,
    ):
        await a.aadmit(at(), REQUEST, request_id="r")
        assert await _open(a) == [("t", "r")]
        assert await _open(b) == []
        assert await _open(c) == []


async def test_ids_may_be_any_text(saver: DocumentCheckpointSaver) -> None:
    for id in HOSTILE[1:]:
        assert (await saver.aadmit(at(thread=id), id, request_id=id)).new
    assert [
        (a.thread_id, a.request_id, a.request) for a in await saver.aadmitted()
    ] == [(id, id, id) for id in HOSTILE[1:]]


@pytest.mark.parametrize("id", ["", "a\0b", 1.5, b"x"])
async def test_a_bad_id_is_refused(saver: DocumentCheckpointSaver, id: Any) -> None:
    with pytest.raises(InvalidRequestError, match="request_id"):
        await saver.aadmit(at(), REQUEST, request_id=id)
    assert await saver.aadmitted() == []


async def test_what_cannot_be_stored_is_refused(saver: DocumentCheckpointSaver) -> None:
    with pytest.raises(InvalidRequestError, match="thread_id"):
        await saver.aadmit({"configurable": {}}, REQUEST)
    with pytest.raises(TypeError):
        await saver.aadmit(at(), {"lock": asyncio.Lock})
    with pytest.raises(DocumentTooLargeError):
        await saver.aadmit(at(), "x" * 2_000_000)
    assert await saver.aadmitted() == []


async def test_a_lost_answer_is_looked_up(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = saver.store
    real = store.put
    stores = True

    async def loses(*args: Any, **options: Any) -> Any:
        if stores:
            await real(*args, **options)
        raise UnknownOutcomeError("no answer")

    monkeypatch.setattr(store, "put", loses)
    assert (await saver.aadmit(at(), REQUEST, request_id="r")).new
    # Whoever was first: it is accepted, and this was not the one.
    assert not (await saver.aadmit(at(), REQUEST, request_id="r")).new
    stores = False
    with pytest.raises(UnknownOutcomeError):
        await saver.aadmit(at(), REQUEST, request_id="lost")
    assert await _open(saver) == [("t", "r")]
    with pytest.raises(DocumentNotFoundError):
        await store.get("default", "ad", ("default", "t", "lost"))


async def test_an_answer_that_is_lost_with_the_server_is_no_refusal(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = saver.store
    real = store.put

    async def loses(*args: Any, **options: Any) -> Any:
        await real(*args, **options)
        raise UnknownOutcomeError("no answer")

    async def away(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", loses)
        patch.setattr(store, "get", away)
        with pytest.raises(UnknownOutcomeError):
            await saver.aadmit(at(), REQUEST, request_id="r")
    assert await _open(saver) == [("t", "r")]
    # Of one that was refused, nothing is uncertain.
    monkeypatch.setattr(store, "get", away)
    with pytest.raises(StoreUnavailableError):
        await saver.aadmit(at(), REQUEST, request_id="r")


def test_the_blocking_twins_do_the_same(open_saver: OpenSaver) -> None:
    with open_saver() as saver:
        admission = saver.admit(at(), REQUEST, request_id="r")
        assert admission.new
        found: Sequence[Admission] = saver.admitted()
        assert [(a.request_id, a.request) for a in found] == [("r", REQUEST)]
        saver.delete_thread("t")
        assert saver.admitted() == []


@contextmanager
def _counted(saver: DocumentCheckpointSaver) -> Iterator[list[str]]:
    """The reads that are made of the store."""
    calls: list[str] = []
    kept: Mapping[str, Any] = {
        name: getattr(saver.store, name) for name in ("ids", "get_many", "find", "get")
    }

    def counting(name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return await kept[name](*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in kept:
            patch.setattr(saver.store, name, counting(name))
        yield calls
