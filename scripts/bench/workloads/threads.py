"""Two thousand threads of four checkpoints."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

from scripts.bench.chain import Chain, at
from scripts.bench.run import Bench
from scripts.bench.workloads.history import listed

THREADS = 2000
CHECKPOINTS = 4
READS = 200
DELETES = 100
LISTS = 20
BLOCK = 50
ORDERED = ("jskv", "sqlite", "postgres")
"""Those that order by id across threads; the others do so within a thread."""


async def threads(bench: Bench) -> AsyncGenerator[None, None]:
    """Random latest reads, deletions, and the newest twenty of all threads."""
    count = bench.size(THREADS, 12)
    known: dict[str, dict[str, Any]] = {}
    chains = [Chain(bench.saver, f"thread-{number}") for number in range(count)]
    for start in range(0, count, BLOCK):
        await asyncio.gather(
            *(_fill(chain, known) for chain in chains[start : start + BLOCK])
        )
        yield
    rng = random.Random(3)
    reads = bench.size(READS, 5)
    for number, chain in enumerate(rng.choices(chains, k=reads)):
        found = await bench.timed(
            "random latest", bench.saver.aget_tuple(at(chain.thread))
        )
        bench.check_tuple(found, chain.values, "the latest of a thread")
        if number % 10 == 9:
            yield
    newest = sorted((chain.id or "" for chain in chains), reverse=True)
    for _ in range(bench.size(LISTS, 2)):
        some = await bench.timed("list(None, 20)", listed(bench.saver, None, limit=20))
        bench.check(len(some) == 20, "how many checkpoints of all threads")
        for each in some:
            bench.check_tuple(each, known[each.checkpoint["id"]], "one of all threads")
        if bench.name in ORDERED:
            bench.check(some[0].checkpoint["id"] == newest[0], "the newest of all")
        yield
    for number, chain in enumerate(rng.sample(chains, k=bench.size(DELETES, 4))):
        await bench.timed("delete", bench.saver.adelete_thread(chain.thread))
        gone = await bench.saver.aget_tuple(at(chain.thread))
        bench.check(gone is None, "the latest of a deleted thread")
        if number % 10 == 9:
            yield
    await bench.record_stored()


async def _fill(chain: Chain, known: dict[str, dict[str, Any]]) -> None:
    for number in range(CHECKPOINTS):
        await chain.prepare({"n": number, "text": f"{chain.thread} " * 20}).put()
        assert chain.id is not None
        known[chain.id] = chain.values
