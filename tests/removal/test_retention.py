"""Retention: whole threads or none of it, and never what somebody has just used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, ids, put, put_chain, values
from tests.removal.test_prune import moment

from jskv_saver import DocumentCheckpointSaver, PruneReport, Retention
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.checkpoint.holding import HOLDER, LEASES
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    InvalidRequestError,
    LeaseLostError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

COLLECTIONS = ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn")
LARGE = "l" * 400_000
TEXT = "x" * 5000
ANY_AGE = timedelta(microseconds=1)
DAY = timedelta(days=1)


async def keys(saver: DocumentCheckpointSaver, thread: str = "t") -> list[Any]:
    within = ("default", thread)
    return [
        (name, id)
        for name in COLLECTIONS
        for id in await saver.store.ids("default", name, within=within)
    ]


async def fill(saver: DocumentCheckpointSaver, thread: str = "t") -> None:
    """A thread of everything: parts, writes, runs, two namespaces."""
    for ns in ("", "child:1"):
        parent = None
        for n in range(3):
            id = f"{n}"
            text = f"{id}" + TEXT
            await put(
                saver,
                id,
                {"text": text},
                parent=parent,
                thread=thread,
                ns=ns,
                run_id=id,
            )
            await saver.aput_writes(at(id, thread=thread, ns=ns), [("c", n)], "task")
            parent = id
    await saver.aput_writes(at("2", thread=thread), [("c", LARGE)], "large")
    await saver.aadmit(at(thread=thread), {"do": "it"})


async def test_idle_threads_go_as_a_whole_and_others_stay(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for thread in ("old", "used", "written", "*"):
        await fill(saver, thread)
    limit = await moment()
    await put(saver, "3", {"n": 3}, parent="2", thread="used")
    await saver.aput_writes(at("2", thread="written"), [("c", "late")], "late")
    before = await keys(saver, "used"), await keys(saver, "written")

    # As if it were called a day later.
    keeper, now = other._keeper, limit + DAY
    planned = await keeper.enforce(Retention(idle=DAY), now, look=True)
    assert planned == PruneReport(dry_run=True, erased=("*", "old"))
    assert await values(saver, thread="old")
    report = await keeper.enforce(Retention(idle=DAY), now)
    assert report == PruneReport(dry_run=False, erased=("*", "old"))
    for gone in planned.erased:
        assert await keys(saver, gone) == []
        assert await saver.aget_tuple(at(thread=gone)) is None
    assert (await keys(saver, "used"), await keys(saver, "written")) == before
    # Its next life begins as any thread's does.
    await put(saver, "9", {"n": 9}, thread="old")
    assert await values(other, thread="old") == {"n": 9}


async def test_a_thread_that_began_long_ago_goes_however_much_it_is_used(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"n": 1}, thread="old")
    limit = await moment()
    await put(saver, "1", {"n": 1}, thread="new")
    await put(saver, "2", {"n": 2}, parent="1", thread="old")
    # The first checkpoint has gone, but not when the thread began.
    await saver.aprune(["old"])
    report = await saver._keeper.enforce(Retention(max_age=DAY), limit + DAY)
    assert report.erased == ("old",)
    assert await keys(saver, "old") == []
    assert await ids(saver, at(thread="new")) == ["1"]


async def test_of_threads_that_stay_the_last_ones_are_kept(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["1", "2", "3"], thread="old")
    limit = await moment()
    for ns in ("", "child"):
        await put_chain(saver, ["1", "2", "3"], thread="new", ns=ns)
    retention = Retention(keep_last=2, idle=DAY)
    planned = await saver._keeper.enforce(retention, limit + DAY, look=True)
    assert await ids(saver, at(thread="new")) == ["3", "2", "1"]
    report = await saver._keeper.enforce(retention, limit + DAY)
    assert report.erased == planned.erased == ("old",)
    assert report.pruned == planned.pruned
    assert [(e.thread_id, e.checkpoint_ns, e.removed) for e in report.pruned] == [
        ("new", "", ("1",)),
        ("new", "child", ("1",)),
    ]
    assert await ids(saver, at(thread="new", ns=None)) == ["3", "3", "2", "2"]


async def test_a_retention_that_was_carried_out_is_no_use_of_the_thread(
    saver: DocumentCheckpointSaver,
) -> None:
    """A prune puts an epoch, and that is the newest message then."""
    await put_chain(saver, ["1", "2", "3"])
    limit = await moment()
    await saver._keeper.enforce(Retention(keep_last=1, idle=DAY), limit)
    assert await ids(saver, at()) == ["3"]
    report = await saver._keeper.enforce(Retention(idle=DAY), limit + DAY)
    assert report.erased == ("t",)


async def test_pinned_threads_stay_as_they_are(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for thread in ("a", "b", "c"):
        await put_chain(saver, ["1", "2"], thread=thread)
    await saver.apin("a")
    await saver.apin("a")
    await saver.apin("b", "audit")
    await other.apin("b", "legal")
    assert await other.apinned() == {"a": ("pin",), "b": ("audit", "legal")}

    report = await other.aenforce_retention(Retention(keep_last=1, idle=ANY_AGE))
    assert report == PruneReport(dry_run=False, erased=("c",), pinned=("a", "b"))
    for thread in ("a", "b"):
        assert await ids(saver, at(thread=thread)) == ["2", "1"]
    await saver.aunpin("b", "legal")
    assert (await other.aenforce_retention(Retention(idle=ANY_AGE))).erased == ()
    await saver.aunpin("b")
    await saver.aunpin("b")
    await saver.aunpin("a", "another")
    assert await other.apinned() == {"a": ("pin",)}
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert (report.erased, report.pinned) == (("b",), ("a",))
    await saver.adelete_thread("a")
    assert await other.apinned() == {}


async def test_what_is_not_there_is_not_pinned(saver: DocumentCheckpointSaver) -> None:
    with pytest.raises(DocumentNotFoundError, match="no thread 'nope'"):
        await saver.apin("nope")
    assert await saver.apinned() == {}
    for name in ("", 7, "a\0"):
        with pytest.raises(InvalidRequestError, match="name"):
            await saver.apin("nope", name)  # type: ignore[arg-type]


async def damage(saver: DocumentCheckpointSaver, thread: str) -> None:
    """The latest checkpoint of a thread is no longer what was written."""
    path = ("default", thread, "", "2")
    document = await saver.store.get("default", "cp", path)
    await saver.store.put("default", "cp", path, {**document.data, "l": b"\xff"})


async def test_a_thread_that_cannot_be_read_is_left_without_a_pin(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await fill(saver)
    await saver.apin("t", "audit")
    await damage(saver, "t")
    for name in ("audit", "legal"):
        with pytest.raises(CorruptDocumentError):
            await other.apin("t", name)
    assert await saver.apinned() == {"t": ("audit",)}


async def test_a_pin_that_is_stored_is_no_refusal(
    saver: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fill(saver)
    store = saver.store
    real = store.put

    async def away(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError("no answer")

    async def put_and_gone(*args: Any, **options: Any) -> Any:
        put = await real(*args, **options)
        patch.setattr(store, "ids", away)
        return put

    with monkeypatch.context() as patch:
        patch.setattr(store, "ids", away)
        with pytest.raises(StoreUnavailableError):
            await saver.apin("t")
    assert await saver.apinned() == {}
    with monkeypatch.context() as patch:
        patch.setattr(store, "put", put_and_gone)
        with pytest.raises(UnknownOutcomeError):
            await saver.apin("t")
    assert await saver.apinned() == {"t": ("pin",)}
    await saver.apin("t")
    assert await saver.apinned() == {"t": ("pin",)}


@pytest.mark.parametrize(
    "retention", [Retention(idle=ANY_AGE), Retention(keep_last=1)], ids=repr
)
async def test_a_damaged_thread_does_not_keep_the_others(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    retention: Retention,
) -> None:
    for thread in ("a", "b", "c"):
        await fill(saver, thread)
    await damage(saver, "b")
    before = await keys(saver, "b")
    planned = await other.aenforce_retention(retention, dry_run=True)
    assert planned.damaged == ("b",)
    goes = {*planned.erased, *(each.thread_id for each in planned.pruned)}
    assert goes == {"a", "c"}
    seen: list[tuple[int, int]] = []
    with pytest.raises(CorruptDocumentError) as caught:
        await other.aenforce_retention(
            retention, on_progress=lambda done, all: seen.append((done, all))
        )
    assert caught.value.key == "cp/default/b//2"
    assert await keys(saver, "b") == before
    left = [] if retention.idle else ["2"]
    for thread in ("a", "c"):
        assert await ids(saver, at(thread=thread)) == left
    assert seen == [(1, 3), (2, 3), (3, 3)]


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
    before = await _states(other)
    survey = Expirer.survey

    async def surveyed(self: Expirer, thread: str) -> Any:
        found = await survey(self, thread)
        await use(saver)
        return found

    monkeypatch.setattr(Expirer, "survey", surveyed)
    report = await other.aenforce_retention(Retention(idle=ANY_AGE))
    assert report.erased == ()
    after = await _states(other)
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
    before = await _states(other)
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
    after = await _states(other)
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


async def _states(saver: DocumentCheckpointSaver) -> dict[Any, Any]:
    """All checkpoints by namespace and id, without what came late."""
    states: dict[Any, Any] = {}
    async for found in saver.alist(at(ns=None)):
        writes = [write for write in found.pending_writes or [] if write[0] != "late"]
        key = found.config["configurable"]["checkpoint_ns"], found.checkpoint["id"]
        states[key] = found._replace(pending_writes=writes)
    return states


BAD: list[dict[str, Any]] = [
    {},
    {"keep_last": 0},
    {"keep_last": "3"},
    {"idle": 0},
    {"idle": -1},
    {"idle": "1d"},
    {"max_age": timedelta(0)},
    {"max_age": float("inf")},
]


@pytest.mark.parametrize("options", BAD, ids=repr)
def test_a_retention_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(options), "needs")):
        Retention(**options)


def test_the_blocking_face_does_the_same(open_saver: OpenSaver) -> None:
    told: list[tuple[int, int]] = []
    with open_saver() as saver:
        for thread in ("a", "b", "c"):
            checkpoint: Any = {
                "v": 4,
                "id": "1",
                "ts": "",
                "channel_values": {},
                "channel_versions": {},
            }
            saver.put(at(thread=thread), checkpoint, {}, {})
        saver.pin("a")
        assert saver.pinned() == {"a": ("pin",)}
        with pytest.raises(InvalidRequestError, match="Retention"):
            saver.enforce_retention({"idle": 1})  # type: ignore[arg-type]
        report = saver.enforce_retention(
            Retention(idle=ANY_AGE), on_progress=lambda *done: told.append(done)
        )
        assert (report.erased, report.pinned) == (("b", "c"), ("a",))
        assert told == [(1, 2), (2, 2)]
        saver.unpin("a")
        assert saver.enforce_retention(Retention(idle=ANY_AGE)).erased == ("a",)
