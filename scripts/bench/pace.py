"""How fast the machine is now: a run on a noisy one can be thrown away."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import IO, Self

STEADY, STEADY_SYNC = 1.3, 2.0
"""Medians that differ by more than these factors are those of a noisy machine."""


@dataclass(frozen=True)
class Pace:
    """Milliseconds of a fixed loop and of an fdatasync: median and greatest."""

    loop: float
    loop_worst: float
    sync: float
    sync_worst: float

    def __str__(self) -> str:
        return (
            f"pace: loop {self.loop:.2f} ms (worst {self.loop_worst:.2f}), "
            f"fdatasync {self.sync:.2f} ms (worst {self.sync_worst:.2f})"
        )


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
        return Pace(
            statistics.median(self.loops),
            max(self.loops),
            statistics.median(self.syncs),
            max(self.syncs),
        )


def verdict(paces: Collection[Pace]) -> str:
    """Whether the machine was the same throughout the run."""
    spans = {
        "loop": ([pace.loop for pace in paces], STEADY),
        "fdatasync": ([pace.sync for pace in paces], STEADY_SYNC),
    }
    steady = all(max(of) <= factor * min(of) for of, factor in spans.values())
    told = ", ".join(
        f"{name} {min(of):.2f} to {max(of):.2f} ms (steady: within {factor:g} times)"
        for name, (of, factor) in spans.items()
    )
    word = "steady" if steady else "noisy, throw it away"
    return f"Medians from workload to workload: {told}. The machine was {word}."
