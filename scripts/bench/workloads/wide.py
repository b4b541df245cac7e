"""Twenty channels, of which one is large and one changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from scripts.bench.chain import Chain
from scripts.bench.run import Bench

STEPS = 200
CHANNELS = 20
LARGE = 200_000
BLOCK = 10


async def wide(bench: Bench) -> AsyncGenerator[None, None]:
    """Each step changes a counter; 200 KB and eighteen small channels stay."""
    steps = bench.size(STEPS, 3)
    chain = Chain(bench.saver, "wide")
    state = {f"channel{n}": bench.texts.text(100) for n in range(CHANNELS - 2)}
    chain.prepare({**state, "large": bench.texts.text(LARGE), "counter": 0})
    await chain.put()
    for step in range(1, steps):
        chain.prepare({"counter": step})
        await bench.timed("aput", chain.put())
        if step % BLOCK == 0:
            found = await bench.timed(
                "latest read", bench.saver.aget_tuple(chain.latest)
            )
            bench.check_tuple(found, chain.values, f"the latest after step {step}")
            yield
    await bench.record_stored()
    found = await bench.saver.aget_tuple(chain.latest)
    bench.check_tuple(found, chain.values, "the latest at the end")
