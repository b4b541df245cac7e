from __future__ import annotations

from typing import Any

import pytest
from tests.contract.hostile import SEGMENTS

from jskv_saver import ANY
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import DocumentId
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    DocumentNotFoundError,
    InvalidRequestError,
    VersionConflictError,
)

PATHS: list[DocumentId] = [
    "a",
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "c"),
    ("a2", "b"),
    ("b", "b"),
    ("b", "b", "c"),
]


@pytest.fixture
async def tree(docs: BoundDocuments) -> BoundDocuments:
    for collection in ("notes", "tags"):
        await docs.put_many([(collection, path, {}, None) for path in PATHS])
    return docs


async def test_delete_is_idempotent_without_a_version(docs: BoundDocuments) -> None:
    await docs.put("notes", "a", {})
    await docs.delete("notes", "a")
    await docs.delete("notes", "a")
    await docs.delete("notes", "never there")
    with pytest.raises(DocumentNotFoundError):
        await docs.get("notes", "a")
    assert await docs.count("notes") == 0
    assert list(await docs.ids("notes")) == []
    assert (await docs.find("notes")).items == ()
    assert await docs.get_many([("notes", "a")]) == {}


async def test_delete_removes_one_document_and_nothing_below(
    tree: BoundDocuments,
) -> None:
    await tree.delete("notes", "a")
    await tree.delete("notes", ("b", "b"))
    assert list(await tree.ids("notes")) == [*PATHS[1:5], PATHS[6]]
    assert list(await tree.ids("tags")) == PATHS


async def test_delete_with_the_stored_version_removes(docs: BoundDocuments) -> None:
    stored = await docs.put("notes", "a", {})
    await docs.delete("notes", "a", if_version=stored.version)
    assert await docs.count("notes") == 0


async def test_delete_with_another_version_is_a_conflict(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", "a", {})
    second = await docs.put("notes", "a", {})
    for version in (0, 1 + second.version, first.version, 2**63 - 1):
        with pytest.raises(VersionConflictError) as caught:
            await docs.delete("notes", "a", if_version=version)
        assert caught.value.expected == version
        assert caught.value.actual in (None, second.version)
    assert await docs.get("notes", "a") == second


async def test_delete_of_an_absent_document_with_a_version_is_a_conflict(
    docs: BoundDocuments,
) -> None:
    stored = await docs.put("notes", "a", {})
    await docs.delete("notes", "a")
    for version in (0, 1, stored.version):
        with pytest.raises(VersionConflictError) as caught:
            await docs.delete("notes", "a", if_version=version)
        assert caught.value.expected == version
        assert caught.value.actual in (None, 0)


async def test_below_removes_only_smaller_versions(docs: BoundDocuments) -> None:
    stored = await docs.put("notes", "a", {})
    await docs.delete("notes", "a", below=0)
    await docs.delete("notes", "a", below=stored.version)
    assert await docs.get("notes", "a") == stored
    await docs.delete("notes", "a", below=stored.version + 1)
    assert await docs.count("notes") == 0
    await docs.delete("notes", "a", below=stored.version + 1)


async def test_subtree_removes_what_is_strictly_below(tree: BoundDocuments) -> None:
    await tree.delete("notes", "a", subtree=True)
    assert list(await tree.ids("notes")) == ["a", *PATHS[4:]]
    assert list(await tree.ids("tags")) == PATHS
    await tree.delete("notes", ("b", "b"), subtree=True)
    assert list(await tree.ids("notes")) == ["a", *PATHS[4:6]]
    await tree.delete("notes", "a", subtree=True)
    await tree.delete("notes", "never there", subtree=True)
    assert list(await tree.ids("notes")) == ["a", *PATHS[4:6]]


async def test_subtree_of_several_collections(tree: BoundDocuments) -> None:
    await tree.put("cp", ("a", "b"), {})
    await tree.put("wr", ("a", "b"), {})
    await tree.delete(("notes", "tags", "cp", "notes"), ("a",), subtree=True)
    for collection in ("notes", "tags"):
        assert list(await tree.ids(collection)) == ["a", *PATHS[4:]]
    assert list(await tree.ids("cp")) == []
    assert list(await tree.ids("wr")) == [("a", "b")]
    await tree.delete(["notes"], "b", subtree=True)
    assert list(await tree.ids("notes")) == ["a", ("a2", "b")]


async def test_subtree_with_any_segments(tree: BoundDocuments) -> None:
    await tree.delete("notes", (ANY, "b"), subtree=True)
    assert list(await tree.ids("notes")) == [
        "a",
        ("a", "b"),
        ("a", "c"),
        ("a2", "b"),
        ("b", "b"),
    ]
    await tree.delete("notes", ("a", ANY), subtree=True)
    assert len(await tree.ids("notes")) == 5
    await tree.delete(["notes", "tags"], (ANY,), subtree=True)
    assert list(await tree.ids("notes")) == ["a"]
    assert list(await tree.ids("tags")) == ["a"]


async def test_subtree_stays_in_its_namespace(
    store: DocumentStore, tree: BoundDocuments
) -> None:
    await store.put("other", "cp", ("a", "b"), {})
    await tree.put("cp", ("a", "b"), {})
    await tree.delete("cp", (ANY,), subtree=True)
    assert await store.count("other", "cp") == 1
    assert await tree.count("cp") == 0
    assert await tree.count("notes") == len(PATHS)


async def test_subtree_below_a_version_spares_what_is_younger(
    docs: BoundDocuments,
) -> None:
    await docs.put("bl", ("t", "a"), {})
    second = await docs.put("bl", ("t", "b"), {})
    await docs.put("bl", ("t", "c"), {})
    await docs.put("bl", ("t", "a"), {})
    await docs.put("bl", ("t", "d", "e"), {})
    await docs.delete("bl", "t", subtree=True, below=second.version)
    assert len(await docs.ids("bl")) == 4
    await docs.delete("bl", "t", subtree=True, below=second.version + 1)
    assert list(await docs.ids("bl")) == [("t", "a"), ("t", "c"), ("t", "d", "e")]
    await docs.delete("bl", "t", subtree=True, below=2**63 - 1)
    assert list(await docs.ids("bl")) == []


async def test_hostile_prefixes_remove_only_their_own(docs: BoundDocuments) -> None:
    left = {(segment, "leaf") for segment in SEGMENTS}
    await docs.put_many([("notes", path, {}, None) for path in left])
    for segment in SEGMENTS:
        await docs.delete("notes", segment, subtree=True)
        left.remove((segment, "leaf"))
        assert {*await docs.ids("notes")} == left


async def test_versions_after_a_subtree_delete_are_greater(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", ("a", "b"), {})
    await docs.delete("notes", "a", subtree=True)
    second = await docs.put("notes", ("a", "b"), {}, if_version=0)
    assert second.version > first.version


@pytest.mark.parametrize(
    ("collection", "id", "options"),
    [
        ("notes", (), {"subtree": True}),
        ("notes", (), {}),
        ("notes", ("a", ANY), {}),
        ("notes", (ANY,), {"below": 100}),
        ("notes", ("a", ANY), {"if_version": 1}),
        ("notes", "a", {"subtree": True, "if_version": 1}),
        ("notes", "a", {"below": 1, "if_version": 1}),
        ("notes", "a", {"subtree": 1}),
        ("notes", "a", {"subtree": None}),
        (["notes"], "a", {}),
        (("notes", "tags"), "a", {"below": 100}),
        ([], "a", {"subtree": True}),
        ((), "a", {"subtree": True}),
        (["notes", ""], "a", {"subtree": True}),
        (["notes", None], "a", {"subtree": True}),
        ({"notes"}, "a", {"subtree": True}),
        (None, "a", {}),
        ("ix", "a", {"subtree": True}),
        ("notes", ["a"], {"subtree": True}),
        ("notes", None, {"subtree": True}),
        ("notes", ("a",) * 33, {"subtree": True}),
    ],
    ids=repr,
)
async def test_what_does_not_go_together_is_refused(
    tree: BoundDocuments, collection: Any, id: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError):
        await tree.delete(collection, id, **options)
    assert list(await tree.ids("notes")) == PATHS
    assert list(await tree.ids("tags")) == PATHS
