from __future__ import annotations

from typing import Any

import pytest
from tests.contract.hostile import NOT_SEGMENTS, SEGMENTS

from jskv_saver import ANY
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import DocumentId, id_of, path_of
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError


async def test_any_text_may_be_an_id(docs: BoundDocuments) -> None:
    for segment in SEGMENTS:
        stored = await docs.put("notes", segment, {"id": segment}, if_version=0)
        assert stored.id == segment
    for segment in SEGMENTS:
        assert (await docs.get("notes", segment)).data == {"id": segment}
    assert list(await docs.ids("notes")) == sorted(SEGMENTS)
    found = await docs.find("notes")
    assert [document.id for document in found.items] == sorted(SEGMENTS)


async def test_any_text_may_be_a_segment_at_any_place(docs: BoundDocuments) -> None:
    paths = [
        path
        for segment in SEGMENTS
        for path in ((segment, "end"), ("start", segment), ("s", segment, "e"))
    ]
    await docs.put_many([("notes", path, {"path": list(path)}, 0) for path in paths])
    for path in paths:
        assert (await docs.get("notes", path)).data == {"path": list(path)}
    assert list(await docs.ids("notes")) == sorted(paths)


async def test_deleting_a_hostile_id_leaves_all_others(docs: BoundDocuments) -> None:
    left = {*SEGMENTS}
    await docs.put_many([("notes", segment, {}, None) for segment in SEGMENTS])
    for segment in ("*", ">", "a.>", "", ".", "x" * 4096):
        await docs.delete("notes", segment)
        left.remove(segment)
        assert {*await docs.ids("notes")} == left


async def test_paths_never_meet(docs: BoundDocuments) -> None:
    paths: list[DocumentId] = [
        "",
        ("", ""),
        ("", "", ""),
        "a",
        ("a", ""),
        ("", "a"),
        ("a", "", ""),
        ("a", "b"),
        "a.b",
        "a/b",
        ("a", "b", "c"),
        ("a.b", "c"),
        ("a", "b.c"),
        ("ab",)[0],
    ]
    for position, path in enumerate(paths):
        await docs.put("notes", path, {"n": position}, if_version=0)
    for position, path in enumerate(paths):
        assert (await docs.get("notes", path)).data == {"n": position}
    assert await docs.count("notes") == len(paths)


async def test_a_string_is_a_path_of_one_segment(docs: BoundDocuments) -> None:
    stored = await docs.put("notes", ("a",), {"n": 1})
    assert stored.id == "a"
    assert await docs.get("notes", "a") == stored
    assert await docs.get("notes", ("a",)) == stored
    assert (await docs.put("notes", ("a", "b"), {})).id == ("a", "b")


async def test_a_path_has_up_to_32_segments(docs: BoundDocuments) -> None:
    deep = tuple(str(level) for level in range(32))
    await docs.put("notes", deep, {})
    assert list(await docs.ids("notes")) == [deep]
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", (*deep, "32"), {})


async def test_case_and_normal_forms_are_kept_apart(docs: BoundDocuments) -> None:
    for id in ("Note", "note", "\u00e9", "e\u0301"):
        await docs.put("notes", id, {"id": id}, if_version=0)
    assert await docs.count("notes") == 4


@pytest.mark.parametrize(
    "id", [(), ("a", ANY), ANY, ["a"], None, 1, b"a", {"a"}, *NOT_SEGMENTS], ids=repr
)
async def test_what_is_not_an_id_is_refused(docs: BoundDocuments, id: Any) -> None:
    for bad in (id, ("a", id)):
        with pytest.raises(InvalidRequestError):
            await docs.put("notes", bad, {})
        with pytest.raises(InvalidRequestError):
            await docs.get("notes", bad)
        with pytest.raises(InvalidRequestError):
            await docs.delete("notes", bad)
        with pytest.raises(InvalidRequestError):
            await docs.put_many([("notes", "fine", {}, None), ("notes", bad, {}, None)])
    assert await docs.count("notes") == 0


async def test_ids_are_sorted_by_segments(docs: BoundDocuments) -> None:
    paths: list[tuple[str, ...]] = [
        ("a",),
        ("a", ""),
        ("a", "b"),
        ("a", "b", "c"),
        ("a", "\u00e9"),
        ("a!",),
        ("b",),
        ("B",),
        ("\uffff",),
        ("\U00010000",),
    ]
    for path in reversed(paths):
        await docs.put("notes", path, {})
    assert [path_of(id) for id in await docs.ids("notes")] == sorted(paths)
    assert [d.id for d in (await docs.find("notes")).items] == list(
        map(id_of, sorted(paths))
    )


async def test_ids_of_an_empty_collection(docs: BoundDocuments) -> None:
    assert list(await docs.ids("notes")) == []
    assert list(await docs.ids("notes", within="a")) == []


async def test_missing_documents_are_named(docs: BoundDocuments) -> None:
    await docs.put("notes", ("a", "b"), {})
    for id in ("a", ("a", "b", "c"), ("a", ""), "b"):
        with pytest.raises(DocumentNotFoundError) as caught:
            await docs.get("notes", id)
        assert caught.value.collection == "notes"
        assert caught.value.id == id
        assert isinstance(caught.value, LookupError)
