"""How fast the machine is now: a run on a noisy one can be thrown away."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass

LOOPS = 9
SYNCS = 21


@dataclass(frozen=True)
class Pace:
    """Milliseconds: of a fixed loop and of an fdatasync, median and greatest."""

    loop: float
    loop_worst: float
    sync: float
    sync_worst: float

    def __str__(self) -> str:
        return (
            f"pace: loop {self.loop:.2f} ms (worst {self.loop_worst:.2f}), "
            f"fdatasync {self.sync:.2f} ms (worst {self.sync_worst:.2f})"
        )


def measure() -> Pace:
    """Take the machine's pace; about a tenth of a second."""
    loops = [_loop() for _ in range(LOOPS)]
    with tempfile.TemporaryFile() as file:
        syncs = [_sync(file.fileno()) for _ in range(SYNCS)]
    return Pace(
        statistics.median(loops), max(loops), statistics.median(syncs), max(syncs)
    )


def _loop() -> float:
    before = time.perf_counter()
    total = 0
    for number in range(100_000):
        total += number * number % 7
    return (time.perf_counter() - before) * 1000


def _sync(file: int) -> float:
    os.write(file, b"x" * 4096)
    before = time.perf_counter()
    # macOS has no fdatasync.
    getattr(os, "fdatasync", os.fsync)(file)
    return (time.perf_counter() - before) * 1000
