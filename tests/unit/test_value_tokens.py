"""Tokens of values in index keys: in order, and told apart."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.key_texts import LEGAL, SCALARS

from jskv_saver.adapters.jetstream.values import is_ordered, kind_of_token, value_token
from jskv_saver.errors import InvalidRequestError

KINDS = ("null", "bool", "number", "string", "datetime", "bytes", "list", "dict")


def rank(value: Any) -> tuple[int, Any]:
    """The order of queries, by exact value."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, Fraction(value)
    for number, kind in enumerate((str, datetime, bytes), 3):
        if isinstance(value, kind):
            return number, value
    raise AssertionError(value)


class TestValueTokens:
    @given(SCALARS, SCALARS)
    @example(2**53, 2**53 + 1)
    @example(2.0**53, 2**53 + 1)
    @example(-(2**63), -(2.0**63))
    @example(1, True)
    @example(0.0, -0.0)
    @example(5e-324, 0)
    def test_order_and_equality_are_those_of_queries(
        self, left: Any, right: Any
    ) -> None:
        one, two = value_token(left), value_token(right)
        assert LEGAL(one)
        assert (one == two) == (rank(left) == rank(right))
        assert (one < two) == (rank(left) < rank(right))
        assert KINDS.index(kind_of_token(one)) == rank(left)[0]
        assert is_ordered(one)

    def test_the_same_instant_in_another_zone(self) -> None:
        here = datetime(2024, 5, 1, 12, tzinfo=UTC)
        there = here.astimezone(timezone(timedelta(hours=5)))
        assert value_token(here) == value_token(there)
        early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
        assert value_token(early) < value_token(datetime(1, 1, 1, tzinfo=UTC))

    @given(st.lists(SCALARS, max_size=4), st.lists(SCALARS, max_size=4))
    def test_containers_are_equal_by_structure(
        self, left: list[Any], right: list[Any]
    ) -> None:
        same = [rank(v) for v in left] == [rank(v) for v in right]
        assert (value_token(left) == value_token(right)) == same
        assert (value_token([left]) == value_token([right])) == same
        assert (value_token({"a": left}) == value_token({"a": right})) == same
        assert not is_ordered(value_token(left))

    def test_containers_apart(self) -> None:
        values: list[Any] = [[], {}, [[]], [{}], [None], {"": None}, {"a": 1, "b": 2}]
        values += [{"a": {"b": 2}}, ["a", "b"], ["a.b"], [1], [True], ["1"], [b"1"]]
        assert len({value_token(value) for value in values}) == len(values)
        assert value_token({"a": 1, "b": 2}) == value_token({"b": 2.0, "a": 1})

    def test_long_values_are_good_for_equality(self) -> None:
        values: list[Any] = ["x" * 513, "x" * 514, b"x" * 257, b"x" * 258]
        tokens = [value_token(value) for value in values]
        assert len(set(tokens)) == 4
        assert not any(map(is_ordered, tokens))
        assert all(len(token) < 60 for token in tokens)
        assert value_token("x" * 513) == tokens[0]
        kinds = [kind_of_token(token) for token in tokens]
        assert kinds == ["string"] * 2 + ["bytes"] * 2

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), 2**64, -(2**65), object(), {1}, 1j]
    )
    def test_what_cannot_be_stored_is_refused(self, value: Any) -> None:
        with pytest.raises(InvalidRequestError):
            value_token(value)

    def test_every_float_around_a_power_of_two(self) -> None:
        bits = [
            struct.unpack(">q", struct.pack(">d", 2.0**e))[0] for e in (-1074, 0, 53)
        ]
        floats = [
            struct.unpack(">d", struct.pack(">q", bit + step))[0]
            for bit in bits
            for step in (0, 1, 2)
        ]
        numbers = sorted([*floats, *(-f for f in floats), 0, 1, 2**53 + 1])
        tokens = [value_token(number) for number in numbers]
        assert tokens == sorted(tokens)
