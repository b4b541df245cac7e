"""Document ⇄ the bytes of a KV value; pure.

    format version               1 byte
    CRC-32 of all that follows   4 bytes
    created, updated             8 bytes each, microseconds since 1970
    flags                        1 byte
    data                         CBOR (RFC 8949)

With flag 1 the key does not hold the whole id, and the CBOR is `[path, data]`. With
flag 2 it is preceded by its length in 4 bytes and followed by the large bytes fields as
they are, and `data` is `[the other fields, [[name, length], …]]`: CBOR libraries copy
bytes several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

import cbor2

from jskv_saver.document.model import Path
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

FORMAT: Final = 1
"""The format version that is written, and the newest that is read."""

_PREFIX: Final = Struct(">BI")
_HEADER: Final = Struct(">qqB")

OVERHEAD: Final = _PREFIX.size + _HEADER.size
"""Bytes of a value besides the encoded data (and the path where it is kept)."""

_LENGTH: Final = Struct(">I")
_WITH_PATH: Final = 1
_WITH_TAILS: Final = 2
_LARGE: Final = 16 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DEPTH: Final = 40
_SCALARS: Final = frozenset({str, int, float, bool, bytes, type(None)})


class Body(NamedTuple):
    """A decoded value.

    Attributes:
        data: The document's fields.
        created: When the id was first put (UTC).
        updated: When this version was put (UTC).
        path: The id's segments where the key does not hold them, else None.
    """

    data: dict[str, Any]
    created: datetime
    updated: datetime
    path: Path | None


def encode(
    data: Mapping[str, Any],
    created: datetime,
    updated: datetime,
    path: Path | None = None,
) -> bytes:
    """The stored bytes of a document.

    Args:
        data: Fields with values that the document contract allows, already checked;
            datetimes in UTC.
        created: When the id was first put.
        updated: When this version is put.
        path: The id, if `keys.needs_path` says that the key does not hold it.
    """
    large = [
        (name, value)
        for name, value in data.items()
        if type(value) is bytes and len(value) >= _LARGE
    ]
    tails: list[bytes] = []
    content: Any = data
    if large:
        tails = [value for _, value in large]
        names = {name for name, _ in large}
        rest = {name: value for name, value in data.items() if name not in names}
        content = [rest, [[name, len(value)] for name, value in large]]
    encoded = cbor2.dumps(content if path is None else [path, content])
    last = (updated - _EPOCH) // _MICROSECOND
    header = _HEADER.pack(
        last if created is updated else (created - _EPOCH) // _MICROSECOND,
        last,
        (0 if path is None else _WITH_PATH) | (_WITH_TAILS if large else 0),
    )
    pieces = [header, encoded]
    if large:
        pieces = [header, _LENGTH.pack(len(encoded)), encoded, *tails]
    checksum = 0
    for piece in pieces:
        checksum = crc32(piece, checksum)
    return b"".join((_PREFIX.pack(FORMAT, checksum), *pieces))


def decode(key: str, value: bytes) -> Body:
    """The document in stored bytes.

    Raises:
        CorruptDocumentError: Not what `encode` gave, naming the key.
        UnsupportedFormatError: A newer release wrote it.
    """
    if len(value) <= OVERHEAD:
        raise _corrupt(key, f"{len(value)} bytes are too few")
    version, checksum = _PREFIX.unpack_from(value)
    if version != FORMAT:
        raise _unsupported(key, version)
    if crc32(memoryview(value)[_PREFIX.size :]) != checksum:
        raise _corrupt(key, "the checksum does not fit")
    created, updated, flags = _HEADER.unpack_from(value, _PREFIX.size)
    if flags & ~(_WITH_PATH | _WITH_TAILS):
        raise _corrupt(key, f"unknown flags {flags:#x}")
    begin, end = OVERHEAD, len(value)
    if flags & _WITH_TAILS:
        begin += _LENGTH.size
        end = begin + int.from_bytes(value[OVERHEAD:begin], "big")
    data = _load(key, value[begin:end])
    path = None
    if flags & _WITH_PATH:
        path, data = _split(key, data)
    if flags & _WITH_TAILS:
        data = _with_tails(key, data, value, end)
    if type(data) is not dict:
        raise _corrupt(key, "the data is no map")
    for name, field in data.items():
        if type(name) is not str or type(field) not in _SCALARS:
            _check(key, data)
            break
    try:
        first = _EPOCH + timedelta(microseconds=created)
        last = first
        if updated != created:
            last = _EPOCH + timedelta(microseconds=updated)
        return Body(data, first, last, path)
    except OverflowError as exc:
        raise _corrupt(key, "a time is out of range") from exc


def _with_tails(key: str, content: Any, value: bytes, begin: int) -> Any:
    """The fields in CBOR and those behind it, which must fill the rest exactly."""
    if not _is_pair(content):
        raise _corrupt(key, "the table of large fields is missing")
    data, table = content
    if type(data) is not dict or type(table) is not list:
        raise _corrupt(key, "the table of large fields is damaged")
    for row in table:
        if not _is_pair(row) or type(row[0]) is not str or type(row[1]) is not int:
            raise _corrupt(key, "the table of large fields is damaged")
        name, length = row
        if name in data or not 0 <= length <= len(value) - begin:
            raise _corrupt(key, "a large field is damaged")
        data[name] = value[begin : begin + length]
        begin += length
    if begin != len(value):
        raise _corrupt(key, "bytes follow the data")
    return data


def _is_pair(value: Any) -> bool:
    return type(value) is list and len(value) == 2


def _load(key: str, encoded: bytes) -> Any:
    source = BytesIO(encoded)
    try:
        data = cbor2.load(
            source, max_depth=_DEPTH, allow_indefinite=False, allow_duplicate_keys=False
        )
    except (cbor2.CBORError, ValueError) as exc:
        raise _corrupt(key, "the CBOR is damaged") from exc
    if source.read(1):
        raise _corrupt(key, "bytes follow the data")
    return data


def _split(key: str, data: Any) -> tuple[Path, Any]:
    if _is_pair(data) and type(data[0]) is list:
        segments, data = data
        if segments and all(type(segment) is str for segment in segments):
            return tuple(segments), data
    raise _corrupt(key, "the id is missing")


def _check(key: str, data: dict[str, Any]) -> None:
    """Only what the contract allows, and datetimes in UTC; without recursion."""
    stack: list[Any] = [data]
    while stack:
        container = stack.pop()
        if type(container) is dict:
            for name in container:
                if type(name) is not str:
                    raise _corrupt(key, "a field's name is no text")
            items: Any = container.items()
        else:
            items = enumerate(container)
        for at, item in items:
            kind = type(item)
            if kind in _SCALARS:
                continue
            if kind is dict or kind is list:
                stack.append(item)
            elif kind is datetime and item.tzinfo is not None:
                if item.tzinfo is not UTC:
                    container[at] = item.astimezone(UTC)
            else:
                raise _corrupt(key, f"a value of type {kind.__name__}")


def _corrupt(key: str, reason: str) -> CorruptDocumentError:
    return CorruptDocumentError(f"{key!r} is corrupt: {reason}", key=key)


def _unsupported(key: str, version: int) -> UnsupportedFormatError | Exception:
    # Nothing was ever written as 0: an older format cannot be meant.
    if version < FORMAT:
        return _corrupt(key, f"format {version} does not exist")
    return UnsupportedFormatError(
        f"{key!r} has format {version}, this release reads up to {FORMAT}: upgrade it",
        key=key,
        version=version,
    )
