"""Retention: whole threads or none of it, and never what somebody has just used."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, ids, put, put_chain, values
from tests.removal.test_prune import moment
from tests.removal.threads import ANY_AGE, DAY, fill, keys

from jskv_saver import DocumentCheckpointSaver, PruneReport, Retention
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
    UnknownOutcomeError,
)


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
