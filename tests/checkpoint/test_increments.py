"""What a value shares with its parent's: always equal, always bounded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jskv_saver.checkpoint.increments import (
    FANOUT,
    MAX_RUNS,
    MIN_MATCH,
    Fresh,
    Run,
    matches,
    plan,
)


@dataclass
class Value:
    """A value as it would be stored: parts, and what was written in all."""

    parts: dict[bytes, bytes] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    content: bytes = b""
    written: int = 0
    most_runs: int = 0

    def become(self, new: bytes) -> int:
        """Store a new value; give back how many bytes were written."""
        before = self.written
        runs: list[Run] = []
        for piece in plan(self.content, self.runs, new):
            if isinstance(piece, Run):
                runs.append(piece)
                continue
            fresh = new[piece.start : piece.end]
            assert fresh
            name = blake2b(fresh, digest_size=16).digest()
            self.parts[name] = fresh
            self.written += len(fresh)
            runs.append(Run(name, 0, len(fresh)))
        assert b"".join(self.parts[r.part][r.offset :][: r.length] for r in runs) == new
        assert len(runs) <= MAX_RUNS
        self.runs, self.content = runs, new
        self.most_runs = max(self.most_runs, len(runs))
        return self.written - before


def _noise(seed: object, size: int) -> bytes:
    return random.Random(repr(seed)).randbytes(size)


def _message(n: int, size: int = 1500) -> dict[str, object]:
    text = _noise(n, size // 2).hex()
    return {"id": f"message-{n}", "type": "human", "content": text, "n": n * 7919}


def _packed(messages: Sequence[object]) -> bytes:
    return ormsgpack.packb(list(messages))


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.builds(_noise, st.integers(0, 6), st.integers(0, 2000)),
        st.builds(lambda n: b"ab" * n, st.integers(0, 400)),
    ),
    max_size=8,
).map(b"".join)


@given(old=PIECES, new=PIECES)
def test_matches_are_equal_ascending_and_long_enough(old: bytes, new: bytes) -> None:
    at = 0
    for match in matches(old, new):
        assert match.length >= MIN_MATCH
        assert match.new_at >= at
        at = match.new_at + match.length
        assert at <= len(new)
        assert old[match.old_at :][: match.length] == new[match.new_at : at]
        assert match.old_at + match.length <= len(old)


@given(values=st.lists(PIECES, min_size=1, max_size=6))
def test_any_sequence_of_values_is_rebuilt(values: list[bytes]) -> None:
    stored = Value()
    for value in values:
        stored.become(value)


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["append", "drop", "edit", "insert", "shrink", "swap"]),
        st.integers(0, 10_000),
        st.integers(0, 3000),
    ),
    min_size=1,
    max_size=60,
)


@given(edits=EDITS)
def test_any_sequence_of_edits_is_rebuilt(
    edits: list[tuple[str, int, int]],
) -> None:
    stored, value = Value(), _noise("start", 9000)
    for n, (kind, at, size) in enumerate(edits):
        at = at % (len(value) + 1)
        new = _noise(n, size)
        match kind:
            case "append":
                value += new
            case "drop":
                value = value[size:]
            case "edit":
                value = value[:at] + new[:40] + value[at + 40 :]
            case "insert":
                value = value[:at] + new + value[at:]
            case "shrink":
                value = value[: len(value) - size]
            case _:
                value = value[at:] + value[:at]
        stored.become(value)


def test_an_equal_value_writes_nothing() -> None:
    stored = Value()
    stored.become(_noise(1, 5000))
    assert stored.become(_noise(1, 5000)) == 0
    assert stored.become(b"") == 0
    assert stored.runs == []


def test_a_growing_list_writes_little_more_than_it_holds() -> None:
    stored = Value()
    messages: list[object] = []
    for n in range(450):
        messages.append(_message(n))
        stored.become(_packed(messages))

    assert stored.written <= 2.2 * len(stored.content)
    assert stored.most_runs <= 3 * FANOUT


@pytest.mark.parametrize("size", [40, 300, 12_000])
def test_it_does_so_for_messages_of_any_size(size: int) -> None:
    stored = Value()
    messages: list[object] = []
    for n in range(300):
        messages.append(_message(n, size))
        stored.become(_packed(messages))

    assert stored.written <= 3.5 * len(stored.content)


def test_a_window_that_drops_its_head_writes_what_is_new() -> None:
    stored = Value()
    window = [_message(n) for n in range(40)]
    stored.become(_packed(window))
    first = stored.written
    for n in range(40, 240):
        window = [*window[1:], _message(n)]
        stored.become(_packed(window))

    assert stored.written - first <= 3 * 200 * len(_packed([_message(1)]))
    assert stored.most_runs <= MAX_RUNS


Change = Callable[[list[dict[str, object]]], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[50].update(content="edited"),
        lambda m: m[50].update(content="x" * 9000),
        lambda m: m.pop(50),
        lambda m: m.insert(50, _message(999)),
        lambda m: (m[10].update(content="a"), m[90].update(content="b")),
        lambda m: m.append(_message(999)),
        lambda m: m.pop(),
        lambda m: m.pop(0),
        lambda m: [each.update(seen=True) for each in m[::20]],
    ],
)
def test_a_small_edit_writes_little(change: Change) -> None:
    stored = Value()
    messages = [_message(n) for n in range(100)]
    stored.become(_packed(messages))
    change(messages)

    assert stored.become(_packed(messages)) < 12_000
    assert len(stored.content) > 100_000


def test_a_nested_list_that_grows_writes_what_is_new() -> None:
    stored = Value()
    state: dict[str, list[object]] = {"a": [], "b": []}
    for n in range(200):
        state["ab"[n % 2]].append(_message(n))
        stored.become(ormsgpack.packb(state))

    assert stored.written <= 3 * len(stored.content)


def test_pieces_of_a_plan_add_up() -> None:
    old, new = _noise(1, 10_000), _noise(1, 9_000) + _noise(2, 500)
    pieces = plan(old, [Run(b"x" * 16, 7, 10_000)], new)

    assert pieces == [Run(b"x" * 16, 7, 9_000), Fresh(9_000, 9_500)]


def test_a_large_value_that_is_quite_another_is_looked_through_a_few_times() -> None:
    """Each look for a needle that is not there reads the whole old value."""
    looks = 0

    class Watched(bytes):
        def find(self, *what: Any) -> int:
            nonlocal looks
            looks += 1
            return super().find(*what)

    rng = random.Random(1)
    old, new = Watched(rng.randbytes(20_000_000)), rng.randbytes(20_000_000)
    assert list(matches(old, new)) == []
    assert looks <= 4


def test_a_large_value_that_lost_its_head_is_found_again() -> None:
    rng = random.Random(2)
    body = rng.randbytes(10_000_000)
    old, new = rng.randbytes(700) + body, body + rng.randbytes(700)
    assert sum(match.length for match in matches(old, new)) == len(body)
