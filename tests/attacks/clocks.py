"""Checkpoint ids of a machine whose clock is wrong."""

from __future__ import annotations

import time

from langgraph.checkpoint.base.id import UUID, uuid6

_TICKS = 36_000_000_000
"""Ticks of 100 ns in an hour."""


def skewed_id(hours: float) -> str:
    """An id as LangGraph makes it, on a clock that is so many hours ahead."""
    true = uuid6()
    ticks = true.time + int(hours * _TICKS)
    number = (ticks >> 12) << 80 | (ticks & 0x0FFF) << 64
    return str(UUID(int=number | true.int & ((1 << 64) - 1), version=6))


def hours_of(id: str) -> float:
    """How far an id is from this machine's clock."""
    now = time.time_ns() // 100 + 0x01B21DD213814000
    return (UUID(hex=id).time - now) / _TICKS
