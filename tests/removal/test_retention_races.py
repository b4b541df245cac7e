"""Retentions beside whoever uses the threads meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.checkpoint.saving import at, ids, put, put_chain, values
from tests.removal.threads import ANY_AGE, LARGE, TEXT, fill, keys, states

from jskv_saver import DocumentCheckpointSaver, Retention
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.checkpoint.holding import HOLDER, LEASES
from jskv_saver.errors import (
    LeaseLostError,
)


async def _put(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "3", {"text": "3" + TEXT}, parent="2", run_id="new")


async def _put_child(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "3", {"text": "3" + TEXT}, parent="2", ns="child:1")


async def _put_first(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", {"text": TEXT}, ns="another")


async def _write(saver: DocumentCheckpointSaver) -> None:
    await saver.aput_writes(at("2"), [("c", "late")], "late")


async def _write_child(saver: DocumentCheckpointSaver) -> None:
    await saver.aput_writes(at("2", ns="child:1"), [("c", "late")], "late")


async def _admit(saver: DocumentCheckpointSaver) -> None:
    await saver.aadmit(at(), "one more")


async def _pin(saver: DocumentCheckpointSaver) -> None:
    await saver.apin("t")


async def _lease(saver: DocumentCheckpointSaver) -> None:
    # Given back when the saver is closed.
    await saver.lease("t").__aenter__()


USES = [_put, _put_child, _put_first, _write, _write_child, _admit, _pin, _lease]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
async def test_a_thread_that_is_used_while_it_is_to_expire_stays_whole(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[DocumentCheckpointSaver], Awaitable[None]],
) -> None:
    """Between the look and the first epoch: nothing was announced yet."""
    await fill(saver)
    before = await states(other)
    survey = Expirer.survey

    async def surveyed(self: Expirer, thread: str) -> Any:
        found = await survey(self, thread)
        await use(saver)
        return found

    monkeypatch.setattr(Expirer, "survey", surveyed)
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert report.erased == ()
    after = await states(other)
    assert {id: after[id] for id in before} == before
    if use is _put:
        assert await values(other) == {"text": "3" + TEXT}


async def test_the_guard_of_a_dead_holder_keeps_no_thread(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await fill(saver)
    lease = await saver.lease("t").__aenter__()
    # As if it had died, and its time was over.
    await other.store.delete("default", LEASES, ("default", "t", HOLDER))
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert report.erased == ("t",)
    assert list(await other.store.ids("default", LEASES)) == []
    with pytest.raises(LeaseLostError):
        await put(saver, "9")
    with pytest.raises(LeaseLostError):
        await lease.__aexit__(None, None, None)


@pytest.mark.parametrize("use", [_put_child, _put_first], ids=lambda u: u.__name__)
async def test_a_namespace_used_after_another_was_closed_opens_both_again(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[DocumentCheckpointSaver], Awaitable[None]],
) -> None:
    await fill(saver)
    before = await states(other)
    close = Expirer._close
    closed: list[str] = []

    async def closing(self: Expirer, scope: Any, seen: Any) -> int:
        version = await close(self, scope, seen)
        if not closed:
            await use(saver)
        closed.append(scope.ns)
        return version

    monkeypatch.setattr(Expirer, "_close", closing)
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert closed[0] == ""
    assert report.erased == ()
    after = await states(other)
    assert {id: after[id] for id in before} == before
    # The thread goes on from its head as if nothing had been.
    await put(saver, "5", {"text": "25" + TEXT}, parent="2")
    assert await values(other) == {"text": "25" + TEXT}


async def test_who_goes_on_after_the_thread_was_closed_has_all_that_he_had(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read before, put when the epochs stand: whole, and of a new life."""
    await fill(saver)
    assert await values(saver) == {"text": "2" + TEXT}
    delete = type(other.store).delete
    acted: list[bool] = []

    async def deleting(self: Any, namespace: str, name: Any, *a: Any, **k: Any) -> None:
        if not isinstance(name, str) and not acted:
            acted.append(True)
            await put(saver, "3", {"text": "23" + TEXT}, parent="2", run_id="new")
            await saver.aput_writes(at("3"), [("c", LARGE)], "task")
        await delete(self, namespace, name, *a, **k)

    monkeypatch.setattr(type(other.store), "delete", deleting)
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert acted
    assert report.erased == ("t",)
    for each in (saver, other):
        assert await ids(each, at(ns=None)) == ["3"]
        assert await values(each) == {"text": "23" + TEXT}
    left = await keys(other)
    assert ("th", ("default", "t", "")) in left
    assert ("rn", ("default", "t", "new", "")) in left
    await put(saver, "4", {"text": "234" + TEXT}, parent="3")
    await saver.adelete_for_runs(["new"])
    assert await ids(other, at()) == ["4"]
    await saver.adelete_thread("t")
    assert await keys(other) == []


async def test_who_comes_when_the_epoch_goes_has_a_namespace_with_one(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put(saver, "1", {"text": TEXT})
    delete = type(other.store).delete
    acted: list[bool] = []

    async def deleting(self: Any, namespace: str, name: Any, *a: Any, **k: Any) -> None:
        if name == "cp" and not acted:
            acted.append(True)
            await put(saver, "2", {"text": "2" + TEXT}, parent="1")
        await delete(self, namespace, name, *a, **k)

    monkeypatch.setattr(type(other.store), "delete", deleting)
    await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert acted
    assert await ids(other, at()) == ["2"]
    assert ("cp", ("default", "t", "", "")) in await keys(other)
    await put(saver, "3", {"text": "23" + TEXT}, parent="2")
    assert await values(other) == {"text": "23" + TEXT}


@pytest.mark.parametrize("step", ["_close", "_is_used", "_forget"])
async def test_a_retention_that_died_is_finished_by_the_next(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await fill(saver)
    original = getattr(Expirer, step)

    async def dies(self: Any, *what: Any) -> Any:
        await original(self, *what)
        raise ConnectionAbortedError

    with monkeypatch.context() as patch:
        patch.setattr(Expirer, step, dies)
        with pytest.raises(ConnectionAbortedError):
            await saver.aenforce_retention(Retention(idle=ANY_AGE))
    await saver.aenforce_retention(Retention(idle=ANY_AGE))
    assert await keys(saver) == []


async def test_a_thread_of_more_than_an_epoch_names_goes_too(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Expirer, "_fitting", lambda _, dead: dict.fromkeys(list(dead)[:2])
    )
    await put_chain(saver, [f"{n}" for n in range(7)])
    report = await saver.aenforce_retention(Retention(idle=ANY_AGE))
    assert report.erased == ("t",)
    assert await keys(saver) == []


async def test_writers_that_never_pause_lose_nothing_beside_retentions(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    """Whatever the retention meets: what was acknowledged last is the state."""
    stop = asyncio.Event()

    async def enforce() -> int:
        erased = 0
        while not stop.is_set():
            # The store in memory never pauses by itself.
            await asyncio.sleep(0)
            report = await other.aenforce_retention(Retention(idle=ANY_AGE))
            erased += len(report.erased)
        return erased

    enforcing = asyncio.create_task(enforce())
    text = TEXT
    try:
        for n in range(60):
            text += f"{n} "
            parent = f"{n - 1:03}" if n else None
            await asyncio.sleep(0)
            await put(saver, f"{n:03}", {"text": text}, parent=parent)
            # Erased, after it was acknowledged, or there; never another state.
            found = await saver.aget_tuple(at())
            if found is not None:
                assert found.checkpoint["id"] == f"{n:03}"
                assert found.checkpoint["channel_values"] == {"text": text}
    finally:
        stop.set()
    assert await enforcing >= 0
    await saver.aenforce_retention(Retention(idle=ANY_AGE))
    assert await keys(saver) == []
