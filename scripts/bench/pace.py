"""How fast the machine is now: a run on a noisy one can be thrown away."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import IO, Self

STEADY, STEADY_SYNC = 1.5, 3
"""Of a steady machine, nine in ten samples are within these of its best tenth."""


@dataclass(frozen=True)
class Spread:
    """Milliseconds: what a tenth, half and nine tenths of the samples do not exceed."""

    best: float
    median: float
    high: float
    worst: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ms ({self.best:.2f} to {self.high:.2f})"


def spread(samples: Sequence[float]) -> Spread:
    """Of these samples."""
    ordered = sorted(samples)
    tenth = len(ordered) // 10
    return Spread(
        ordered[tenth], statistics.median(ordered), ordered[-1 - tenth], ordered[-1]
    )


@dataclass(frozen=True)
class Pace:
    """What a fixed loop and an fdatasync took."""

    loop: Spread
    sync: Spread

    def __str__(self) -> str:
        return f"pace: loop {self.loop}, fdatasync {self.sync}"


@dataclass
class Meter:
    """Takes the pace between the slices of a workload."""

    loops: list[float] = field(default_factory=list)
    syncs: list[float] = field(default_factory=list)
    _file: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def take(self) -> None:
        """One sample of each; about five milliseconds."""
        before = time.perf_counter()
        total = 0
        for number in range(100_000):
            total += number * number % 7
        self.loops.append((time.perf_counter() - before) * 1000)
        file = self._file.fileno()
        os.write(file, b"x" * 4096)
        before = time.perf_counter()
        # macOS has no fdatasync.
        getattr(os, "fdatasync", os.fsync)(file)
        self.syncs.append((time.perf_counter() - before) * 1000)

    def pace(self) -> Pace:
        """Of all samples."""
        return Pace(spread(self.loops), spread(self.syncs))


def verdict(paces: Collection[Pace]) -> str:
    """Whether the machine was its own throughout the run."""
    spans = {
        "loop": ([pace.loop for pace in paces], STEADY),
        "fdatasync": ([pace.sync for pace in paces], STEADY_SYNC),
    }
    told, steady = [], True
    for name, (of, factor) in spans.items():
        best, high = min(each.best for each in of), max(each.high for each in of)
        steady &= high <= factor * best
        told.append(f"{name} {best:.2f} to {high:.2f} ms (steady: {factor:g} times)")
    word = "steady" if steady else "noisy: throw this run away"
    return f"From workload to workload: {', '.join(told)}. The machine was {word}."
