"""Which hints a document has, and which index serves a query."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jskv_saver import CollectionSpec, Document, FieldSpec
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Entry
from jskv_saver.adapters.jetstream.catalog import (
    Catalog,
    State,
    born,
    decode_catalog,
    encode_catalog,
)
from jskv_saver.adapters.jetstream.indexes import (
    Hints,
    Index,
    backfill,
    hints_of,
    indexes_of,
    plan_hints,
    plan_lookup,
)
from jskv_saver.adapters.jetstream.records import (
    Origin,
    Record,
    decode_record,
    encode_record,
)
from jskv_saver.document.predicates import parse_where

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SPEC = CollectionSpec(
    "people",
    (
        FieldSpec("city", "string", indexed=True),
        FieldSpec("email", "string", unique=True),
        FieldSpec("seat", "int"),
        FieldSpec("team", "string"),
    ),
    (("seat", "team"),),
)
INDEXES = indexes_of(SPEC)
BIRTH = "born"
ADA = {"city": "Ulm", "email": "a", "seat": 1, "team": "x"}


def _plan(data: dict[str, Any], replaced: Record | None, *, carry: bool) -> Hints:
    return plan_hints(
        "owner", "people", ("ada",), INDEXES, BIRTH, data, replaced, carry=carry
    )


def _record(data: dict[str, Any], origin: Origin, version: int = 7) -> Record:
    document = Document("ada", data, version, NOW, NOW)
    key = keys.document_key("owner", "people", ("ada",))
    return Record(key, ("ada",), document, origin)


def test_each_constraint_and_each_indexed_field_is_an_index() -> None:
    assert indexes_of(CollectionSpec("none", (FieldSpec("a", "int"),))) == ()
    assert INDEXES == (
        Index(("city",), unique=False),
        Index(("email",), unique=True),
        Index(("seat", "team"), unique=True),
    )
    both = FieldSpec("a", "int", indexed=True, unique=True)
    assert indexes_of(CollectionSpec("one", (both,))) == (Index(("a",), unique=True),)


def test_a_new_document_gets_a_hint_for_each_value() -> None:
    plan = _plan(ADA, None, carry=True)
    assert len(plan.new) == 3
    assert plan.stale == ()
    for key, width in zip(plan.new, (1, 1, 2), strict=True):
        _, document = keys.split_index_key(key, width=width, tail=1)
        assert document == keys.document_key("owner", "people", ("ada",))


def test_a_missing_value_has_no_hint_and_null_has_one_alone_only() -> None:
    assert _plan({}, None, carry=True).new == ()
    plan = _plan({"city": None, "seat": 1, "team": None}, None, carry=True)
    assert list(plan.origin.hints) == ["city"]


def test_an_unchanged_value_keeps_its_hint_only_where_the_put_proves_it() -> None:
    first = _plan(ADA, None, carry=True)
    stored = _record(ADA, first.origin)
    changed = {**ADA, "city": "Bonn"}

    proven = _plan(changed, stored, carry=True)
    assert len(proven.new) == 1
    assert proven.stale == (first.new[0],)
    assert proven.origin.hints["email"] == first.origin.hints["email"]

    unproven = _plan(changed, stored, carry=False)
    assert len(unproven.new) == 3
    assert unproven.stale == first.new
    assert not set(unproven.new) & set(first.new)


def test_hints_of_a_collection_dropped_before_are_not_kept() -> None:
    stored = _record(ADA, Origin("another", _plan(ADA, None, carry=True).origin.hints))
    plan = _plan(ADA, stored, carry=True)
    assert len(plan.new) == 3
    assert set(backfill("owner", "people", stored, INDEXES, BIRTH)) <= set(plan.stale)


def test_no_two_plans_share_a_hint() -> None:
    plans = [_plan(ADA, None, carry=True).new for _ in range(100)]
    assert len({key for plan in plans for key in plan}) == 300


def test_a_document_without_hints_gets_those_of_its_version() -> None:
    old, new = (_record(ADA, Origin(), version) for version in (7, 8))
    given = backfill("owner", "people", old, INDEXES, BIRTH)
    assert len(given) == 3
    assert given == hints_of("owner", "people", old, INDEXES, BIRTH)
    assert not set(given) & set(backfill("owner", "people", new, INDEXES, BIRTH))
    # They are not kept by the next version: they may not be there yet.
    plan = _plan(ADA, old, carry=True)
    assert len(plan.new) == 3
    assert set(plan.stale) == set(given)


@pytest.mark.parametrize(
    ("where", "fields", "exact"),
    [
        ([], None, 0),
        ([("seat", "eq", 1)], None, 0),
        ([("city", "ne", "Ulm")], None, 0),
        ([("city", "exists", True)], None, 0),
        ([("city", "eq", "Ulm")], ("city",), 1),
        ([("city", "eq", "Ulm"), ("email", "eq", "a")], ("email",), 1),
        ([("city", "gt", "A"), ("city", "eq", "Ulm")], ("city",), 1),
        ([("city", "gt", "A"), ("email", "in", ["a", "b"])], ("email",), 0),
        ([("email", "in", ["a", "a"])], ("email",), 1),
        ([("city", "lt", "Z")], ("city",), 0),
        ([("seat", "eq", 1), ("team", "eq", "x")], ("seat", "team"), 2),
        ([("seat", "eq", 1), ("team", "eq", None)], None, 0),
        ([("email", "eq", None)], ("email",), 1),
    ],
)
def test_the_index_that_leaves_the_fewest_documents_serves(
    where: Any, fields: tuple[str, ...] | None, exact: int
) -> None:
    lookup = plan_lookup(INDEXES, parse_where(where))
    if fields is None:
        assert lookup is None
    else:
        assert lookup is not None
        assert lookup.index.fields == fields
        assert len(lookup.exact) == exact


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ([("n", "lt", 2)], [-1, 0, 1.5, 2]),
        ([("n", "gte", 1.5)], [1.5, 2, 3]),
        ([("n", "gt", 0), ("n", "lte", 2)], [0, 1.5, 2]),
        ([("n", "in", [0, 3])], [0, 3]),
        ([("n", "gt", "a" * 2000)], ["b", "x" * 2000]),
    ],
)
def test_a_range_keeps_all_that_may_match(where: Any, kept: list[Any]) -> None:
    spec = CollectionSpec("c", (FieldSpec("n", "json", indexed=True),))
    (index,) = indexes_of(spec)
    lookup = plan_lookup((index,), parse_where(where))
    assert lookup is not None
    values = [None, True, -1, 0, 1.5, 2, 3, "b", "x" * 2000, b"b", [1], {"a": 1}]
    assert [
        value
        for value in values
        if (tokens := index.tokens({"n": value})) and lookup.keeps(tokens[0])
    ] == kept


@pytest.mark.parametrize("path", [("ada",), ("x" * 3000, "é")])
def test_a_record_comes_back_with_its_origin(path: tuple[str, ...]) -> None:
    origin = _plan(ADA, None, carry=True).origin
    key = keys.document_key("owner", "people", path)
    value = encode_record(ADA, NOW, NOW, path, origin)
    record = decode_record(Entry(key, value, 5))
    assert (record.path, record.version, record.origin) == (path, 5, origin)
    assert record.document.data == ADA


def test_a_catalog_comes_back() -> None:
    catalog = born(CollectionSpec("people"))
    building = catalog.building(SPEC)
    assert building.previous == catalog.spec
    assert building.usable == ()
    entry = Entry("people./owner.c", encode_catalog(building), 9)
    assert decode_catalog(entry) == building.at(9)
    assert building.built() == Catalog(SPEC, catalog.birth, indexes=INDEXES)
    assert building.built().usable == INDEXES
    assert building.restored() == catalog
    assert building.building(SPEC).previous == catalog.spec
    assert catalog.dropped().state is State.DROPPED
    assert born(SPEC).birth != born(SPEC).birth
