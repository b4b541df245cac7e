"""Rules for the values in a document: which types, how large, how deep. Pure.

Checked without recursion: a value comes from a caller, who may have nested it ten
thousand levels deep or into itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final, TypeAlias

from jskv_saver.document.model import Data
from jskv_saver.document.names import is_text, shown
from jskv_saver.errors import InvalidRequestError

MAX_DEPTH: Final = 32
"""Containers inside each other, `data` itself included."""

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1

_Trail: TypeAlias = "str | tuple[_Trail, str | int]"
"""Where a container stands: a name, or its parent's trail and a key in it."""


def check_data(data: Data) -> dict[str, Any]:
    """Check a document's data and return a private deep copy.

    Args:
        data: A dict of the types that `DocumentStore` names.

    Returns:
        An equal dict that shares nothing mutable with `data`, its datetimes in UTC.

    Raises:
        InvalidRequestError: A value breaks a rule; the message names its path.
    """
    if type(data) is not dict:
        raise InvalidRequestError(f"data is a {type(data).__name__}, not a dict")
    copy: dict[str, Any] = {}
    _fill([(data, copy, 1, "data")])
    return copy


def check_value(value: Any, name: str) -> Any:
    """Check one value as it may stand in a field, and return a private copy.

    Args:
        value: The value.
        name: What messages call it.

    Raises:
        InvalidRequestError: It breaks a rule.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return _scalar(value, name)
    copy: Any = kind()
    _fill([(value, copy, 2, name)])
    return copy


def copy_data(data: dict[str, Any]) -> dict[str, Any]:
    """A deep copy of data that was checked before."""
    return {
        key: _copy(value) if type(value) is list or type(value) is dict else value
        for key, value in data.items()
    }


def estimated_size(data: dict[str, Any]) -> int:
    """About how many bytes checked data takes when encoded (as CBOR would)."""
    return _size(data)


def _fill(pending: list[tuple[Any, Any, int, _Trail]]) -> None:
    # Last in, first out: a value nested into itself reaches the limit at once,
    # where breadth first would first visit two to the power of the depth.
    while pending:
        source, target, depth, trail = pending.pop()
        if type(source) is dict:
            _fill_dict(source, target, depth, trail, pending)
        else:
            _fill_list(source, target, depth, trail, pending)


def _fill_dict(
    source: dict[str, Any],
    target: dict[str, Any],
    depth: int,
    trail: _Trail,
    pending: list[tuple[Any, Any, int, _Trail]],
) -> None:
    # Inlined for the types that the checkpoint saver writes: this runs for each put.
    for key, value in source.items():
        if type(key) is not str or "\0" in key or not key.isascii():
            _check_key(key, trail)
        kind = type(value)
        if kind is str:
            if "\0" in value or not value.isascii():
                _scalar(value, (trail, key))
        elif kind is dict or kind is list:
            _check_depth(depth + 1, (trail, key))
            copy: Any = kind()
            pending.append((value, copy, depth + 1, (trail, key)))
            value = copy
        elif kind is not bytes and value is not None:
            value = _scalar(value, (trail, key))
        target[key] = value


def _fill_list(
    source: list[Any],
    target: list[Any],
    depth: int,
    trail: _Trail,
    pending: list[tuple[Any, Any, int, _Trail]],
) -> None:
    for index, value in enumerate(source):
        kind = type(value)
        if kind is dict or kind is list:
            _check_depth(depth + 1, (trail, index))
            copy: Any = kind()
            pending.append((value, copy, depth + 1, (trail, index)))
            target.append(copy)
        else:
            target.append(_scalar(value, (trail, index)))


def _scalar(value: Any, trail: _Trail) -> Any:
    kind = type(value)
    if kind is str:
        if not is_text(value):
            raise _refused(trail, "has a NUL or an unpaired surrogate")
    elif kind is int:
        if not MIN_INT <= value <= MAX_INT:
            raise _refused(trail, "is outside signed 64 bits")
    elif kind is float:
        if not isfinite(value):
            raise _refused(trail, f"is {value}, not a finite number")
    elif kind is datetime:
        return _in_utc(value, trail)
    elif value is not None and kind is not bool and kind is not bytes:
        raise _refused(
            trail,
            f"is a {kind.__name__}, not exactly one of str, int, float, bool, None, "
            "bytes, datetime, list, dict",
        )
    return value


def _in_utc(value: datetime, trail: _Trail) -> datetime:
    if value.utcoffset() is None:
        raise _refused(trail, "is a naive datetime: give it a timezone")
    try:
        return value.astimezone(UTC).replace(fold=0)
    except OverflowError as exc:
        raise _refused(trail, "is outside the years 1 to 9999 in UTC") from exc


def _check_key(key: Any, trail: _Trail) -> None:
    if type(key) is not str:
        raise _refused(trail, f"has a key that is a {type(key).__name__}, not a str")
    if not is_text(key):
        raise _refused(
            trail, f"has a key with a NUL or an unpaired surrogate: {shown(key)}"
        )


def _check_depth(depth: int, trail: _Trail) -> None:
    if depth > MAX_DEPTH:
        raise _refused(trail, f"is nested more than {MAX_DEPTH} levels deep")


def _refused(trail: _Trail, reason: str) -> InvalidRequestError:
    steps: list[str] = []
    while not isinstance(trail, str):
        trail, key = trail
        if isinstance(key, int):
            steps.append(f"[{key}]")
        elif key.isidentifier():
            steps.append(f".{key}")
        else:
            steps.append(f"[{shown(key)}]")
    return InvalidRequestError(f"{trail}{''.join(reversed(steps))} {reason}")


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy(item) for item in value]
    return value


def _size(value: Any) -> int:
    kind = type(value)
    if kind is str:
        size = len(value) if value.isascii() else len(value.encode())
        return size + _head(size)
    if kind is bytes:
        return len(value) + _head(len(value))
    if kind is dict:
        items = sum(_size(key) + _size(item) for key, item in value.items())
        return _head(len(value)) + items
    if kind is list:
        return _head(len(value)) + sum(map(_size, value))
    if kind is int:
        return _head(value if value >= 0 else -1 - value)
    if kind is float:
        return 9
    return 34 if kind is datetime else 1


def _head(number: int) -> int:
    if number < 24:
        return 1
    if number < 0x100:
        return 2
    if number < 0x10000:
        return 3
    return 5 if number < 0x100000000 else 9
