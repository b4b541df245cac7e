"""The text of a cursor: the sort key of the last document of a page. Pure.

It holds the key itself, not a position and not only an id, so that it survives
inserts and the deletion of that document. A digest over the query that it belongs to
and the key refuses any other use; it guards against mistakes, not against forgery,
which would gain nothing: a cursor only says where to begin.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import isfinite
from typing import Any, Final, TypeAlias

from jskv_saver.document.model import Path
from jskv_saver.document.names import is_text, parse_id
from jskv_saver.document.ordering import Kind, OrderKey
from jskv_saver.document.values import MAX_INT, MIN_INT
from jskv_saver.errors import InvalidRequestError

Anchor: TypeAlias = Path | tuple[OrderKey, Path] | tuple[int]
"""Of the id order, of a field's, of the version's."""

_DIGEST_BYTES: Final = 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def encode_path(binding: bytes, path: Path) -> str:
    """The cursor after an id, in the order of ids."""
    return _seal(binding, list(path))


def encode_version(binding: bytes, version: int) -> str:
    """The cursor after a version, in the order of versions."""
    return _seal(binding, version)


def encode_field(binding: bytes, key: OrderKey, path: Path) -> str:
    """The cursor after a field's value and an id, in the order of that field."""
    kind, value = key
    if kind == Kind.DATETIME:
        value = (value - _EPOCH) // _MICROSECOND
    elif kind == Kind.BYTES:
        value = value.hex()
    return _seal(binding, [int(kind), value, list(path)])


def decode_path(binding: bytes, cursor: str) -> Path:
    """Read what `encode_path` wrote for the same binding."""
    return _path(_open(binding, cursor))


def decode_version(binding: bytes, cursor: str) -> int:
    """Read what `encode_version` wrote for the same binding."""
    version = _open(binding, cursor)
    if type(version) is not int:
        raise _foreign()
    return version


def decode_field(binding: bytes, cursor: str) -> tuple[OrderKey, Path]:
    """Read what `encode_field` wrote for the same binding."""
    content = _open(binding, cursor)
    if type(content) is not list or len(content) != 3 or type(content[0]) is not int:
        raise _foreign()
    kind, value, path = content
    try:
        return (kind, _value(Kind(kind), value)), _path(path)
    except (ValueError, OverflowError) as exc:
        raise _foreign() from exc


def _value(kind: Kind, value: Any) -> Any:
    if kind is Kind.BOOL and type(value) is bool:
        return value
    if kind is Kind.NUMBER and type(value) is int and MIN_INT <= value <= MAX_INT:
        return value
    if kind is Kind.NUMBER and type(value) is float and isfinite(value):
        return value
    if kind is Kind.STRING and type(value) is str and is_text(value):
        return value
    if kind is Kind.DATETIME and type(value) is int:
        return _EPOCH + value * _MICROSECOND
    if kind is Kind.BYTES and type(value) is str:
        return bytes.fromhex(value)
    if kind in (Kind.NULL, Kind.LIST, Kind.DICT) and value == 0:
        return 0
    raise ValueError(kind)


def _path(content: Any) -> Path:
    if type(content) is not list:
        raise _foreign()
    return parse_id(tuple(content))


def _seal(binding: bytes, content: Any) -> str:
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return urlsafe_b64encode(_digest(binding, body) + body).decode()


def _open(binding: bytes, cursor: str) -> Any:
    if type(cursor) is not str:
        raise InvalidRequestError(f"the cursor is a {type(cursor).__name__}, not a str")
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii"))
    except ValueError as exc:
        raise _foreign() from exc
    digest, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    # The decoder skips foreign characters; comparing back leaves one spelling.
    if urlsafe_b64encode(raw).decode() != cursor or digest != _digest(binding, body):
        raise _foreign()
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise _foreign() from exc


def _digest(binding: bytes, body: bytes) -> bytes:
    return sha256(b"%d:%b%b" % (len(binding), binding, body)).digest()[:_DIGEST_BYTES]


def _foreign() -> InvalidRequestError:
    return InvalidRequestError(
        "the cursor is not of this query: namespace, collection, predicates, order "
        "and within must be those of the page that gave it, and its text unchanged"
    )
