"""Legal names, paths and values of all shapes, for hypothesis."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from jskv_saver import ANY

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)

segments = st.sampled_from(["", "a", "b", "a.b", "*", ">", "é", "\U00010000"]) | texts
paths = st.lists(segments, min_size=1, max_size=5).map(tuple)

# Few segments, so that prefixes meet paths.
near_segments = st.sampled_from(["", "a", "b", "*"])
near_paths = st.lists(near_segments, min_size=1, max_size=4).map(tuple)
near_patterns = st.lists(near_segments | st.just(ANY), max_size=4).map(tuple)

numbers = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 1, 1.0, 2**53, 2**53 + 1, float(2**53), float(2**63)])
)
datetimes = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])
).filter(lambda moment: 1 < moment.year < 9999)
scalars: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | numbers | texts | st.binary(max_size=8) | datetimes
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=12,
)
data: st.SearchStrategy[dict[str, Any]] = st.dictionaries(texts, values, max_size=5)
