from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import DocumentId, Order
from jskv_saver.errors import InvalidRequestError

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
MISSING = object()

# Ascending; equal ones share a list and are told apart by id.
ORDERED: list[list[Any]] = [
    [None, MISSING, None],
    [False],
    [True],
    [-(2**63)],
    [-1.5],
    [0, -0.0],
    [1, 1.0],
    [2**53, float(2**53)],
    [2**53 + 1],
    [2**63 - 1],
    [float(2**63)],
    [""],
    ["1"],
    ["B"],
    ["a"],
    ["ab"],
    ["a\u0301"],
    ["é"],
    ["\uffff"],
    ["\U00010000"],
    [NOW - timedelta(days=9999)],
    [NOW],
    [NOW + timedelta(microseconds=1)],
    [b""],
    [b"\x00"],
    [b"a"],
    [b"a\x00"],
    [[], [1, 2], [1], ["z"], []],
    [{}, {"a": 1}, {"b": 0}],
]


async def _walk(
    docs: BoundDocuments, order_by: Order | None, limit: int, where: Any = ()
) -> list[DocumentId]:
    ids: list[DocumentId] = []
    cursor = None
    while True:
        page = await docs.find(
            "notes", where, order_by=order_by, limit=limit, cursor=cursor
        )
        ids += [document.id for document in page.items]
        if page.cursor is None:
            return ids
        assert len(page.items) == limit
        cursor = page.cursor


@pytest.fixture
async def ordered(docs: BoundDocuments) -> list[DocumentId]:
    """Documents of all kinds under `v`; their ids in ascending order."""
    # Ids run against the order of the values, ties excepted.
    flat: list[tuple[DocumentId, dict[str, Any]]] = [
        ((f"{99 - group}", f"{place}"), {} if value is MISSING else {"v": value})
        for group, values in enumerate(ORDERED)
        for place, value in enumerate(values)
    ]
    await docs.put_many([("notes", id, data, None) for id, data in reversed(flat)])
    return [id for id, _ in flat]


async def test_values_of_all_kinds_have_one_order(
    docs: BoundDocuments, ordered: list[DocumentId]
) -> None:
    for limit in (1000, 7, 1):
        assert await _walk(docs, ("v", "asc"), limit) == ordered
        assert await _walk(docs, ("v", "desc"), limit) == ordered[::-1]


async def test_order_by_a_field_that_nobody_has_is_by_id(
    docs: BoundDocuments, ordered: list[DocumentId]
) -> None:
    ids = list(await docs.ids("notes"))
    assert await _walk(docs, ("never", "asc"), 5) == ids
    assert await _walk(docs, ("never", "desc"), 5) == ids[::-1]
    assert await _walk(docs, None, 5) == ids


async def test_order_goes_with_predicates(
    docs: BoundDocuments, ordered: list[DocumentId]
) -> None:
    numbers = await _walk(docs, ("v", "asc"), 3, [("v", "gte", 1), ("v", "lt", 2**60)])
    assert numbers == ordered[9:14]
    strings = await _walk(docs, ("v", "desc"), 2, [("v", "gt", "a")])
    assert strings == ordered[20:25][::-1]


async def test_a_literal_dot_in_the_order(docs: BoundDocuments) -> None:
    await docs.put("notes", "a", {"x.y": 2})
    await docs.put("notes", "b", {"x.y": 1})
    assert await _walk(docs, ("x.y", "asc"), 1) == ["b", "a"]


async def test_order_by_version_is_by_time_of_writing(docs: BoundDocuments) -> None:
    for id in ("b", ("c", "d"), "a"):
        await docs.put("notes", id, {"@version": "literal"})
    assert await _walk(docs, ("@version", "desc"), 2) == ["a", ("c", "d"), "b"]
    assert await _walk(docs, ("@version", "asc"), 1) == ["b", ("c", "d"), "a"]
    await docs.put("notes", "b", {})
    assert await _walk(docs, ("@version", "desc"), 1) == ["b", "a", ("c", "d")]
    newest = await docs.find("notes", order_by=("@version", "desc"), limit=1)
    assert [document.id for document in newest.items] == ["b"]
    assert newest.cursor is not None
    await docs.delete("notes", "b")
    newest = await docs.find("notes", order_by=("@version", "desc"), limit=1)
    assert [document.id for document in newest.items] == ["a"]


async def test_newest_that_matches(docs: BoundDocuments) -> None:
    for n in range(6):
        await docs.put("notes", f"{n}", {"even": n % 2 == 0})
    page = await docs.find(
        "notes", [("even", "eq", True)], order_by=("@version", "desc"), limit=2
    )
    assert [document.id for document in page.items] == ["4", "2"]


async def test_newest_of_an_empty_collection(docs: BoundDocuments) -> None:
    page = await docs.find("notes", order_by=("@version", "desc"), limit=1)
    assert page.items == ()
    assert page.cursor is None


@pytest.mark.parametrize(
    "order_by",
    [
        "v",
        ("v",),
        ("v", "up"),
        ("v", "ASC"),
        ("v", None),
        ("v", ["asc"]),
        ("v", "asc", "asc"),
        (None, "asc"),
        (1, "asc"),
        ("v\0", "asc"),
        ("\ud800", "asc"),
        ("@version", "newest"),
        {"v": "asc"},
        [("v", "asc")],
        1,
        (),
    ],
    ids=ascii,
)
async def test_what_is_not_an_order_is_refused(
    docs: BoundDocuments, order_by: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", order_by=order_by)
    with pytest.raises(InvalidRequestError):
        await anext(docs.iterate("notes", order_by=order_by))
