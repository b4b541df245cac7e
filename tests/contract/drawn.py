"""What the machine draws: few ids and values, so that they meet; hostile ones too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from jskv_saver import ANY, CollectionSpec, FieldSpec

NOBODY = 10**15
"""A version that no document has, on either side."""

COLLECTIONS = ("notes", "a.b", "cp", "wr")
SEGMENTS = ("", "a", "b", "a.b", "*", ">", "é", "x" * 600, "x" * 599 + "y")
FIELDS = ("a", "b", "c.d")
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
VALUES: tuple[Any, ...] = (
    None,
    False,
    True,
    0,
    1,
    1.0,
    -1.5,
    2**53,
    2**53 + 1,
    float(2**53),
    "",
    "x",
    "é.*>",
    "y" * 600,
    b"",
    b"\xff",
    MOMENT,
    MOMENT.astimezone(timezone(timedelta(hours=2))),
    [],
    [1, "x"],
    {"k": 1},
)

FEW: tuple[Any, ...] = (None, True, 1, 1.0, 2, "x")
"""Values that meet each other often."""

collections = st.sampled_from((*COLLECTIONS, *COLLECTIONS[:2]))
declarable = st.sampled_from(COLLECTIONS[:2])
seldom = st.sampled_from([True] + [False] * 9)
segments = st.sampled_from(SEGMENTS)
ids = st.lists(segments, min_size=1, max_size=3).map(tuple)
FEW_IDS = (("a",), ("b",), ("a", "a"), ("a", "b"), ("é", ">"))
few_ids = st.sampled_from(FEW_IDS)
prefixes = st.lists(st.one_of(st.just(ANY), segments), min_size=1, max_size=2).map(
    tuple
)
values = st.one_of(st.sampled_from(FEW), st.sampled_from(FEW), st.sampled_from(VALUES))
data = st.one_of(
    st.fixed_dictionaries({"a": values, "b": values}),
    st.fixed_dictionaries({"a": st.sampled_from([1, 2, 3]), "c.d": values}),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=3),
)
handles = st.integers(0, 1)
fields = st.builds(
    FieldSpec,
    st.sampled_from(FIELDS),
    st.sampled_from(["json", "json", "int", "string"]),
    indexed=st.booleans(),
    unique=st.sampled_from([False, False, True]),
)
specs = st.builds(
    lambda name, declared, together: CollectionSpec(
        name, tuple(declared), (("a", "b"),) if together else ()
    ),
    declarable,
    st.lists(fields, max_size=3, unique_by=lambda field: field.name),
    st.booleans(),
)
predicates = st.one_of(
    st.tuples(st.sampled_from(FIELDS), st.sampled_from(["eq", "ne"]), values),
    st.tuples(
        st.sampled_from(FIELDS),
        st.sampled_from(["lt", "lte", "gt", "gte"]),
        st.sampled_from([v for v in VALUES if v is not None and type(v) is not list]),
    ),
    st.tuples(
        st.sampled_from(FIELDS),
        st.sampled_from(["in", "nin"]),
        st.one_of(st.lists(values, max_size=3), st.just(list(VALUES))),
    ),
    st.tuples(st.sampled_from(FIELDS), st.just("exists"), st.booleans()),
    st.tuples(st.sampled_from(FIELDS), st.just("contains"), values),
)
wheres = st.lists(predicates, max_size=2)
withins = st.one_of(
    st.none(), prefixes, st.lists(prefixes, max_size=2), st.just([("a",), ("é",)])
)
orders = st.one_of(
    st.none(),
    st.tuples(st.sampled_from((*FIELDS, "@version")), st.sampled_from(["asc", "desc"])),
)
versions = st.one_of(st.integers(0, 3), st.integers(0, 40), st.just(NOBODY))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]
