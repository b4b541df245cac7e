from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies

from jskv_saver import CollectionSpec, FieldSpec
from jskv_saver.document.declarations import (
    check_declared,
    merge,
    mistyped_field,
    parse_spec,
    unique_constraints,
    unique_key,
)
from jskv_saver.document.ordering import equality_key
from jskv_saver.document.values import check_data
from jskv_saver.errors import IncompatibleDeclarationError, InvalidRequestError

A = FieldSpec("a", "int")
B = FieldSpec("b", "string", indexed=True)
C = FieldSpec("c", "json", unique=True)

# The type of a field goes with its name, so that any two of them merge.
TYPES: dict[str, Any] = {"a": "int", "b": "string", "c": "json", "d": "float"}
fields = st.sampled_from(sorted(TYPES)).flatmap(
    lambda name: st.builds(
        FieldSpec, st.just(name), st.just(TYPES[name]), st.booleans(), st.booleans()
    )
)
groups = st.lists(
    st.lists(st.sampled_from(sorted(TYPES)), min_size=2, unique=True).map(tuple),
    max_size=3,
).map(tuple)
base = CollectionSpec("x", tuple(FieldSpec(name, TYPES[name]) for name in TYPES))
specs = st.builds(
    CollectionSpec,
    st.just("x"),
    st.lists(fields, unique_by=lambda field: field.name).map(tuple),
    groups,
).map(parse_spec)


def test_the_canonical_form_is_sorted_and_free_of_repetition() -> None:
    spec = parse_spec(
        CollectionSpec("x", (C, A, B), (("c", "a"), ("b", "a"), ("a", "c"), ("a", "b")))
    )
    assert spec.fields == (A, B, C)
    assert spec.unique_together == (("a", "b"), ("a", "c"))
    assert parse_spec(spec) == spec


def test_lists_are_taken_for_tuples() -> None:
    spec: Any = CollectionSpec
    given_ = spec("x", [A, B], [["b", "a"]])
    assert parse_spec(given_) == CollectionSpec("x", (A, B), (("a", "b"),))


def test_merging_adds() -> None:
    stored = merge(None, parse_spec(CollectionSpec("x", (A, B))))
    added = parse_spec(
        CollectionSpec("x", (FieldSpec("a", "int", unique=True), C), (("a", "b"),))
    )
    assert merge(stored, added) == CollectionSpec(
        "x", (FieldSpec("a", "int", unique=True), B, C), (("a", "b"),)
    )


@given(specs, specs)
def test_merging_is_idempotent_and_takes_nothing_away(
    first: CollectionSpec, second: CollectionSpec
) -> None:
    one = merge(base, first)
    both = merge(one, second)
    assert merge(both, second) == both
    assert merge(both, first) == both
    assert parse_spec(both) == both
    assert both == merge(merge(base, second), first)
    assert set(unique_constraints(one)) <= set(unique_constraints(both))


def test_a_changed_type_is_incompatible() -> None:
    stored = merge(None, CollectionSpec("x", (A,)))
    with pytest.raises(IncompatibleDeclarationError) as caught:
        merge(stored, CollectionSpec("x", (FieldSpec("a", "float"),)))
    assert caught.value.collection == "x"
    assert caught.value.document is None


def test_a_group_may_name_fields_declared_earlier_only() -> None:
    stored = merge(None, CollectionSpec("x", (A,)))
    added = parse_spec(CollectionSpec("x", (B,), (("a", "b"),)))
    assert merge(stored, added).unique_together == (("a", "b"),)
    with pytest.raises(InvalidRequestError, match="'a'"):
        merge(None, added)


def test_constraints_are_of_fields_and_groups() -> None:
    spec = CollectionSpec("x", (A, B, C), (("a", "b"),))
    assert unique_constraints(spec) == (("a", "b"), ("c",))
    assert unique_constraints(CollectionSpec("x", (A, B))) == ()


@pytest.mark.parametrize("data", [{}, {"a": None, "b": 1}, {"b": 1}, {"a": 1}])
def test_null_and_missing_are_exempt(data: dict[str, Any]) -> None:
    assert unique_key(("a", "b"), data) is None


@given(strategies.values, strategies.values)
def test_keys_are_equal_for_equal_values(left: Any, right: Any) -> None:
    one, other = check_data({"f": left}), check_data({"f": right})
    if one["f"] is None or other["f"] is None:
        return
    same = equality_key(one["f"]) == equality_key(other["f"])
    assert (unique_key(("f",), one) == unique_key(("f",), other)) is same


def test_keys_of_groups_keep_their_components_apart() -> None:
    keys = {
        unique_key(("a", "b"), {"a": a, "b": b})
        for a, b in [("x", "yz"), ("xy", "z"), (1, 2), (2, 1), (True, 2), (["x"], "y")]
    }
    assert len(keys) == 6
    assert None not in keys


@pytest.mark.parametrize(
    ("type_", "value", "fits"),
    [
        ("int", 1, True),
        ("int", True, False),
        ("int", 1.0, False),
        ("float", 1, True),
        ("float", False, False),
        ("bool", 1, False),
        ("string", b"", False),
        ("datetime", "2024-01-01", False),
        ("json", b"", True),
        ("json", {"a": [1]}, True),
        ("bytes", None, True),
    ],
)
def test_declared_types(type_: Any, value: Any, fits: bool) -> None:
    spec = CollectionSpec("x", (FieldSpec("f", type_),))
    assert (mistyped_field(spec, {"f": value}) is None) is fits
    assert mistyped_field(spec, {"g": value}) is None
    if fits:
        check_declared(spec, {"f": value})
    else:
        with pytest.raises(InvalidRequestError, match=f"'f' is declared as {type_}"):
            check_declared(spec, {"f": value})
