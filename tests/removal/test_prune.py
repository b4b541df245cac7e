"""Prune with conditions: exactly what they name goes, and is told before and after."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    ids,
    numbered,
    put,
    put_chain,
    values,
)
from tests.checkpoint.test_delta_history import STEPS, history

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore, PruneReport
from jskv_saver.errors import InvalidRequestError

COLLECTIONS = ("cp", "wr", "bl", "th", "rn")
TEXT = "x" * 5000


async def stored(saver: DocumentCheckpointSaver) -> Mapping[str, Any]:
    return {name: await saver.store.ids("default", name) for name in COLLECTIONS}


async def moment() -> datetime:
    """Later than what was stored, and not later than what will be."""
    begin = datetime.now(UTC)
    while datetime.now(UTC) == begin:
        pass
    return datetime.now(UTC)


@pytest.mark.parametrize("count", [1, 2, 5, 9, 50])
async def test_the_last_ones_stay(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, count: int
) -> None:
    names = numbered(9)
    await put_chain(saver, names)
    report = await other.aprune(["t"], keep_last=count)
    kept = names[-count:]
    assert await ids(saver, at()) == kept[::-1]
    assert await values(saver) == {"n": 8}
    assert report.checkpoints == 9 - len(kept)
    for each in report.pruned:
        assert (each.thread_id, each.checkpoint_ns) == ("t", "")
        assert each.removed == tuple(names[:-count])
        assert each.kept == len(kept)
        assert each.bytes > 0


async def test_what_was_stored_before_a_moment_goes(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["1", "2"])
    between = await moment()
    await put(saver, "3", {"n": 3}, parent="2")
    await put(saver, "0", {"n": 0}, parent="2")

    assert not (await saver.aprune(["t"], older_than=timedelta(days=1))).pruned
    assert not (await saver.aprune(["t"], older_than=3600)).pruned
    report = await saver.aprune(["t"], older_than=between)
    # By when it was stored, not by its id.
    assert report.pruned[0].removed == ("1", "2")
    assert await ids(saver, at()) == ["3", "0"]
    # The latest stays, however old it is.
    await saver.aprune(["t"], older_than=0)
    assert await ids(saver, at()) == ["3"]


async def test_with_two_conditions_only_what_both_name_goes(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["1", "2", "3"])
    between = await moment()
    await put_chain(saver, ["4", "5"])
    await saver.aprune(["t"], keep_last=4, older_than=between)
    assert await ids(saver, at()) == ["5", "4", "3", "2"]
    await saver.aprune(["t"], keep_last=1, older_than=between)
    assert await ids(saver, at()) == ["5", "4"]


async def test_one_namespace_of_a_thread_is_pruned(
    saver: DocumentCheckpointSaver,
) -> None:
    for ns in ("", "child:1", "child"):
        await put_chain(saver, ["1", "2", "3"], ns=ns)
    await saver.aprune(["t"], checkpoint_ns="child")
    assert await ids(saver, at(ns="child")) == ["3"]
    assert await ids(saver, at()) == ["3", "2", "1"]
    assert await ids(saver, at(ns="child:1")) == ["3", "2", "1"]
    await saver.aprune(["t"], checkpoint_ns="", keep_last=2)
    assert await ids(saver, at()) == ["3", "2"]
    assert await ids(saver, at(ns="child:1")) == ["3", "2", "1"]


async def test_a_dry_run_tells_what_the_prune_then_removes(
    saver: DocumentCheckpointSaver,
) -> None:
    parent = None
    for n in range(5):
        await put(saver, f"{n}", {"text": f"{n}" + TEXT}, parent=parent, run_id=f"r{n}")
        await saver.aput_writes(at(f"{n}"), [("c", n)], "task")
        await put(saver, f"{n}", {"n": n}, ns="child")
        parent = f"{n}"
    before = await stored(saver)

    planned = await saver.aprune(["t", "unknown"], keep_last=2, dry_run=True)
    assert await stored(saver) == before
    assert planned.dry_run
    done = await saver.aprune(["t", "unknown"], keep_last=2)
    assert not done.dry_run
    assert done.pruned == planned.pruned
    assert [each.checkpoint_ns for each in done.pruned] == ["", "child"]
    assert done.checkpoints == 6
    assert done.bytes == planned.bytes > 0
    assert await ids(saver, at()) == ["4", "3"]
    again = await saver.aprune(["t"], keep_last=2)
    assert again == PruneReport(dry_run=False)


async def test_the_index_of_a_run_goes_with_its_last_checkpoint(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"n": 1}, run_id="r1")
    await put(saver, "2", {"n": 2}, parent="1", run_id="r2")
    await other.aprune(["t"])
    assert await saver.store.ids("default", "rn") == [("default", "t", "r2", "")]
    # It is written again when the run goes on.
    await put(saver, "3", {"n": 3}, parent="2", run_id="r1")
    await put(saver, "4", {"n": 4}, parent="3", run_id="r1")
    await saver.adelete_for_runs(["r1"])
    assert await ids(saver, at()) == ["2"]


async def test_a_dry_run_of_a_deletion_deletes_nothing(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, ["1", "2"])
    report = await saver.aprune(["t"], strategy="delete", dry_run=True)
    assert report == PruneReport(dry_run=True, erased=("t",))
    assert await ids(saver, at()) == ["2", "1"]
    report = await saver.aprune(["t"], strategy="delete")
    assert report == PruneReport(dry_run=False, erased=("t",))
    assert await saver.store.ids("default", "cp") == []


BAD: list[dict[str, Any]] = [
    {"keep_last": 0},
    {"keep_last": -1},
    {"keep_last": True},
    {"keep_last": 1.0},
    {"keep_last": "2"},
    {"older_than": -1},
    {"older_than": timedelta(seconds=-1)},
    {"older_than": datetime(2026, 1, 1)},
    {"older_than": float("nan")},
    {"older_than": "7d"},
    {"older_than": True},
    {"older_than": 1e300},
    {"checkpoint_ns": 1},
    {"checkpoint_ns": "\0"},
    {"strategy": "delete", "keep_last": 2},
    {"strategy": "delete", "checkpoint_ns": ""},
]


@pytest.mark.parametrize("options", BAD, ids=repr)
async def test_a_bad_condition_is_named_and_nothing_goes(
    saver: DocumentCheckpointSaver, options: dict[str, Any]
) -> None:
    await put_chain(saver, ["1", "2"])
    with pytest.raises(InvalidRequestError, match=next(iter(options))):
        await saver.aprune(["t"], **options)
    assert await ids(saver, at()) == ["2", "1"]


@pytest.mark.parametrize("given", ["nope", b"nope", 7, None, {"t": 1}], ids=repr)
async def test_one_thread_instead_of_several_is_named(
    saver: DocumentCheckpointSaver, given: Any
) -> None:
    with pytest.raises(InvalidRequestError, match="thread_ids must be a sequence"):
        await saver.aprune(given)


def test_an_age_longer_than_time_itself_removes_nothing(open_saver: OpenSaver) -> None:
    with open_saver() as saver:
        saver.put(at(), _checkpoint("1"), {}, {})
        saver.put(at("1"), _checkpoint("2"), {}, {})
        report = saver.prune(["t"], older_than=timedelta.max / 2)
        assert isinstance(report, PruneReport)
        assert not report.pruned
        assert saver.prune(["t"]).checkpoints == 1


def _checkpoint(id: str) -> Any:
    return {"v": 4, "id": id, "ts": "", "channel_values": {}, "channel_versions": {}}


@given(
    steps=STEPS,
    keep_last=st.integers(1, 5) | st.none(),
    boundary=st.integers(0, 14) | st.none(),
)
async def test_the_history_of_each_that_is_kept_stays_what_it_was(
    steps: list[tuple[int, tuple[str, ...], list[tuple[str, str, int]], bool]],
    keep_last: int | None,
    boundary: int | None,
) -> None:
    """Reconstructed before and after, and by LangGraph's own walk on its own saver."""
    reference = InMemorySaver()
    older_than: datetime | None = None
    parents: dict[str, str | None] = {}
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as saver:
        for n, (back, seeds, writes, first) in enumerate(steps):
            if n == boundary:
                older_than = await moment()
            id = f"{n:03}"
            parent = f"{n - 1 - back % n:03}" if n and back < 12 else None
            parents[id] = parent
            for each in (saver, reference):
                await put(
                    each,
                    id,
                    {channel: [channel, n] for channel in seeds},
                    parent=parent,
                    versions=dict.fromkeys("xyz", id),
                    counters_since_delta_snapshot={
                        c: (1, 1) for c in "xyz" if c not in seeds
                    },
                    run_id="first" if first else "second",
                )
                for channel, path, count in writes:
                    task = f"{channel} of {id}"
                    await each.aput_writes(
                        at(id), [(channel, [task, i]) for i in range(count)], task, path
                    )
        asked = {id: [c for c in "xyz" if c not in steps[int(id)][1]] for id in parents}
        before = {id: await history(saver, id, *asked[id]) for id in parents}
        states = {id: await get(saver, id) for id in parents}

        await saver.aprune(["t"], keep_last=keep_last, older_than=older_than)

        count = 1 if keep_last is None else keep_last
        kept = set(sorted(parents)[-count:])
        if older_than is not None:
            kept |= {id for id in parents if int(id) >= (boundary or 0)}
        left = set(await ids(saver, at()))
        assert kept <= left
        for id in kept:
            found = await history(saver, id, *asked[id])
            assert found == before[id] == await history(reference, id, *asked[id])
        for id in left:
            assert await get(saver, id) == states[id]
        # What stays beside them is needed by one of them.
        for id in left - kept:
            assert any(id in _ancestors(parents, each) for each in kept)


def _ancestors(parents: Mapping[str, str | None], id: str) -> set[str]:
    found: set[str] = set()
    at = parents[id]
    while at is not None:
        found.add(at)
        at = parents[at]
    return found
