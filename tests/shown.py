"""Names of test cases, the same in every process."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """Its `repr`, without the order of a set or the address of an object."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
