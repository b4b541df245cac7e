"""What a saver remembers of a thread is never given when others have moved on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checkpoint.saving import at, id_of, ids, listed, put, values

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    InvalidRequestError,
)


async def test_a_listing_whose_newest_is_removed_meanwhile_goes_on_to_older_ones(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in range(5):
        parent = f"{n - 1}" if n else None
        await put(other, f"{n}", {"x": f"{n}" * 2000}, parent=parent, run_id=f"r{n}")
    read_contents = Reader.read_contents

    async def overtaken(self: Reader, *what: Any, **how: Any) -> Any:
        monkeypatch.setattr(Reader, "read_contents", read_contents)
        await other.adelete_for_runs(["r4", "r2"])
        return await self.read_contents(*what, **how)

    for limit, left in ((1, ["3"]), (3, ["3", "1", "0"])):
        monkeypatch.setattr(Reader, "read_contents", overtaken)
        assert await ids(saver, at(), limit=limit) == left


@pytest.mark.parametrize(
    "how", [{"limit": 20}, {}, {"filter": {"step": 1}}], ids=["few", "all", "filtered"]
)
async def test_what_is_removed_while_it_is_listed_is_not_given_without_its_writes(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, Any],
) -> None:
    for n in range(40):
        await put(other, f"{n:02}", {"x": n}, run_id=f"r{n % 2}", step=1)
        await other.aput_writes(at(f"{n:02}"), [("x", n)], "task")
    read_contents = Reader.read_contents

    async def overtaken(self: Reader, *what: Any, **more: Any) -> Any:
        monkeypatch.setattr(Reader, "read_contents", read_contents)
        await other.adelete_for_runs(["r1"])
        return await self.read_contents(*what, **more)

    monkeypatch.setattr(Reader, "read_contents", overtaken)
    found = await listed(saver, at(), **how)

    assert all(len(row.pending_writes or ()) == 1 for row in found)
    expected = [f"{n:02}" for n in reversed(range(0, 40, 2))][: how.get("limit")]
    assert [id_of(row) for row in found][: len(expected) // 2] == expected[
        : len(expected) // 2
    ]


async def test_a_second_life_of_an_id_is_what_its_children_take_over(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"x": "old"}, versions={"x": 1})
    await other.adelete_thread("t")
    await put(other, "1", {"x": "new"}, versions={"x": 1})
    assert await values(saver, "1") == {"x": "new"}
    await put(saver, "2", {"x": "new"}, parent="1", versions={"x": 1}, new={})
    for each in (saver, other):
        assert await values(each) == {"x": "new"}


async def test_a_second_life_that_was_not_read_is_taken_over_as_well(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"x": "old"}, versions={"x": 1})
    await other.adelete_thread("t")
    await put(other, "1", {"x": "new"}, versions={"x": 1})
    await put(saver, "2", {"x": "new"}, parent="1", versions={"x": 1}, new={})
    for each in (saver, other):
        assert await values(each) == {"x": "new"}


async def test_a_repeat_beside_a_parent_that_is_gone_is_still_a_repeat(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    child: dict[str, Any] = {
        "parent": "2",
        "counters_since_delta_snapshot": {"d": (1, 1)},
    }
    await put(saver, "1")
    await put(other, "2", {"d": 1}, parent="1")
    await put(other, "3", **child)
    await other.store.delete("default", "cp", ("default", "t", "", "2"))
    for each in (other, saver):
        await put(each, "3", **child)
    assert await ids(saver, at()) == ["3", "1"]


async def test_a_record_that_is_gone_is_the_latest_of_nobody(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(other, "5", {"x": 5})
    await put(other, "3", {"x": 3})
    assert await values(saver) == {"x": 5}
    await other.store.delete("default", "cp", ("default", "t", "", "5"))
    for each in (saver, other):
        assert await values(each) == {"x": 3}


async def test_the_latest_never_comes_without_its_writes(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its thread is deleted between the look for it and that for its writes."""
    for id, reader in (("1", saver), ("2", other)):
        await put(saver, id, {"x": id})
        await saver.aput_writes(at(id), [("__interrupt__", "ask")], "task")
        assert await reader.aget_tuple(at())
        get_many = type(reader.store).get_many

        async def late(store: Any, *what: Any, get_many: Any = get_many) -> Any:
            with monkeypatch.context() as original:
                original.setattr(type(store), "get_many", get_many)
                await saver.adelete_thread("t")
            return await get_many(store, *what)

        with monkeypatch.context() as patched:
            patched.setattr(type(reader.store), "get_many", late)
            assert await reader.aget_tuple(at()) is None


async def test_a_circle_of_parents_ends(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", parent="1")
    with pytest.raises(CorruptDocumentError, match="comes after it"):
        await saver.aget_delta_channel_history(config=at("1"), channels=["d"])


@pytest.mark.parametrize("name", [1, None, b"x", ("a", "b")])
async def test_a_channel_is_called_by_a_text(
    saver: DocumentCheckpointSaver, name: Any
) -> None:
    with pytest.raises(InvalidRequestError, match="name of a channel"):
        await put(saver, "1", {name: 1})
    with pytest.raises(InvalidRequestError, match="name of a channel"):
        await put(saver, "1", {}, versions={name: 1})
    assert await ids(saver, at()) == []


@pytest.mark.parametrize("deltas", [{}, {"d": (1, 1)}])
async def test_a_parent_that_came_and_went_is_not_built_upon(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
    deltas: dict[str, Any],
) -> None:
    """Nothing was there when it was looked; then the parent; then nothing again."""
    text = "x" * 3000
    assert await saver.aget_tuple(at()) is None
    await put(other, "1", {"text": text})
    store_checkpoint = Writer._store_checkpoint

    async def overtaken(self: Writer, *what: Any) -> Any:
        monkeypatch.setattr(Writer, "_store_checkpoint", store_checkpoint)
        await other.adelete_thread("t")
        return await store_checkpoint(self, *what)

    monkeypatch.setattr(Writer, "_store_checkpoint", overtaken)
    child = put(
        saver,
        "2",
        {"text": text},
        parent="1",
        versions={"text": "1"},
        new={},
        counters_since_delta_snapshot=deltas,
    )
    if deltas:
        with pytest.raises(DocumentNotFoundError):
            await child
        assert await ids(other, at()) == []
    else:
        await child
        assert await values(other) == {"text": text}
