"""A value of twenty megabytes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

from scripts.bench.chain import Chain
from scripts.bench.run import Bench

SIZE = 20_000_000
REPEATS = 5
PAUSE = 0.001
"""Seconds between two small puts beside a large one."""


async def big(bench: Bench) -> AsyncGenerator[None, None]:
    """Put another value each time, read it, also in a fresh process; puts beside it."""
    rng = random.Random(4)
    chain = Chain(bench.saver, "big")
    for _ in range(REPEATS if bench.scale >= 1 else 1):
        chain.prepare({"big": rng.randbytes(bench.size(SIZE))})
        await bench.timed("aput", chain.put())
        yield
        found = await bench.timed("read", bench.saver.aget_tuple(chain.latest))
        bench.check_tuple(found, chain.values, "a large value")
        del found
        yield
        await bench.fresh(chain.latest, chain.values)
        yield
    await bench.record_stored()
    small = Chain(bench.saver, "beside")
    for _ in range(REPEATS if bench.scale >= 1 else 1):
        chain.prepare({"big": rng.randbytes(bench.size(SIZE))})
        large = asyncio.create_task(chain.put())
        # It begins: what it does before it first waits holds up everybody.
        await asyncio.sleep(0)
        while not large.done():
            await bench.timed("small aput beside", small.prepare({"n": 1}).put())
            await asyncio.sleep(PAUSE)
        await large
        yield
