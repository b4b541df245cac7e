from __future__ import annotations

import math
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from tests.contract.hostile import SEGMENTS

from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import InvalidRequestError


class _Color(IntEnum):
    RED = 1


class _Name(StrEnum):
    RED = "red"


class _Str(str):
    __slots__ = ()


class _Dict(dict[str, Any]):
    pass


class _Moment(datetime):
    pass


class _NoOffset(tzinfo):
    def utcoffset(self, when: datetime | None) -> None:
        return None

    def dst(self, when: datetime | None) -> None:
        return None

    def tzname(self, when: datetime | None) -> str:
        return "nowhere"


def _nested(levels: int, leaf: Any = 1) -> Any:
    for level in range(levels):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


def _same(left: Any, right: Any) -> bool:
    """Equal, and of the same types throughout; signed zeros too."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _same(left[key], right[key]) for key in left
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float):
        return bool(left == right) and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    23,
    24,
    255,
    256,
    65535,
    65536,
    2**31,
    2**32,
    2**53,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    float(2**53),
    float(2**63),
    5e-324,
    1.7976931348623157e308,
    "",
    "text",
    "line\r\nbreak\ttab\x01\x7f",
    "é",
    "e\u0301",
    "😀\ufeff\u202e\uffff\U0010ffff",
    "2024-01-01T00:00:00+00:00",
    b"",
    b"\x00\xff\r\n",
    b"text",
    datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    [],
    [[]],
    [None, True, 1, 1.0, "a", b"a", {}],
    {},
    {"": {"": ""}},
    {"b": 1, "a": 2, "é.*>": [{"x": b""}]},
]


async def test_what_was_put_is_what_is_read(docs: BoundDocuments) -> None:
    data = {f"value {position}": value for position, value in enumerate(VALUES)}
    stored = await docs.put("notes", "a", data)
    assert _same(stored.data, data)
    assert _same((await docs.get("notes", "a")).data, data)
    assert _same((await docs.find("notes")).items[0].data, data)
    many = await docs.get_many([("notes", "a")])
    assert _same(many["notes", "a"].data, data)


async def test_any_text_may_be_a_key(docs: BoundDocuments) -> None:
    data = {segment: {segment: segment} for segment in SEGMENTS}
    await docs.put("notes", "a", data)
    assert (await docs.get("notes", "a")).data == data


async def test_datetimes_come_back_in_utc(docs: BoundDocuments) -> None:
    east = timezone(timedelta(hours=5, minutes=30, seconds=15, microseconds=7))
    given = datetime(2024, 3, 1, 2, 0, 0, 123456, tzinfo=east, fold=1)
    await docs.put("notes", "a", {"at": given, "deep": [{"at": given}]})
    folded = datetime(2024, 3, 1, tzinfo=UTC, fold=1)
    stored = await docs.put("notes", "folded", {"at": folded})
    assert stored.data["at"].fold == 0
    data = (await docs.get("notes", "a")).data
    for read in (data["at"], data["deep"][0]["at"]):
        assert read == given
        assert read.tzinfo is UTC
        assert read.fold == 0
        assert read.microsecond == 123449


async def test_values_nest_32_levels_deep(docs: BoundDocuments) -> None:
    data = {"a": _nested(31)}
    await docs.put("notes", "a", data)
    assert (await docs.get("notes", "a")).data == data
    found = await docs.find("notes", [("a", "eq", _nested(31))])
    assert len(found.items) == 1
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", "a", {"a": _nested(32)})
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", [("a", "eq", _nested(32))])


async def test_hopeless_nesting_is_refused_and_harms_nothing(
    docs: BoundDocuments,
) -> None:
    endless: list[Any] = []
    endless.extend([endless, endless])
    around: dict[str, Any] = {}
    around["self"] = around
    for value in (_nested(100_000), endless, around):
        with pytest.raises(InvalidRequestError):
            await docs.put("notes", "a", {"a": value})
        with pytest.raises(InvalidRequestError):
            await docs.find("notes", [("a", "in", [value])])
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", "a", around)
    assert await docs.count("notes") == 0


NOT_VALUES: list[Any] = [
    2**63,
    -(2**63) - 1,
    10**5000,
    math.nan,
    math.inf,
    -math.inf,
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, tzinfo=_NoOffset()),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=1))),
    _Moment(2024, 1, 1, tzinfo=UTC),
    date(2024, 1, 1),
    timedelta(1),
    "a\0b",
    "\ud800",
    "\udfff x",
    _Color.RED,
    _Name.RED,
    _Str("a"),
    _Dict(),
    OrderedDict(),
    MappingProxyType({}),
    (1, 2),
    {1, 2},
    frozenset(),
    bytearray(b"a"),
    memoryview(b"a"),
    Decimal(1),
    Fraction(1),
    UUID(int=0),
    1j,
    object(),
    int,
    range(3),
    iter([]),
    {"a\0": 1},
    {"\ud800": 1},
    {1: 1},
    {None: 1},
    {b"a": 1},
    {_Str("a"): 1},
    {True: 1},
]


@pytest.mark.parametrize("position", range(len(NOT_VALUES)))
async def test_any_other_value_is_refused_naming_its_path(
    docs: BoundDocuments, position: int
) -> None:
    value = NOT_VALUES[position]
    for data, path in (
        ({"fine": 1, "bad": value}, "data.bad"),
        ({"a": [0, 1, 2, {"b": value}]}, "data.a[3].b"),
        ({"a": {"b c": [value]}}, "data.a['b c'][0]"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            await docs.put("notes", "a", data)
        assert path in str(caught.value)
        str(caught.value).encode()
        assert isinstance(caught.value, ValueError)
    with pytest.raises(InvalidRequestError):
        await docs.find("notes", [("a", "eq", value)])
    with pytest.raises(InvalidRequestError):
        await docs.put_many([("notes", "a", {}, None), ("notes", "b", {"v": value}, 0)])
    assert await docs.count("notes") == 0


@pytest.mark.parametrize(
    "data",
    [None, [], (), "a", b"a", 1, _Dict(a=1), OrderedDict(a=1), MappingProxyType({})],
    ids=repr,
)
async def test_data_is_a_dict(docs: BoundDocuments, data: Any) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", "a", data)
    with pytest.raises(InvalidRequestError):
        await docs.put_many([("notes", "a", data, None)])
    assert await docs.count("notes") == 0


@pytest.mark.parametrize("key", [1, None, b"a", "a\0", "\udc00", _Str("a"), True])
async def test_keys_are_texts(docs: BoundDocuments, key: Any) -> None:
    with pytest.raises(InvalidRequestError, match="data"):
        await docs.put("notes", "a", {key: 1})
    assert await docs.count("notes") == 0
