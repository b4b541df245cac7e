from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.shown import shown

from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import Predicate
from jskv_saver.errors import InvalidRequestError

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
BIG = 2**53

VALUES: dict[str, Any] = {
    "null": None,
    "false": False,
    "true": True,
    "zero": 0,
    "minus zero": -0.0,
    "one": 1,
    "one float": 1.0,
    "half": 0.5,
    "big": BIG,
    "big float": float(BIG),
    "big+1": BIG + 1,
    "least": -(2**63),
    "greatest": 2**63 - 1,
    "beyond": float(2**63),
    "empty": "",
    "a": "a",
    "b": "b",
    "1": "1",
    "bytes": b"a",
    "no bytes": b"",
    "now": NOW,
    "later": NOW + timedelta(microseconds=1),
    "list": [1, 2],
    "list float": [1.0, 2.0],
    "list bools": [True, 2],
    "list back": [2, 1],
    "list of null": [None],
    "list of list": [[1]],
    "list of dict": [{"k": 1}],
    "empty list": [],
    "dict": {"k": 1, "l": [True]},
    "empty dict": {},
}
PRESENT = set(VALUES)


@pytest.fixture
async def values(docs: BoundDocuments) -> BoundDocuments:
    await docs.put_many([("notes", id, {"v": v}, None) for id, v in VALUES.items()])
    await docs.put("notes", "missing", {"other": 1})
    return docs


async def _ids(docs: BoundDocuments, *where: Any) -> set[Any]:
    page = await docs.find("notes", where, limit=1000)
    ids = {document.id for document in page.items}
    assert await docs.count("notes", where) == len(ids) == len(page.items)
    return ids


EQUAL: list[tuple[Any, set[str]]] = [
    (None, {"null"}),
    (True, {"true"}),
    (False, {"false"}),
    (1, {"one", "one float"}),
    (1.0, {"one", "one float"}),
    (0, {"zero", "minus zero"}),
    (-0.0, {"zero", "minus zero"}),
    (BIG, {"big", "big float"}),
    (float(BIG), {"big", "big float"}),
    (BIG + 1, {"big+1"}),
    (2**63 - 1, {"greatest"}),
    (float(2**63), {"beyond"}),
    (-float(2**63), {"least"}),
    ("", {"empty"}),
    ("a", {"a"}),
    (b"a", {"bytes"}),
    ("1", {"1"}),
    (NOW, {"now"}),
    (NOW.astimezone(timezone(timedelta(hours=9))), {"now"}),
    ([1, 2.0], {"list", "list float"}),
    ([True, 2], {"list bools"}),
    ([], {"empty list"}),
    ({}, {"empty dict"}),
    ({"l": [True], "k": 1.0}, {"dict"}),
    ({"l": [1], "k": 1}, set()),
    ({"k": 1}, set()),
]


async def test_eq_and_ne_are_structural(values: BoundDocuments) -> None:
    for value, expected in EQUAL:
        assert await _ids(values, ("v", "eq", value)) == expected, value
        assert await _ids(values, ("v", "ne", value)) == PRESENT - expected, value
        assert await _ids(values, ("v", "in", [value])) == expected, value
        assert await _ids(values, ("v", "nin", [value])) == PRESENT - expected, value


async def test_comparisons_are_within_one_kind(values: BoundDocuments) -> None:
    ordered: list[list[set[str]]] = [
        [{"false"}, {"true"}],
        [
            {"least"},
            {"zero", "minus zero"},
            {"half"},
            {"one", "one float"},
            {"big", "big float"},
            {"big+1"},
            {"greatest"},
            {"beyond"},
        ],
        [{"empty"}, {"1"}, {"a"}, {"b"}],
        [{"now"}, {"later"}],
        [{"no bytes"}, {"bytes"}],
    ]
    for kind in ordered:
        for position, equal in enumerate(kind):
            less = set().union(*kind[:position])
            more = set().union(*kind[position + 1 :])
            for id in equal:
                value = VALUES[id]
                assert await _ids(values, ("v", "lt", value)) == less, id
                assert await _ids(values, ("v", "lte", value)) == less | equal, id
                assert await _ids(values, ("v", "gt", value)) == more, id
                assert await _ids(values, ("v", "gte", value)) == more | equal, id


@pytest.mark.parametrize("operator", ["lt", "lte", "gt", "gte"])
@pytest.mark.parametrize("value", [None, [], [1], {}, {"k": 1}], ids=repr)
async def test_what_has_no_order_is_not_compared(
    docs: BoundDocuments, operator: Any, value: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", [("v", operator, value)])


async def test_in_and_nin_take_several_values(values: BoundDocuments) -> None:
    given = [None, 1, "a", [1, 2], 1, "absent"]
    expected = {"null", "one", "one float", "a", "list", "list float"}
    assert await _ids(values, ("v", "in", given)) == expected
    assert await _ids(values, ("v", "nin", given)) == PRESENT - expected
    assert await _ids(values, ("v", "in", [])) == set()
    assert await _ids(values, ("v", "nin", [])) == PRESENT


@pytest.mark.parametrize(
    "given", [(1, "a"), {1, "a"}, frozenset({1, "a"}), {1: 0, "a": 0}.keys()], ids=shown
)
async def test_in_takes_any_iterable(values: BoundDocuments, given: Any) -> None:
    assert await _ids(values, ("v", "in", given)) == {"one", "one float", "a"}


async def test_iterables_are_used_up_once(values: BoundDocuments) -> None:
    def where() -> Iterator[Predicate]:
        yield "v", "in", iter([1, "a"])

    page = await values.find("notes", where())
    assert [document.id for document in page.items] == ["a", "one", "one float"]
    seen = values.iterate("notes", where(), page_size=1)
    assert [document.id async for document in seen] == ["a", "one", "one float"]
    assert await values.count("notes", where()) == 3
    assert await values.delete_many("notes", where()) == 3
    assert await values.count("notes", where()) == 0


async def test_in_takes_500_values(values: BoundDocuments) -> None:
    assert await _ids(values, ("v", "in", [1, *range(1000, 1499)])) == {
        "one",
        "one float",
    }
    assert len(await _ids(values, ("v", "nin", range(500)))) == len(PRESENT) - 4
    for operator in ("in", "nin"):
        with pytest.raises(InvalidRequestError):
            await values.find("notes", [("v", operator, list(range(501)))])
        with pytest.raises(InvalidRequestError):
            await values.find("notes", [("v", operator, [1] * 501)])


async def test_contains_looks_for_one_element(values: BoundDocuments) -> None:
    cases: list[tuple[Any, set[str]]] = [
        (1, {"list", "list float", "list back"}),
        (2.0, {"list", "list float", "list back", "list bools"}),
        (True, {"list bools"}),
        (None, {"list of null"}),
        ([1], {"list of list"}),
        ([1.0], {"list of list"}),
        ({"k": 1}, {"list of dict"}),
        ({"k": True}, set()),
        ([1, 2], set()),
        ("a", set()),
        ("k", set()),
        (b"a", set()),
    ]
    for value, expected in cases:
        assert await _ids(values, ("v", "contains", value)) == expected, value


async def test_exists_sees_explicit_null(values: BoundDocuments) -> None:
    assert await _ids(values, ("v", "exists", True)) == PRESENT
    assert await _ids(values, ("v", "exists", False)) == {"missing"}
    assert await _ids(values, ("never", "exists", False)) == {*PRESENT, "missing"}


async def test_all_predicates_must_hold(values: BoundDocuments) -> None:
    both = [("v", "gt", 0), ("v", "lt", 1)]
    assert await _ids(values, *both) == {"half"}
    assert await _ids(values, *both, ("v", "ne", 0.5)) == set()
    assert await _ids(values, ("v", "gt", 0), ("v", "gt", "")) == set()
    assert await _ids(values, ("other", "eq", 1)) == {"missing"}
    assert await _ids(values, ("other", "eq", 1), ("v", "exists", True)) == set()
    assert await _ids(values) == {*PRESENT, "missing"}


async def test_field_names_are_literal(docs: BoundDocuments) -> None:
    await docs.put("notes", "flat", {"a.b": 1, "": 2, "*": 3, "@version": 4, "é": 5})
    await docs.put("notes", "deep", {"a": {"b": 1}})
    for field, value in (("a.b", 1), ("", 2), ("*", 3), ("@version", 4), ("é", 5)):
        assert await _ids(docs, (field, "eq", value)) == {"flat"}
    assert await _ids(docs, ("a", "eq", {"b": 1})) == {"deep"}
    assert await _ids(docs, ("e\u0301", "exists", True)) == set()


def _breaking() -> Iterator[Any]:
    yield ("v", "eq", 1)
    yield ("v", "like", 1)


BAD_WHERE: list[Any] = [
    "v",
    b"v",
    1,
    {"v": 1},
    ("v", "eq", 1),
    [("v", "eq")],
    [("v", "eq", 1, 2)],
    ["veq"],
    [None],
    [{"v", "eq", 1}],
    [(1, "eq", 1)],
    [(None, "eq", 1)],
    [("v\0", "eq", 1)],
    [("\ud800", "eq", 1)],
    [("v", "like", 1)],
    [("v", "EQ", 1)],
    [("v", "", 1)],
    [("v", None, 1)],
    [("v", ["eq"], 1)],
    [("v", "exists", None)],
    [("v", "exists", 1)],
    [("v", "exists", "true")],
    [("v", "in", "abc")],
    [("v", "in", b"abc")],
    [("v", "in", {"a": 1})],
    [("v", "in", None)],
    [("v", "nin", 1)],
    [("v", "in", [object()])],
    [("v", "in", [float("nan")])],
    [("v", "eq", float("nan"))],
    [("v", "lt", float("inf"))],
    [("v", "contains", 2**63)],
    [("v", "eq", "\ud800")],
    [("v", "eq", (1,))],
    [("v", "lt", datetime(2024, 1, 1))],
]


@pytest.mark.parametrize("position", range(len(BAD_WHERE)))
async def test_what_is_not_a_predicate_is_refused(
    docs: BoundDocuments, position: int
) -> None:
    where = BAD_WHERE[position]
    await docs.put("notes", "a", {"v": 1})
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", where)
    with pytest.raises(InvalidRequestError):
        await docs.count("notes", where)
    with pytest.raises(InvalidRequestError):
        await docs.delete_many("notes", where)
    with pytest.raises(InvalidRequestError):
        await anext(docs.iterate("notes", where))
    assert await docs.count("notes") == 1


async def test_one_bad_predicate_among_good_ones_is_refused(
    docs: BoundDocuments,
) -> None:
    await docs.put("notes", "a", {"v": 1})
    with pytest.raises(InvalidRequestError, match=r"where\[1\]"):
        await docs.delete_many("notes", _breaking())
    assert await docs.count("notes") == 1
