"""What slips through the purge of a thread whose deletion then dies before its look.

The server looks at a fence and stores in two steps: a record that was on its way may be
stored behind the purge, without its parts, its index entries and its namespace's epoch.
"""

from __future__ import annotations

import pytest
from tests.checkpoint.saving import at, id_of, listed, put, values

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError

LARGE = "large " * 2000
PATH = ("default", "t", "")


async def leave(
    other: DocumentCheckpointSaver, id: str, text: str, *, parent: str | None = None
) -> None:
    """A deleted thread of which one record is left."""
    if parent:
        await put(other, parent, {"text": text}, run_id="r")
    await put(other, id, {"text": text}, parent=parent, run_id="r")
    record = await other.store.get("default", "cp", (*PATH, id))
    await other.adelete_thread("t")
    await other.store.put("default", "cp", (*PATH, id), record.data)


async def found_by_verify(saver: DocumentCheckpointSaver) -> set[str]:
    return {finding.kind for finding in (await saver.averify(["t"])).findings}


async def test_what_is_not_whole_is_not_there(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", LARGE)
    assert await saver.aget_tuple(at()) is None
    assert await saver.aget_tuple(at("1")) is None
    assert await listed(saver, at()) == []
    assert await listed(saver, None) == []
    assert await listed(saver, at(), filter={"run_id": "r"}) == []
    assert "missing-part" in await found_by_verify(saver)
    await saver.arepair(["t"])
    assert await found_by_verify(saver) == set()
    assert await saver.store.ids("default", "cp", within=PATH) == [(*PATH, "")]


async def test_a_child_refers_to_nothing_that_was_deleted(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", LARGE)
    await put(saver, "2", {"text": LARGE, "n": 2}, parent="1", new={"n": 2})
    for each in (saver, other):
        assert await values(each) == {"text": LARGE, "n": 2}
    await saver.arepair(["t"])
    assert await found_by_verify(saver) == set()
    assert [id_of(row) for row in await listed(other, at())] == ["2"]


async def test_nothing_that_is_remembered_of_it_is_referred_to(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", LARGE)
    # Who had written it still knows what it was.
    await other.aget_tuple(at())
    await put(other, "2", {"text": LARGE, "n": 2}, parent="1", new={"n": 2})
    await put(other, "3", {"text": LARGE, "n": 3}, parent="2", new={"n": 3})
    for each in (saver, other):
        assert await values(each, "2") == {"text": LARGE, "n": 2}
        assert await values(each) == {"text": LARGE, "n": 3}


async def test_a_child_that_needs_its_parent_is_refused(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", LARGE)
    with pytest.raises(DocumentNotFoundError, match="was deleted"):
        await put(
            saver,
            "2",
            {},
            parent="1",
            versions={"d": 2},
            counters_since_delta_snapshot={"d": (1, 1)},
        )


async def test_its_id_can_be_put_again(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", LARGE)
    await put(saver, "1", {"text": LARGE + "other"})
    for each in (saver, other):
        assert await values(each) == {"text": LARGE + "other"}


async def test_the_latest_is_one_that_is_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "5", LARGE)
    await put(saver, "3", {"n": 3})
    await put(saver, "4", {"n": 4})
    assert await values(saver) == {"n": 4}


async def test_a_prune_removes_it(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "5", LARGE)
    await put(saver, "4", {"n": 4})
    await saver.aprune(["t"])
    assert [id_of(row) for row in await listed(other, at())] == ["4"]
    assert await found_by_verify(saver) == set()


async def test_what_is_whole_is_there_and_indexed_with_the_next_step(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await leave(other, "1", "small")
    assert await values(saver) == {"text": "small"}
    assert await found_by_verify(saver) == {"missing-index"}
    # By one who has not read it.
    await put(other, "2", {"text": "small"}, parent="1", run_id="r")
    assert await found_by_verify(saver) == set()
    assert [id_of(row) for row in await listed(saver, at())] == ["2", "1"]
    await saver.adelete_for_runs(["r"])
    assert await listed(saver, at()) == []


async def test_what_was_lost_with_it_is_told(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    """It was the writer's own: he goes on, and refers to what was deleted."""
    await put(saver, "1", {"text": LARGE}, run_id="r")
    await put(saver, "2", {"text": LARGE, "n": 2}, parent="1", new={"n": 2})
    slipped = await other.store.get("default", "cp", (*PATH, "2"))
    await other.store.delete(
        "default",
        RESERVED_COLLECTIONS,
        PATH[:2],
        subtree=True,
        below=slipped.version,
    )
    assert await other.aget_tuple(at("2")) is None
    await put(saver, "3", {"text": LARGE, "n": 3}, parent="2", new={"n": 3})
    for _ in range(2):
        with pytest.raises(CorruptDocumentError):
            await other.aget_tuple(at("3"))
        await other.arepair(["t"])
