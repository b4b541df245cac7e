"""Texts around every border of the rules of keys."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from hypothesis import strategies as st

# Characters around every border of the escape rules, and one of each UTF-8 length.
BORDERS = "\x00\x2c-./09:@AZ[^_`ayz{|\x7f\x80\xe9\u07ff\u0800\uffff\U00010000\U0010ffff"
TEXTS = st.one_of(
    st.text(alphabet=BORDERS, max_size=12),
    st.text(alphabet="-_z", max_size=12),
    st.text(max_size=300),
)
UUIDS = st.uuids().map(str)
LEGAL = re.compile(r"[-/_=a-zA-Z0-9]+").fullmatch
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2.0**53, -(2.0**53), 2.0**63, 5e-324, -5e-324, 0.0, -0.0, 1.5]),
    st.text(alphabet=BORDERS, max_size=6),
    st.datetimes(timezones=st.just(UTC)),
    st.binary(max_size=8),
)
