"""What options of several commands are written as: durations, pairs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from jskv_saver.errors import InvalidRequestError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])").fullmatch


def seconds_of(text: str) -> float:
    """A duration in seconds: 90s, 15m, 12h, 30d, 2w.

    Raises:
        InvalidRequestError: It is none.
    """
    found = _DURATION(text.strip())
    if found is None:
        raise InvalidRequestError(
            f"{text!r} is no duration: write it as 90s, 15m, 12h, 30d or 2w"
        )
    return float(found[1]) * _UNITS[found[2]]


def pairs_of(texts: Sequence[str]) -> dict[str, Any]:
    """Keys and values of KEY=VALUE; a value is JSON, or else text.

    Raises:
        InvalidRequestError: One is no pair.
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise InvalidRequestError(f"{text!r} is no pair: write it as KEY=VALUE")
        try:
            pairs[key] = json.loads(value)
        except ValueError:
            pairs[key] = value
    return pairs
