from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from tests import strategies

from jskv_saver.document import values
from jskv_saver.errors import InvalidRequestError


def _shares(left: Any, right: Any) -> bool:
    """Whether the two have a mutable part in common."""
    if isinstance(left, dict):
        return left is right or any(_shares(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return left is right or any(map(_shares, left, right))
    return False


@given(strategies.data)
def test_legal_data_is_copied_as_it_is(data: dict[str, Any]) -> None:
    checked = values.check_data(data)
    assert checked == data
    assert repr(values.check_data(checked)) == repr(checked)
    assert list(checked) == list(data)
    assert not _shares(checked, data)


@given(strategies.data)
def test_a_copy_of_checked_data_shares_nothing(data: dict[str, Any]) -> None:
    checked = values.check_data(data)
    copy = values.copy_data(checked)
    assert repr(copy) == repr(checked)
    assert not _shares(copy, checked)


@given(strategies.values)
def test_one_value_is_checked_as_in_a_field(value: Any) -> None:
    assert values.check_value(value, "v") == values.check_data({"f": value})["f"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": {"b": [0, {"c": object()}]}}, "data.a.b[1].c is a object"),
        ({"a b": 2**63}, "data['a b'] is outside"),
        ({"a.b": {"": {1}}}, "data['a.b'][''] is a set"),
        ({"a": [[float("nan")]]}, "data.a[0][0] is nan"),
        ({"é": "\ud800"}, "data.é has a NUL or an unpaired surrogate"),
        ({"a": {"b\0": 1}}, r"data.a has a key with a NUL"),
        ({"a": [{"\ud800": 1}]}, r"data.a[0] has a key with a NUL or an unpaired"),
        ({1: 1}, "data has a key that is a int"),
        ({"a": datetime(2024, 1, 1)}, "data.a is a naive datetime"),
        ({"x" * 100: None, "y" * 100: 2**63}, "data." + "y" * 100),
        ({"-" * 1000: 2**63}, "...] is outside"),
    ],
)
def test_messages_name_the_path(data: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        values.check_data(data)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
    str(caught.value).encode()


def test_depth_counts_containers_with_data_itself() -> None:
    deepest: Any = []
    for _ in range(30):
        deepest = [deepest]
    values.check_data({"a": deepest})
    values.check_value(deepest, "v")
    for too_deep in ([deepest], {"b": deepest}):
        with pytest.raises(InvalidRequestError, match="32 levels"):
            values.check_data({"a": too_deep})
        with pytest.raises(InvalidRequestError, match="32 levels"):
            values.check_value(too_deep, "v")


def test_a_value_inside_itself_is_refused_at_once() -> None:
    wide: list[Any] = []
    wide.extend([wide] * 50)
    with pytest.raises(InvalidRequestError, match="32 levels"):
        values.check_data({"a": wide})


def test_a_value_used_twice_is_copied_twice() -> None:
    shared = [1]
    checked = values.check_data({"a": shared, "b": [shared]})
    checked["a"].append(2)
    assert checked == {"a": [1, 2], "b": [[1]]}


def test_datetimes_are_normalised() -> None:
    zone = timezone(timedelta(hours=-3))
    given_ = datetime(2024, 1, 1, 23, 0, 0, 1, tzinfo=zone, fold=1)
    checked = values.check_data({"a": given_})["a"]
    assert checked == given_
    assert checked.tzinfo is UTC
    assert checked.fold == 0
    assert checked.hour == 2
    other_utc = timezone(timedelta(0), "Z")
    checked = values.check_value(datetime(2024, 1, 1, tzinfo=other_utc, fold=1), "v")
    assert checked.tzinfo is UTC
    assert checked.fold == 0


def test_an_outlandish_moment_is_refused() -> None:
    for moment in (
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ):
        with pytest.raises(InvalidRequestError, match="years 1 to 9999"):
            values.check_value(moment, "v")


@given(strategies.data, strategies.texts, strategies.values)
def test_size_grows_with_what_is_added(
    data: dict[str, Any], key: str, value: Any
) -> None:
    checked = values.check_data(data)
    size = values.estimated_size(checked)
    assert size == values.estimated_size(checked)
    more = values.check_data({**data, key: [data.get(key), value]})
    assert values.estimated_size(more) > size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, 1),
        (True, 1),
        (23, 1),
        (24, 2),
        (-(2**63), 9),
        (1.5, 9),
        ("é", 3),
        (b"x" * 300, 303),
        (b"x" * 70_000, 70_005),
        ([1, [2]], 4),
        ({"a": 1}, 4),
    ],
)
def test_sizes_are_those_of_cbor(value: Any, size: int) -> None:
    assert values.estimated_size({"k": value}) == 1 + 2 + size
