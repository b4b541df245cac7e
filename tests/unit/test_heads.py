"""What a saver remembers of threads is bounded."""

from __future__ import annotations

import dataclasses
from typing import Any

from jskv_saver.checkpoint import heads
from jskv_saver.checkpoint.heads import Head, Heads
from jskv_saver.checkpoint.layout import Scope

THREADS = [Scope("agent", f"{n}", "") for n in range(10_000)]


@dataclasses.dataclass
class _Base:
    """As much of a base as counts here."""

    size: int


def _head(size: int) -> Head:
    base: Any = _Base(size)
    return Head(1, base=base)


def test_a_bounded_number_of_threads_is_remembered() -> None:
    remembered = Heads()
    for scope in THREADS:
        remembered.set(scope, _head(1_000))
    there = [scope for scope in THREADS if remembered.get(scope)]
    assert there == THREADS[-heads.MAX_SCOPES :]


def test_a_bounded_number_of_bytes_is_remembered() -> None:
    remembered = Heads()
    size = heads.MAX_BYTES // 10
    for scope in THREADS:
        remembered.set(scope, _head(size))
        remembered.set(scope, _head(size))  # in the place of the first
    there = [scope for scope in THREADS if remembered.get(scope)]
    assert there == THREADS[-10:]


def test_what_is_too_large_is_remembered_without_its_bytes() -> None:
    remembered = Heads()
    for scope in THREADS[:20]:
        remembered.set(scope, _head(heads.MAX_BYTES + 1))
    for scope in THREADS[:20]:
        assert remembered.get(scope) == Head(1)


def test_what_was_forgotten_counts_no_more() -> None:
    remembered = Heads()
    for scope in THREADS:
        remembered.set(scope, _head(heads.MAX_BYTES))
        remembered.forget_thread(scope.agent, scope.thread)
    remembered.set(THREADS[0], _head(heads.MAX_BYTES))
    assert remembered.get(THREADS[0])


def test_a_bounded_number_of_meetings_is_remembered() -> None:
    remembered = Heads()
    for scope in THREADS:
        for id in ("1", "2"):
            remembered.met(scope, id, "head")
    there = [s for s in THREADS for id in "12" if remembered.head_when_met(s, id)]
    assert len(there) == heads.MAX_SEEN
    assert there[-1] == THREADS[-1]


def test_parts_are_remembered_up_to_a_bound() -> None:
    remembered = heads.KnownParts()
    size = heads.MAX_PART
    for n in range(2 * heads.MAX_PARTS // size):
        remembered.add(n.to_bytes(16), bytes([n % 256]) * size)
        assert remembered.get((0).to_bytes(16)) is not None, "what is used stays"
    there = [n for n in range(n + 1) if remembered.get(n.to_bytes(16)) is not None]
    assert len(there) * size <= heads.MAX_PARTS
    assert there == [0, *range(there[1], n + 1)]


def test_a_large_part_is_not_remembered() -> None:
    remembered = heads.KnownParts()
    remembered.add(b"d" * 16, b"x" * (heads.MAX_PART + 1))
    assert remembered.get(b"d" * 16) is None


def test_of_a_thread_that_is_forgotten_nothing_is_left() -> None:
    remembered = Heads()
    for scope in THREADS[:3]:
        remembered.set(scope, _head(10))
        remembered.set(scope._replace(ns="inner"), _head(10))
    remembered.forget_thread(THREADS[1].agent, THREADS[1].thread)
    assert remembered.get(THREADS[1]) is None
    assert remembered.get(THREADS[1]._replace(ns="inner")) is None
    assert remembered.get(THREADS[0]) is not None
    assert remembered.get(THREADS[2]._replace(ns="inner")) is not None
