"""A channel value ⇄ the parts that it shares with its parent's value.

A value is a sequence of runs, each a slice of a stored part. A new value keeps the
runs of its parent's value where the serialised bytes are the same, and stores only
what is new. The number of runs behind a value stays bounded: `FANOUT` neighbours of
one size class are stored again as one run of the next class, as a log-structured
merge tree does, so that each byte is stored about log32(value / 8 KiB) times more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

FANOUT = 32
"""Neighbouring runs of one size class that are merged into one."""
MAX_RUNS = 128
"""Above so many runs a value is stored anew as a whole."""
MIN_MATCH = 48
"""Bytes in common below which naming them costs as much as storing them."""
_CLASS_0 = 8192
_NEEDLE = 32
_MAX_PROBES = 24
_LEAST_PROBES = 2
_LOOKED_THROUGH = 16 * 1024 * 1024
"""Bytes of old values that are looked through in vain, about."""
_TINY = 16
_HEADER = 10
"""Bytes that a header of lengths may have."""
_SHIFTS = (0, -2, 2)
"""By how much a header changes its own size, as a list with 16 items does."""


class Run(NamedTuple):
    """A slice of a stored part.

    Attributes:
        part: The part's digest; empty for the bytes of the record itself.
        offset: Where the slice begins in the part, in bytes.
        length: How long it is, in bytes.
    """

    part: bytes
    offset: int
    length: int


class Fresh(NamedTuple):
    """A slice of the new value that is to be stored: `value[start:end]`."""

    start: int
    end: int


class Match(NamedTuple):
    """`old[old_at:old_at + length] == new[new_at:new_at + length]`."""

    old_at: int
    new_at: int
    length: int


def plan(old: bytes, runs: Sequence[Run], new: bytes) -> list[Run | Fresh]:
    """What a new value is made of, given its parent's value and that one's runs.

    Args:
        old: The parent's value, serialised.
        runs: The runs that it is stored in; their lengths add up to `len(old)`.
        new: The new value, serialised.

    Returns:
        Kept runs and fresh slices that add up to `new`, at most `MAX_RUNS`.
    """
    pieces: list[Run | Fresh] = []
    at = 0
    for match in matches(old, new):
        _add_fresh(pieces, at, match.new_at)
        at = match.new_at
        for run in _slice(runs, match.old_at, match.length):
            part, _, length = run
            if length < _TINY or not part:
                _add_fresh(pieces, at, at + length)
            else:
                pieces.append(run)
            at += length
    _add_fresh(pieces, at, len(new))
    return _bounded(pieces, len(new))


def matches(old: bytes, new: bytes) -> Iterator[Match]:
    """Runs of at least `MIN_MATCH` bytes that both have, in the new value's order.

    Finds appended, shortened and edited values, a window that dropped its head, and
    several small edits; does not look for everything that a full diff would find.
    """
    new_at = old_at = _common_prefix(old, 0, new, 0)
    if new_at >= MIN_MATCH:
        yield Match(0, 0, new_at)
        kept = new_at
    else:
        kept = 0
    tail = _common_suffix(old, new, min(len(old), len(new)) - new_at)
    end = len(new) - tail
    probes, step = 0, 1
    affordable = _LOOKED_THROUGH // max(len(old), 1)
    most = min(_MAX_PROBES, max(_LEAST_PROBES, affordable))
    while probes < most and new_at + MIN_MATCH <= end and old_at < len(old):
        near = _nearby(old, old_at, new, new_at, end)
        if near is not None:
            found, new_at = near
        else:
            found = _resync(old, old_at, new, new_at)
        if found < 0:
            new_at += step
            old_at += step
            probes += 1
            step = step if probes < 8 else step * 2
            continue
        back = _common_suffix_at(old, found, new, new_at, new_at - kept)
        length = _common_prefix(old, found, new, new_at)
        length = min(length, end - new_at) + back
        if length >= MIN_MATCH:
            yield Match(found - back, new_at - back, length)
            kept = new_at - back + length
            probes, step = 0, 1
        new_at += max(length - back, 1)
        old_at = found + max(length - back, 1)
    if tail >= MIN_MATCH:
        yield Match(len(old) - tail, end, tail)


def _nearby(
    old: bytes, old_at: int, new: bytes, new_at: int, end: int
) -> tuple[int, int] | None:
    """Where both go on alike after a few other bytes, in the old and in the new value.

    A length that stands before what it counts is the usual difference; finding out
    that a needle is nowhere costs a look at the whole old value.
    """
    for skipped in range(_HEADER):
        at = new_at + skipped
        if at + MIN_MATCH > end:
            return None
        needle = new[at : at + _NEEDLE]
        for shift in _SHIFTS:
            if 0 <= old_at + skipped + shift and old.startswith(
                needle, old_at + skipped + shift
            ):
                return old_at + skipped + shift, at
    return None


def _resync(old: bytes, old_at: int, new: bytes, new_at: int) -> int:
    needle = new[new_at : new_at + _NEEDLE]
    if old.startswith(needle, old_at):
        return old_at
    found = old.find(needle, old_at)
    # One that begins before `old_at` may end after it.
    return found if found >= 0 else old.find(needle, 0, old_at + _NEEDLE - 1)


def _common_prefix(old: bytes, i: int, new: bytes, j: int) -> int:
    limit = min(len(old) - i, len(new) - j)
    view = memoryview(new)
    length, step = 0, 256
    while length < limit:
        step = min(step, limit - length)
        # Compares in place; slices or `memoryview ==` would copy or crawl.
        at = j + length
        if old.startswith(view[at : at + step], i + length):
            length += step
            step *= 4
        elif step == 1:
            break
        else:
            limit = length + step - 1
            step = max(1, step // 4)
    return length


def _common_suffix(old: bytes, new: bytes, limit: int) -> int:
    return _common_suffix_at(old, len(old), new, len(new), limit)


def _common_suffix_at(old: bytes, i: int, new: bytes, j: int, limit: int) -> int:
    limit = min(limit, i, j)
    view = memoryview(new)
    length, step = 0, 256
    while length < limit:
        step = min(step, limit - length)
        at = j - length - step
        if old.startswith(view[at : at + step], i - length - step):
            length += step
            step *= 4
        elif step == 1:
            break
        else:
            limit = length + step - 1
            step = max(1, step // 4)
    return length


def _slice(runs: Sequence[Run], start: int, length: int) -> list[Run]:
    """What is behind a slice of a value: most runs as they are."""
    found: list[Run] = []
    at, end = 0, start + length
    for run in runs:
        size = run[2]
        after = at + size
        if after > start:
            if start <= at and after <= end:
                found.append(run)
            else:
                low, high = max(start, at), min(end, after)
                found.append(Run(run[0], run[1] + low - at, high - low))
            if after >= end:
                break
        at = after
    return found


def _add_fresh(pieces: list[Run | Fresh], start: int, end: int) -> None:
    if start >= end:
        return
    if pieces and isinstance(last := pieces[-1], Fresh) and last.end == start:
        pieces[-1] = Fresh(last.start, end)
    else:
        pieces.append(Fresh(start, end))


def _length(piece: Run | Fresh) -> int:
    return piece[2] if len(piece) == 3 else piece[1] - piece[0]


def _bounded(pieces: list[Run | Fresh], total: int) -> list[Run | Fresh]:
    least, bound = 0, _CLASS_0
    while len(pieces) >= FANOUT and least <= total:
        in_class = [least <= _length(piece) < bound for piece in pieces]
        if sum(in_class) >= FANOUT:
            pieces = _merged(pieces, in_class)
        least, bound = bound, bound * FANOUT
    return pieces if len(pieces) <= MAX_RUNS else [Fresh(0, total)]


def _merged(
    pieces: Sequence[Run | Fresh], in_class: Sequence[bool]
) -> list[Run | Fresh]:
    """Pieces of which `FANOUT` neighbours in one size class are one."""
    merged: list[Run | Fresh] = []
    group: list[Run | Fresh] = []
    at = start = 0

    def flush() -> None:
        if len(group) >= FANOUT:
            _add_fresh(merged, start, at)
        else:
            for piece in group:
                if isinstance(piece, Fresh):
                    _add_fresh(merged, *piece)
                else:
                    merged.append(piece)
        group.clear()

    for piece, fits in zip(pieces, in_class, strict=True):
        if fits:
            if not group:
                start = at
            group.append(piece)
        else:
            flush()
            if isinstance(piece, Fresh):
                _add_fresh(merged, *piece)
            else:
                merged.append(piece)
        at += _length(piece)
    flush()
    return merged
