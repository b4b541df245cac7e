"""How values compare: kinds, equality, order, and one byte form of equal values. Pure.

Numbers compare by exact value, which is what Python does between int and float; what
it does not do is keep `True` apart from 1. All functions take checked values only
(see `values`): finite numbers, datetimes in UTC, at most 32 levels deep.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from enum import IntEnum
from typing import Any, Final, TypeAlias

OrderKey: TypeAlias = tuple[int, Any]
"""A kind, and what orders the values of that kind; 0 where nothing does."""


class Kind(IntEnum):
    """The kinds of values, in their order."""

    NULL = 0
    BOOL = 1
    NUMBER = 2
    STRING = 3
    DATETIME = 4
    BYTES = 5
    LIST = 6
    DICT = 7


_KINDS: Final[dict[type, Kind]] = {
    type(None): Kind.NULL,
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    datetime: Kind.DATETIME,
    bytes: Kind.BYTES,
    list: Kind.LIST,
    dict: Kind.DICT,
}
_UNORDERED: Final = frozenset({Kind.NULL, Kind.LIST, Kind.DICT})


def kind_of(value: Any) -> Kind:
    """The value's kind; int and float are one."""
    return _KINDS[type(value)]


def order_key(value: Any) -> OrderKey:
    """A key that sorts any values; those of one kind without order are equal."""
    kind = _KINDS[type(value)]
    return (kind, 0) if kind in _UNORDERED else (kind, value)


def equality_key(value: Any) -> Hashable:
    """A key that is equal, and hashes equal, for exactly the equal values."""
    kind = _KINDS[type(value)]
    if kind is Kind.LIST:
        return kind, tuple(map(equality_key, value))
    if kind is Kind.DICT:
        items = ((key, equality_key(item)) for key, item in value.items())
        return kind, frozenset(items)
    return kind, value


def canonical_bytes(value: Any) -> bytes:
    """Bytes that are the same for exactly the equal values, in every process."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    kind = _KINDS[type(value)]
    if kind is Kind.LIST:
        parts.append(b"l%d:" % len(value))
        for item in value:
            _write(item, parts)
    elif kind is Kind.DICT:
        parts.append(b"d%d:" % len(value))
        for key in sorted(value):
            _write(key, parts)
            _write(value[key], parts)
    elif kind is Kind.STRING:
        text = value.encode()
        parts.append(b"s%d:%b" % (len(text), text))
    elif kind is Kind.BYTES:
        parts.append(b"b%d:%b" % (len(value), value))
    elif kind is Kind.NUMBER:
        parts.append(b"n%b;" % _number(value).encode())
    elif kind is Kind.DATETIME:
        parts.append(b"t%b;" % value.isoformat().encode())
    else:
        parts.append({None: b"z", False: b"f", True: b"y"}[value])


def _number(value: int | float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return value.hex()
    return str(int(value))
