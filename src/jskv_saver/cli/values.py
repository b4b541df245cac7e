"""Pairs, as options are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jskv_saver.errors import InvalidRequestError


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
