"""Runs a workload on several savers in turns, so that noise meets all alike."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from scripts.bench.chain import Texts
from scripts.bench.pace import Meter
from scripts.bench.peers import AnySaver, idle
from scripts.bench.places import Peer, Place

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


class WrongState(Exception):
    """A saver returned what was not stored; the text says where."""


@dataclass
class Results:
    """What one workload measured: by line and saver, and each line's unit."""

    samples: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    units: dict[str, str] = field(default_factory=dict)

    def record(self, line: str, saver: str, value: float, unit: str = "ms") -> None:
        """Add a sample."""
        self.samples[line][saver].append(value)
        self.units[line] = unit


@dataclass(frozen=True)
class Bench:
    """One saver in one round of one workload."""

    place: Place
    results: Results
    scale: float
    texts: Texts

    @property
    def name(self) -> str:
        """The saver's."""
        return self.place.peer.name

    @property
    def saver(self) -> AnySaver:
        """The saver that writes."""
        return self.place.saver

    def size(self, full: int, least: int = 1) -> int:
        """A size at the scale of this run."""
        return max(least, round(full * self.scale))

    async def timed(self, line: str, call: Awaitable[T]) -> T:
        """Await a call and record the milliseconds that it took."""
        before = time.perf_counter()
        result = await call
        self.record(line, (time.perf_counter() - before) * 1000)
        return result

    def record(self, line: str, value: float, unit: str = "ms") -> None:
        """Add a sample of this saver."""
        self.results.record(line, self.name, value, unit)

    async def record_stored(self) -> int:
        """Record what is stored, in MB."""
        stored = await self.place.stored()
        self.record("stored", stored / 1e6, "MB")
        return stored

    def check(self, right: bool, what: str) -> None:
        """Raise WrongState unless it is right."""
        if not right:
            raise WrongState(f"{self.name}: {what} is not what was stored")

    def check_tuple(
        self, found: CheckpointTuple | None, values: Mapping[str, Any], what: str
    ) -> None:
        """Raise WrongState unless a checkpoint has these values."""
        self.check(
            found is not None and found.checkpoint["channel_values"] == values, what
        )

    async def fresh(self, config: RunnableConfig, values: Mapping[str, Any]) -> None:
        """Read a checkpoint in a process that has just begun, and record both times."""
        if self.name == "memory":
            return
        task = {"address": dict(self.place.address), "config": dict(config)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "scripts.bench.fresh", json.dumps(task)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{self.name}: the fresh process failed")
        told = json.loads(output)
        self.check(told["digest"] == digest(values), "read in a fresh process")
        self.record("read, fresh process", told["read"])
        self.record("open and read, fresh process", told["open"] + told["read"])


def digest(values: Mapping[str, Any]) -> str:
    """Short for the values of a checkpoint, the same in every process."""
    _, packed = JsonPlusSerializer().dumps_typed(dict(sorted(values.items())))
    return sha256(packed).hexdigest()


Workload = Callable[[Bench], AsyncGenerator[None, None]]
"""Does its work in slices: each `yield` lets the next saver have its turn."""


async def interleave(
    workload: Workload,
    peers: Sequence[Peer],
    results: Results,
    *,
    scale: float,
    messages: str,
    seed: int,
    meter: Meter,
) -> None:
    """One round: each saver runs the workload on empty storage, slice by slice."""
    order = random.Random(seed)
    async with AsyncExitStack() as stack:
        running = []
        for peer in peers:
            place = await stack.enter_async_context(peer.place())
            running.append(workload(Bench(place, results, scale, Texts(messages))))
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            while running:
                # In another order each time: nobody always follows the same one.
                order.shuffle(running)
                meter.take()
                running = [slices for slices in running if await _one(slices)]
        finally:
            gc.enable()
            gc.unfreeze()
            for slices in running:
                await slices.aclose()


async def _one(slices: AsyncGenerator[None, None]) -> bool:
    """One slice; False at the end."""
    await idle()
    # Only what is new: a full collection takes longer the more has gone before.
    gc.collect(1)
    try:
        await anext(slices)
    except StopAsyncIteration:
        return False
    return True
