"""Field values → one token of an index key, in the order that queries use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jskv_saver._nats.tokens import (
    TOKEN_LIMIT,
    digest_token,
    encode_token,
    is_digested,
)
from jskv_saver.errors import InvalidRequestError

_NULL, _BOOL, _NUMBER, _STRING, _DATETIME, _BYTES, _LIST, _DICT = "01234567"
_KINDS: Final = dict(
    zip(
        "01234567",
        ("null", "bool", "number", "string", "datetime", "bytes", "list", "dict"),
        strict=True,
    )
)
_ZERO: Final = _NUMBER + "1"
_LEAST_EXPONENT: Final = -1074
_EXPONENT_RANGE: Final = 0xFFF
_FRACTION_BITS: Final = 63
_FRACTION_RANGE: Final = (1 << 64) - 1
_BEGIN: Final = datetime(1, 1, 1, tzinfo=UTC) - timedelta(0)
_DAY_MICROSECONDS: Final = 86_400_000_000
_MICROSECOND: Final = timedelta(microseconds=1)


def value_token(value: Any) -> str:
    """The token of a value.

    Tokens sort as queries do: null, bool, number (by exact value, `1 == 1.0`), string
    by code point, datetime by instant, bytes, list, dict. Equal values have equal
    tokens, and different ones different tokens. Lists, dicts, strings and bytes above
    `TOKEN_LIMIT` encoded bytes are digests: good for equality, without an order
    among each other; `is_ordered` tells.

    Raises:
        InvalidRequestError: Not a value that a document may have.
    """
    if value is None:
        return _NULL
    if value is True or value is False:
        return _BOOL + ("T" if value else "F")
    if isinstance(value, str):
        return _STRING + encode_token(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, datetime):
        # A day of room below: the year 1 in zones east of Greenwich.
        micros = (value - _BEGIN) // _MICROSECOND + _DAY_MICROSECONDS
        return f"{_DATETIME}{micros:016X}"
    if isinstance(value, bytes):
        text = value.hex().upper() if 2 * len(value) <= TOKEN_LIMIT else ""
        return _BYTES + (text if text or not value else digest_token(value))
    if isinstance(value, list):
        tokens = map(value_token, value)
        return _LIST + digest_token(".".join(tokens).encode())
    if isinstance(value, Mapping):
        pairs = sorted((encode_token(k), value_token(v)) for k, v in value.items())
        return _DICT + digest_token(".".join(f"{k}.{v}" for k, v in pairs).encode())
    raise InvalidRequestError(f"a {type(value).__name__} cannot be stored")


def _number(value: int | float) -> str:
    """Sign, exponent and fraction of the exact value, complemented where negative."""
    if value == 0:
        return _ZERO
    if isinstance(value, int):
        magnitude, shift = abs(value), 0
    elif math.isfinite(value):
        mantissa, exponent = math.frexp(abs(value))
        magnitude, shift = int(mantissa * (1 << 53)), exponent - 53
    else:
        raise InvalidRequestError("a number must be finite")
    bits = magnitude.bit_length()
    if bits > _FRACTION_BITS + 1:
        raise InvalidRequestError("an int must fit 64 bits")
    exponent = bits - 1 + shift - _LEAST_EXPONENT
    # Without the leading 1, from the left.
    fraction = (magnitude << (_FRACTION_BITS + 1 - bits)) & ((1 << _FRACTION_BITS) - 1)
    if value < 0:
        exponent, fraction = _EXPONENT_RANGE - exponent, _FRACTION_RANGE - fraction
    return f"{_NUMBER}{'0' if value < 0 else '2'}{exponent:03X}{fraction:016X}"


def kind_of_token(token: str) -> str:
    """`null`, `bool`, `number`, `string`, `datetime`, `bytes`, `list` or `dict`."""
    return _KINDS[token[0]]


def is_ordered(token: str) -> bool:
    """Whether the token's place among those of its kind is that of its value."""
    return not is_digested(token[1:])
