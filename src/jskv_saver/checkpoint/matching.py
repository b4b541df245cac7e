"""Whether metadata matches a filter: structural equality, key by key. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MISSING = object()


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether metadata has all keys of a filter with equal values.

    A key is literal, never a path. `None` matches an explicit null only, a bool only
    a bool; numbers are equal by exact value; the order of keys has no meaning, that
    of lists has; a tuple equals a list of the same items.
    """
    return all(
        _equal(metadata.get(key, _MISSING), value) for key, value in wanted.items()
    )


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            _equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)
