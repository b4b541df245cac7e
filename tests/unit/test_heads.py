"""What a saver remembers of threads is bounded."""

from __future__ import annotations

import dataclasses
from typing import Any

from jskv_saver.checkpoint import heads
from jskv_saver.checkpoint.heads import Head, Heads
from jskv_saver.checkpoint.layout import Scope

THREADS = [Scope("agent", f"{n}", "") for n in range(3_000)]


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
