"""Parts that records bring to others: nobody loses them when such a record goes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from tests.attacks.indexes import check_threads, left_over
from tests.checkpoint.saving import at, ids, put, values

from jskv_saver import DocumentCheckpointSaver, Finding
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.checkpoint.layout import PARTS, RECORDS, Scope, decode_record
from jskv_saver.errors import CorruptDocumentError

SCOPE = Scope("default", "t", "")


def uuid_at(n: int) -> str:
    return f"00000000-0000-0000-0000-{n:012}"


def log(n: int) -> list[str]:
    """What the checkpoint with this number holds: a text more than its parent."""
    return [random.Random(each).randbytes(300).hex() for each in range(n)]


async def grow(
    saver: DocumentCheckpointSaver, numbers: Sequence[int], parent: int | None = None
) -> None:
    """Checkpoints in a row, each the parent of the next one and of a run of its own."""
    for n in numbers:
        last = uuid_at(parent) if parent is not None else None
        await put(saver, uuid_at(n), {"log": log(n)}, parent=last, run_id=f"r{n}")
        parent = n


async def brought(saver: DocumentCheckpointSaver, n: int) -> bytes:
    """The digest of what a record brings; empty: nothing."""
    found = await saver.store.get("default", RECORDS, SCOPE.record(uuid_at(n)))
    return b"".join(decode_record(found).brought)


async def apart(saver: DocumentCheckpointSaver) -> set[str]:
    """The digests of the parts that are stored by themselves."""
    found = await saver.store.ids("default", PARTS, within=SCOPE.prefix)
    return {id[-1] for id in found}


async def found(saver: DocumentCheckpointSaver) -> Sequence[Finding]:
    """What a verification finds."""
    return (await saver.averify(settle=0)).findings


async def test_a_prune_stores_apart_what_the_dead_bring_to_others(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await grow(saver, [1, 2, 3])
    first, second, third = [await brought(saver, n) for n in (1, 2, 3)]
    assert b"" not in (first, second, third)
    assert await apart(saver) == set()
    await other.aprune(["t"])
    assert await ids(saver, at()) == [uuid_at(3)]
    assert await apart(saver) == {first.hex(), second.hex()}
    for each in (saver, other):
        assert await values(each) == {"log": log(3)}
    # What follows finds them, and what nobody needs any more goes.
    await grow(saver, [4], parent=3)
    await grow(other, [5], parent=4)
    await check_threads(saver.store, "t")
    assert (await saver.averify(settle=0)).ok
    await put(saver, uuid_at(6), {"log": []}, parent=uuid_at(5))
    await other.aprune(["t"])
    assert await apart(saver) == set()


async def test_runs_that_are_deleted_leave_what_they_bring_to_others(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await grow(saver, [1, 2, 3, 4])
    await saver.adelete_for_runs(["r2", "r3"])
    assert await ids(other, at()) == [uuid_at(4), uuid_at(1)]
    assert await values(other) == {"log": log(4)}
    await check_threads(saver.store, "t")
    assert await left_over(saver.store, "t") == set()


async def test_an_id_that_is_put_again_may_bring_something_else(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await grow(saver, [1, 2, 3])
    before = await brought(saver, 2)
    await saver.adelete_for_runs(["r1", "r2"])
    # Its parent has gone: it is laid out in full.
    await put(other, uuid_at(2), {"log": log(2)}, parent=uuid_at(1), run_id="r2")
    assert await brought(saver, 2) not in (before, b"")
    for each in (saver, other):
        assert await values(each, uuid_at(2)) == {"log": log(2)}
        assert await values(each, uuid_at(3)) == {"log": log(3)}
    await saver.adelete_for_runs(["r2"])
    assert await values(other) == {"log": log(3)}
    assert await left_over(saver.store, "t") == set()


async def test_what_was_named_as_dead_and_lives_after_all_is_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    """An expiry that is withdrawn; meanwhile one was put again, as if it were gone."""
    await grow(saver, [1, 2, 3])
    expirer = Expirer(saver._partition)
    survey = await expirer.survey("t")
    ((scope, seen),) = survey.scopes.items()
    epoch = await expirer._close(scope, seen)
    await put(other, uuid_at(2), {"log": log(2)}, parent=uuid_at(1), run_id="r2")
    await expirer._withdraw(survey, {scope: epoch})
    for each in (saver, other):
        assert await ids(each, at()) == [uuid_at(3), uuid_at(2), uuid_at(1)]
        for n in (1, 2, 3):
            assert await values(each, uuid_at(n)) == {"log": log(n)}
    await check_threads(saver.store, "t")


async def test_a_record_that_was_removed_by_hand_is_missed(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await grow(saver, [1, 2, 3])
    await saver.store.delete("default", RECORDS, SCOPE.record(uuid_at(2)))
    with pytest.raises(CorruptDocumentError, match="not stored any more") as missed:
        await other.aget_tuple(at(uuid_at(3)))
    assert [(each.kind, each.key) for each in await found(saver)] == [
        ("missing-part", missed.value.key),
        ("stale-index", "rn/default/t/r2/"),
    ]
    assert await values(other, uuid_at(1)) == {"log": log(1)}


@pytest.mark.parametrize("own", [b"of something else", b""])
async def test_a_record_that_brings_something_else_is_found(
    saver: DocumentCheckpointSaver, own: bytes
) -> None:
    await grow(saver, [1, 2, 3])
    assert await found(saver) == ()
    path = SCOPE.record(uuid_at(2))
    record = await saver.store.get("default", RECORDS, path)
    await saver.store.put("default", RECORDS, path, {**record.data, "p": own})
    kinds = {(each.kind, each.key.split("/")[0]) for each in await found(saver)}
    wrong = {("corrupt", "cp"), ("wrong-part", "bl")}
    assert kinds == (wrong if own else {("missing-part", "bl")})


@pytest.mark.parametrize("known", ["remembered", "read"])
async def test_a_child_whose_clock_is_behind_takes_over_what_its_parent_has(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, known: str
) -> None:
    """As any child: of a channel that is not new the caller's value does not count."""
    parent, child = f"{0:08}-0000-0000-0000-{2:012}", f"{0:08}-0000-0000-0000-{1:012}"
    state = {"large": "l" * 900, "small": "s"}
    await put(saver, parent, state, versions={"large": 1, "small": 1})
    writer = saver if known == "remembered" else other
    await put(
        writer,
        child,
        {"large": "x" * 900, "small": "x", "new": "n" * 900},
        parent=parent,
        versions={"large": 1, "small": 1, "new": 2},
        new={"new": 2},
    )
    for each in (saver, other):
        assert await values(each, child) == {**state, "new": "n" * 900}
