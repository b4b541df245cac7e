"""Thirty-two threads at once, through one saver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from scripts.bench.chain import Chain
from scripts.bench.run import Bench

THREADS = 32
BURSTS = 20
STEPS = 4
KEPT = 20


async def concurrent(bench: Bench) -> AsyncGenerator[None, None]:
    """Each puts, writes and reads, four times in a burst."""
    chains = [Chain(bench.saver, f"thread-{number}") for number in range(THREADS)]
    for _ in range(bench.size(BURSTS, 2)):
        new = [
            [bench.texts.message("user") for _ in range(STEPS)] for _ in range(THREADS)
        ]
        before = time.perf_counter()
        await asyncio.gather(*map(_steps, [bench] * THREADS, chains, new))
        spent = time.perf_counter() - before
        bench.record("throughput", THREADS * STEPS * 3 / spent, "ops/s")
        yield


async def _steps(bench: Bench, chain: Chain, new: list[Any]) -> None:
    for message in new:
        messages = [*chain.values.get("messages", []), message][-KEPT:]
        await chain.prepare({"messages": messages}).put()
        await chain.write(0, message)
        found = await bench.saver.aget_tuple(chain.latest)
        bench.check_tuple(found, chain.values, "the latest of one of many threads")
