"""Verify finds what is damaged, missing or left over, and repair mends what it can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, get, ids, put, values
from tests.removal.verifying import HERE, LARGE, OWNER, TEXT, Saver, brief, fill, look

from jskv_saver import Finding, Retention, VerifyReport
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.document.findings import KINDS
from jskv_saver.errors import CorruptDocumentError, InvalidRequestError


async def test_of_what_is_whole_nothing_is_found(saver: Saver) -> None:
    for thread in ("t", "u"):
        await fill(saver, thread)
    await saver.aput_writes(at("3"), [("c", 1)], "early")
    await saver.apin("t")
    await saver.aadmit(at(thread="later"), "a request")
    report = await saver.averify()
    assert report == VerifyReport((), threads=3, checkpoints=8, waiting=1)
    assert report.ok
    assert await look(saver, "u") == VerifyReport((), 1, 4, 0)
    assert (await look(saver, "unknown")).ok


async def test_after_every_removal_nothing_is_found(saver: Saver) -> None:
    for thread in ("t", "u", "v", "w"):
        await fill(saver, thread)
    await saver.aprune(["t"])
    assert (await look(saver)).ok
    await saver.adelete_for_runs(["r2"])
    assert (await look(saver)).ok
    await saver.adelete_for_runs(["r1"])
    assert (await look(saver)).ok
    await saver.adelete_thread("u")
    assert (await look(saver)).ok
    await fill(saver, "t")
    await saver.acopy_thread("t", "copy")
    assert (await look(saver)).ok
    await saver.aenforce_retention(Retention(idle=1e-6))
    assert await look(saver) == VerifyReport((), 0, 0, 0)


async def _part_gone(saver: Saver) -> set[tuple[str, str]]:
    part = (await saver.store.ids(OWNER, "bl", within=HERE))[0]
    await saver.store.delete(OWNER, "bl", part)
    return {("missing-part", "/".join(("bl", *part)))}


async def _part_of_another(saver: Saver) -> set[tuple[str, str]]:
    part = (await saver.store.ids(OWNER, "bl", within=HERE))[0]
    await saver.store.put(OWNER, "bl", part, {"b": b"of something else"})
    return {("wrong-part", "/".join(("bl", *part)))}


async def _no_part(saver: Saver) -> set[tuple[str, str]]:
    part = (await saver.store.ids(OWNER, "bl", within=HERE))[0]
    await saver.store.put(OWNER, "bl", part, {"c": "no bytes"})
    return {("corrupt", "/".join(("bl", *part)))}


async def _unreadable_record(saver: Saver) -> set[tuple[str, str]]:
    path = (*HERE, "2")
    document = await saver.store.get(OWNER, "cp", path)
    await saver.store.put(OWNER, "cp", path, {**document.data, "l": b"\xff"})
    return {("corrupt", "/".join(("cp", *path)))}


async def _unreadable_epoch(saver: Saver) -> set[tuple[str, str]]:
    path = (*HERE, "")
    await saver.store.put(OWNER, "cp", path, {"e": b"\xff"})
    return {("corrupt", "/".join(("cp", *path)))}


async def _unreadable_writes(saver: Saver) -> set[tuple[str, str]]:
    path = (*HERE, "2", "small")
    document = await saver.store.get(OWNER, "wr", path)
    await saver.store.put(OWNER, "wr", path, {**document.data, "b": b"too short"})
    return {("corrupt", "/".join(("wr", *path)))}


async def _part_of_writes_gone(saver: Saver) -> set[tuple[str, str]]:
    stored = await saver.store.ids(OWNER, "wr", within=HERE)
    part = next(path for path in stored if len(path) == 6)
    await saver.store.delete(OWNER, "wr", part)
    return {("missing-part", "/".join(("wr", *part)))}


async def _unreadable_admission(saver: Saver) -> set[tuple[str, str]]:
    path = ("default", "t", "r")
    await saver.aadmit(at(), "a request", request_id="r")
    await saver.store.put(OWNER, "ad", path, {"b": b"no type"})
    return {("corrupt", "/".join(("ad", *path)))}


async def _ancestor_gone(saver: Saver) -> set[tuple[str, str]]:
    counters = {"d": (1, 1)}
    for id, parent in (("3", "2"), ("4", "3")):
        await put(saver, id, parent=parent, counters_since_delta_snapshot=counters)
    await saver.store.delete(OWNER, "cp", (*HERE, "3"))
    return {("broken-history", "/".join(("cp", *HERE, "4")))}


DAMAGES: list[Callable[[Saver], Awaitable[set[tuple[str, str]]]]] = [
    _part_gone,
    _part_of_another,
    _no_part,
    _unreadable_record,
    _unreadable_epoch,
    _unreadable_writes,
    _unreadable_admission,
    _ancestor_gone,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
async def test_damage_is_an_error_that_a_repair_leaves(
    saver: Saver, damage: Callable[[Saver], Awaitable[set[tuple[str, str]]]]
) -> None:
    await fill(saver)
    await fill(saver, "u")
    expected = await damage(saver)
    report = await look(saver)
    assert brief(report) == expected
    for each in report.findings:
        assert each.severity == "error"
        assert each.kind in KINDS
    try:
        await saver.arepair()
    except CorruptDocumentError:
        assert report.findings[0].kind == "corrupt"
    assert brief(await look(saver)) >= expected
    # Whatever is damaged can be deleted.
    await saver.adelete_thread("t")
    assert await look(saver) == VerifyReport((), 1, 4, 0)


async def test_writes_that_lack_a_part_go_and_their_task_runs_again(
    saver: Saver,
) -> None:
    await fill(saver)
    expected = await _part_of_writes_gone(saver)
    report = await look(saver)
    assert brief(report) == expected
    assert report.findings[0].severity == "error"
    await saver.arepair()
    assert (await look(saver)).ok
    assert (await get(saver)).pending_writes == [("small", "c", 1)]


async def _index_gone(saver: Saver) -> set[tuple[str, str]]:
    await saver.store.delete(OWNER, "th", HERE)
    await saver.store.delete(OWNER, "rn", ("default", "t", "r1", ""))
    return {("missing-index", "th/default/t/"), ("missing-index", "rn/default/t/r1/")}


async def _stale_run(saver: Saver) -> set[tuple[str, str]]:
    await saver.store.put(OWNER, "rn", ("default", "t", "r9", ""), {})
    return {("stale-index", "rn/default/t/r9/")}


async def _stale_thread(saver: Saver) -> set[tuple[str, str]]:
    await saver.store.put(OWNER, "th", ("default", "t", "never"), {})
    await saver.store.put(OWNER, "rn", ("default", "t", "r9", "never"), {})
    await saver.store.put(OWNER, "th", ("default", "gone", ""), {})
    return {
        ("stale-index", "th/default/t/never"),
        ("stale-index", "rn/default/t/r9/never"),
        ("stale-index", "th/default/gone/"),
    }


async def _opened_only(saver: Saver) -> set[tuple[str, str]]:
    path = ("default", "gone", "", "")
    document = await saver.store.get(OWNER, "cp", (*HERE, ""))
    await saver.store.put(OWNER, "cp", path, document.data)
    return {("empty", "cp/default/gone//")}


async def _parts_left(saver: Saver) -> set[tuple[str, str]]:
    naming = saver._partition.naming
    from jskv_saver.checkpoint.layout import Scope

    found = set()
    for ns in ("", "never"):
        scope = Scope("default", "t", ns)
        path = (*scope.prefix, naming(scope)(b"left").hex())
        await saver.store.put(OWNER, "bl", path, {"b": b"left"})
        found.add(("unreachable", "/".join(("bl", *path))))
    return found


async def _parts_of_writes_left(saver: Saver) -> set[tuple[str, str]]:
    path = (*HERE, "2", "small", "left")
    await saver.store.put(OWNER, "wr", path, {"b": b"left"})
    return {("unreachable", "/".join(("wr", *path)))}


async def _torn_writes(saver: Saver) -> set[tuple[str, str]]:
    await saver.aput_writes(at("5"), [("c", LARGE)], "torn")
    stored = await saver.store.ids(OWNER, "wr", within=(*HERE, "5"))
    *_, part = [path for path in stored if len(path) == 6]
    await saver.store.delete(OWNER, "wr", part)
    return {("unreachable", "/".join(("wr", *HERE, "5", "torn")))}


async def _removal_that_died(saver: Saver) -> set[tuple[str, str]]:
    async def dies(*_: Any) -> None:
        raise ConnectionAbortedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pruner, "_remove", dies)
        with pytest.raises(ConnectionAbortedError):
            await saver.aprune(["t"], checkpoint_ns="")
    return {("unfinished", "cp/default/t//1")}


async def _expiry_that_died(saver: Saver) -> set[tuple[str, str]]:
    async def dies(*_: Any) -> None:
        raise ConnectionAbortedError

    await put(saver, "1", thread="gone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Expirer, "_forget", dies)
        expirer = Expirer(saver._partition)
        with pytest.raises(ConnectionAbortedError):
            await expirer.expire("gone", await expirer.survey("gone"))
    return {("empty", "cp/default/gone//")}


LITTER: list[Callable[[Saver], Awaitable[set[tuple[str, str]]]]] = [
    _index_gone,
    _stale_run,
    _stale_thread,
    _opened_only,
    _parts_left,
    _parts_of_writes_left,
    _torn_writes,
    _removal_that_died,
    _expiry_that_died,
]


@pytest.mark.parametrize("leave", LITTER, ids=lambda each: each.__name__)
async def test_what_is_left_over_is_found_and_repaired(
    saver: Saver,
    other: Saver,
    leave: Callable[[Saver], Awaitable[set[tuple[str, str]]]],
) -> None:
    await fill(saver)
    expected = await leave(saver)
    report = await look(other)
    assert expected <= brief(report)
    if leave is not _torn_writes:
        assert brief(report) == expected
    told: list[tuple[int, int]] = []
    await other.arepair(on_progress=lambda *done: told.append(done))
    assert told[-1] == (len(told), len(told))
    assert (await look(other)).ok
    # The threads go on, for who remembers them too.
    for each in (saver, other):
        assert (await get(each)).checkpoint["id"] == "2"
        assert await values(each, ns="child:1") == {"text": TEXT + "2" * 3000}
    await put(saver, "3", {"text": TEXT + "3"}, parent="2", run_id="r1")
    await put(other, "4", {"text": TEXT + "34"}, parent="3", run_id="r2")
    assert await values(saver) == {"text": TEXT + "34"}
    assert (await look(saver)).ok
    await saver.adelete_for_runs(["r1"])
    assert "3" not in await ids(saver, at())


async def test_an_index_that_is_repaired_finds_its_run_again(saver: Saver) -> None:
    await fill(saver)
    await saver.store.delete(OWNER, "rn", ("default", "t", "r1", ""))
    await saver.arepair()
    await saver.adelete_for_runs(["r1"])
    assert await ids(saver, at()) == ["2"]


def test_the_blocking_face_verifies_too(open_saver: OpenSaver) -> None:
    with open_saver() as saver:
        checkpoint: Any = {
            "v": 4,
            "id": "1",
            "ts": "",
            "channel_values": {},
            "channel_versions": {},
        }
        saver.put(at(), checkpoint, {}, {})
        told: list[tuple[int, int]] = []
        report = saver.verify(on_progress=lambda *done: told.append(done))
        assert report == VerifyReport((), 1, 1, 0)
        assert told == [(1, 1)]
        saver.repair()
        for settle in (-1, True, "1", float("nan"), 1e9):
            with pytest.raises(InvalidRequestError, match="settle"):
                saver.verify(settle=settle)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError, match="thread_ids"):
            saver.verify("t")


def test_a_finding_says_what_and_how_bad() -> None:
    finding = Finding("default", "cp/a/t//1", "corrupt", "is corrupt")
    assert finding.severity == "error"
    assert Finding("default", "x", "unreachable", "").severity == "warning"
