"""Stored bytes: what was put is read, and nothing else is taken for it."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jskv_saver.adapters.jetstream import codec
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

NOW = datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
LATER = NOW + timedelta(microseconds=1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.datetimes(timezones=st.just(UTC))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.binary(max_size=100),
    TIMES,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=20,
)
DATA = st.dictionaries(TEXT, VALUES, max_size=30)
PATHS = st.none() | st.lists(TEXT, min_size=1, max_size=4).map(tuple)


def typed(value: Any) -> Any:
    """With types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, datetime):
        return "datetime", value, value.tzinfo
    return type(value).__name__, repr(value)


def sealed(body: bytes, *, flags: int = 0, version: int = codec.FORMAT) -> bytes:
    """A value with a right checksum."""
    rest = (0).to_bytes(8) + (0).to_bytes(8) + bytes([flags]) + body
    return bytes([version]) + zlib.crc32(rest).to_bytes(4) + rest


@given(DATA, TIMES, TIMES, PATHS)
def test_round_trip(
    data: dict[str, Any], created: datetime, updated: datetime, path: Any
) -> None:
    value = codec.encode(data, created, updated, path)
    body = codec.decode("k", value)
    assert typed(body.data) == typed(data)
    assert body[1:] == (created, updated, path)


@pytest.mark.parametrize("size", [0, 255, 16383, 16384, 65536, 200_000])
@pytest.mark.parametrize("path", [None, ("a", "b")])
def test_large_fields(size: int, path: Any) -> None:
    data: dict[str, Any] = {
        "blob": b"a" * size,
        "text": "ä" * size,
        "": b"b" * (size + 1),
        "n": 1,
        "list": [bytes(size)],
    }
    value = codec.encode(data, NOW, LATER, path)
    body = codec.decode("k", value)
    assert typed(body.data) == typed(data)
    assert body[1:] == (NOW, LATER, path)


def test_small_documents_are_plain_cbor() -> None:
    data = {"a": 1, "b": b"x"}
    value = codec.encode(data, NOW, LATER)
    assert value[codec.OVERHEAD :] == cbor2.dumps(data)


@given(st.binary(max_size=3), st.integers(0, 40))
def test_a_damaged_table_of_large_fields_is_found(tail: bytes, length: int) -> None:
    tables: list[Any] = [
        [{}, [["a", length]]],
        [{"a": 1}, [["a", len(tail)]]],
        [{}, [["a", -1]]],
        [{}, [[1, len(tail)]]],
        [{}, [["a"]]],
        [{}, 1],
        [[], []],
        {},
    ]
    for table in tables:
        encoded = cbor2.dumps(table)
        body = len(encoded).to_bytes(4) + encoded + tail
        if table == [{}, [["a", len(tail)]]]:
            assert codec.decode("k", sealed(body, flags=2)).data == {"a": tail}
            continue
        with pytest.raises(CorruptDocumentError):
            codec.decode("k", sealed(body, flags=2))


@pytest.mark.parametrize("body", [b"\0", b"\0\0\0\xff\xa0", b"\xff\xff\xff\xff\xa0"])
def test_a_wrong_length_of_the_cbor_is_found(body: bytes) -> None:
    with pytest.raises(CorruptDocumentError):
        codec.decode("k", sealed(body, flags=2))


def test_the_decoded_data_is_the_callers_own() -> None:
    value = codec.encode({"a": [1]}, NOW, NOW)
    one, two = codec.decode("k", value), codec.decode("k", value)
    one.data["a"].append(2)
    assert two.data == {"a": [1]}


def test_a_foreign_offset_comes_back_in_utc() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=5)))
    body = codec.decode("k", codec.encode({"at": there, "l": [there]}, NOW, NOW))
    assert body.data == {"at": NOW, "l": [NOW]}
    assert body.data["at"].tzinfo is UTC
    assert body.data["l"][0].tzinfo is UTC


@given(DATA, st.data())
def test_every_changed_byte_is_found(data: dict[str, Any], draw: Any) -> None:
    value = bytearray(codec.encode(data, NOW, LATER))
    at = draw.draw(st.integers(0, len(value) - 1))
    value[at] ^= draw.draw(st.integers(1, 255))
    with pytest.raises((CorruptDocumentError, UnsupportedFormatError)) as caught:
        codec.decode("the.key", bytes(value))
    assert caught.value.details["key"] == "the.key"


@given(DATA, st.data())
def test_every_cut_is_found(data: dict[str, Any], draw: Any) -> None:
    value = codec.encode(data, NOW, LATER)
    cut = draw.draw(st.integers(0, len(value) - 1))
    with pytest.raises(CorruptDocumentError):
        codec.decode("k", value[:cut])


@pytest.mark.parametrize("value", [b"", b"\x01", b"hello from nats kv put"])
def test_foreign_values(value: bytes) -> None:
    with pytest.raises((CorruptDocumentError, UnsupportedFormatError)):
        codec.decode("k", value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xa0\x00",  # trailing bytes
        b"\xa2\x61a\x01\x61a\x02",  # a key twice
        b"\xa1\x61b\xa2\x61a\x01\x61a\x02",  # a key twice, further inside
        b"\x81\x01",  # no map
        b"\xa1\x01\x02",  # a name that is no text
        b"\xa1\x61a\xa1\x01\x02",
        b"\xbf\x61a\x01\xff",  # indefinite length
        b"\xa1\x61a\xd8\x40\x41x",  # an unknown tag
        b"\xa1\x61a\xf7",  # undefined
        b"\xa1\x61a\xc0\x61x",  # a time that is none
        b"\xa1\x61a\x5a\xff\xff\xff\xffx",  # bytes longer than the value
        b"\xa1\x61a\x7a\x00\x01\x00\x00x",
        b"\xa1\x61a" + b"\x81" * 60 + b"\x01",  # too deep
        b"\xa1\x62\xff\xff\x01",  # a name that is no UTF-8
        b"\xa2\x61a",
        b"\xa1\x61a\xd9\x01\x02\x81\x01",  # a set
    ],
)
def test_sealed_nonsense_is_found(body: bytes) -> None:
    with pytest.raises(CorruptDocumentError) as caught:
        codec.decode("the.key", sealed(body))
    assert caught.value.key == "the.key"


@pytest.mark.parametrize(
    "body",
    [b"\xa0", b"\x80", b"\x82\x80\xa0", b"\x82\x81\x01\xa0", b"\x82\x81\x61a\x01"],
)
def test_a_missing_id_is_found(body: bytes) -> None:
    with pytest.raises(CorruptDocumentError):
        codec.decode("k", sealed(body, flags=1))


def test_unknown_flags_are_found() -> None:
    with pytest.raises(CorruptDocumentError):
        codec.decode("k", sealed(b"\xa0", flags=4))


@pytest.mark.parametrize("version", [2, 3, 255])
def test_a_newer_format_is_named(version: int) -> None:
    with pytest.raises(UnsupportedFormatError) as caught:
        codec.decode("the.key", sealed(b"\xa0", version=version))
    assert caught.value.details == {"key": "the.key", "version": version}


def test_times_out_of_range_are_found() -> None:
    rest = (2**62).to_bytes(8) + bytes(9) + b"\xa0"
    value = bytes([codec.FORMAT]) + zlib.crc32(rest).to_bytes(4) + rest
    with pytest.raises(CorruptDocumentError):
        codec.decode("k", value)
