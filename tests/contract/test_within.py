from __future__ import annotations

from typing import Any

import pytest
from tests.contract.hostile import NOT_SEGMENTS, SEGMENTS

from jskv_saver import ANY
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import DocumentId
from jskv_saver.errors import InvalidRequestError

PATHS: list[DocumentId] = [
    "a",
    ("a", ""),
    ("a", "", "x"),
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "b", "c", "d"),
    ("a", "b2"),
    ("a*", "b"),
    ("ab", "b"),
    "b",
    ("b", "b"),
    ("b", "b", "c"),
]
CASES: list[tuple[Any, list[DocumentId]]] = [
    (None, PATHS),
    ((), PATHS),
    ([()], PATHS),
    (["a", ()], PATHS),
    ([], []),
    ("missing", []),
    ("a", PATHS[1:7]),
    (("a",), PATHS[1:7]),
    (("a", ""), [("a", "", "x")]),
    (("a", "b"), [("a", "b", "c"), ("a", "b", "c", "d")]),
    (("a", "b", "c"), [("a", "b", "c", "d")]),
    (("a", "b", "c", "d"), []),
    ("a*", [("a*", "b")]),
    ("*", []),
    (">", []),
    (["a", "b"], [*PATHS[1:7], *PATHS[10:]]),
    (["a", ("a", "b"), "a", ("a",)], PATHS[1:7]),
    ([("a", "b"), "b"], [*PATHS[4:6], *PATHS[10:]]),
    ((ANY,), [*PATHS[1:9], *PATHS[10:]]),
    ((ANY, "b"), [*PATHS[4:6], PATHS[11]]),
    (("a", ANY), [PATHS[2], *PATHS[4:6]]),
    (("a", ANY, ANY), [PATHS[5]]),
    ((ANY, ANY, "c"), [PATHS[5]]),
    ([(ANY, "b"), ("a", ANY)], [PATHS[2], *PATHS[4:6], PATHS[11]]),
    ([(ANY, ""), (ANY, "b", "c")], [PATHS[2], PATHS[5]]),
    ([(ANY,), "a"], [*PATHS[1:9], *PATHS[10:]]),
]


@pytest.fixture
async def tree(docs: BoundDocuments) -> BoundDocuments:
    await docs.put_many(
        [("notes", path, {"n": n}, None) for n, path in enumerate(PATHS)]
    )
    await docs.put("tags", ("a", "b", "z"), {"n": 0})
    return docs


async def test_within_selects_what_is_strictly_below(tree: BoundDocuments) -> None:
    for within, expected in CASES:
        assert list(await tree.ids("notes", within=within)) == expected, within
        page = await tree.find("notes", within=within)
        assert [document.id for document in page.items] == expected, within
        assert await tree.count("notes", within=within) == len(expected), within
        seen = [d.id async for d in tree.iterate("notes", within=within, page_size=2)]
        assert seen == expected, within


async def test_within_goes_with_predicates_and_order(tree: BoundDocuments) -> None:
    page = await tree.find(
        "notes",
        [("n", "gte", 3), ("n", "ne", 4)],
        order_by=("n", "desc"),
        within=["a", (ANY, "b")],
        limit=3,
    )
    assert [document.data["n"] for document in page.items] == [11, 6, 5]
    page = await tree.find(
        "notes",
        [("n", "ne", 4), ("n", "gte", 3)],
        order_by=("n", "desc"),
        within=[(ANY, "b"), "a"],
        limit=3,
        cursor=page.cursor,
    )
    assert [document.data["n"] for document in page.items] == [3]
    assert page.cursor is None


async def test_newest_within_a_prefix(tree: BoundDocuments) -> None:
    page = await tree.find(
        "notes", order_by=("@version", "desc"), limit=1, within=("a", "b")
    )
    assert [document.id for document in page.items] == [("a", "b", "c", "d")]
    await tree.put("notes", ("a", "b", "c"), {"n": 100})
    await tree.put("notes", ("b", "z"), {})
    page = await tree.find(
        "notes", order_by=("@version", "desc"), limit=1, within=("a", "b")
    )
    assert [document.id for document in page.items] == [("a", "b", "c")]
    page = await tree.find(
        "notes", order_by=("@version", "desc"), limit=1, within=(ANY, "b")
    )
    assert [document.id for document in page.items] == [("a", "b", "c")]
    nothing = await tree.find(
        "notes", order_by=("@version", "desc"), limit=1, within="missing"
    )
    assert nothing.items == ()
    assert nothing.cursor is None


async def test_hostile_prefixes_select_only_their_own(docs: BoundDocuments) -> None:
    for segment in SEGMENTS:
        await docs.put("notes", (segment, "leaf"), {})
    for segment in SEGMENTS:
        assert list(await docs.ids("notes", within=segment)) == [(segment, "leaf")]
        page = await docs.find("notes", within=[segment])
        assert [document.id for document in page.items] == [(segment, "leaf")]


@pytest.mark.parametrize(
    "within",
    [1, b"a", ANY, {"a"}, ("a", 1), [1], ["a", None], [["a"]], ("a",) * 33],
    ids=repr,
)
async def test_what_is_not_a_prefix_is_refused(
    docs: BoundDocuments, within: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", within=within)
    with pytest.raises(InvalidRequestError):
        await docs.count("notes", within=within)
    with pytest.raises(InvalidRequestError):
        await docs.ids("notes", within=within)
    with pytest.raises(InvalidRequestError):
        await docs.delete_many("notes", within=within)
    with pytest.raises(InvalidRequestError):
        await anext(docs.iterate("notes", within=within))


async def test_illegal_segments_are_refused_in_prefixes(docs: BoundDocuments) -> None:
    for segment in NOT_SEGMENTS:
        with pytest.raises(InvalidRequestError):
            await docs.ids("notes", within=("a", segment))
        with pytest.raises(InvalidRequestError):
            await docs.delete("notes", ("a", segment), subtree=True)
        with pytest.raises(InvalidRequestError):
            await docs.put("notes", "a", {}, if_latest=(("a", segment), 0))


async def test_get_many_takes_any_segments(tree: BoundDocuments) -> None:
    cases: list[tuple[Any, list[DocumentId]]] = [
        ((ANY,), ["a", "b"]),
        (("a", ANY), [("a", ""), ("a", "b"), ("a", "b2")]),
        ((ANY, "b"), [("a", "b"), ("a*", "b"), ("ab", "b"), ("b", "b")]),
        ((ANY, "b", ANY), [("a", "b", "c"), ("b", "b", "c")]),
        ((ANY, ANY, ANY, ANY), [("a", "b", "c", "d")]),
        (("*", ANY), []),
        ((ANY, ">"), []),
    ]
    for pattern, expected in cases:
        found = await tree.get_many([("notes", pattern)])
        assert sorted(found, key=repr) == sorted(
            (("notes", id) for id in expected), key=repr
        ), pattern
        assert all(key == ("notes", found[key].id) for key in found)
