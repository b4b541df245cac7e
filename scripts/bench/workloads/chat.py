"""One thread that grows by two messages a turn, or keeps the last forty."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any

import ormsgpack
from scripts.bench.chain import Chain
from scripts.bench.run import Bench

TURNS = 150
EDGE = 50
"""How many steps count as the start, and as the end."""
BLOCK = 5
"""Turns in a slice: the first call after a change of saver is then not the median."""
FRESH = 4


async def chat(bench: Bench) -> AsyncGenerator[None, None]:
    """A turn is 3 supersteps, each a put and two calls for writes, and a read."""
    turns = bench.size(TURNS, 3)
    edge = min(EDGE, turns)
    chain = Chain(bench.saver, "chat")
    messages = [bench.texts.message("system")]
    total = 0.0
    for turn in range(turns):
        asked, answered = bench.texts.message("user"), bench.texts.message("assistant")
        for new in ([asked], [answered], []):
            step = chain.steps
            messages = [*messages, *new]
            chain.prepare({"turn": turn, **({"messages": messages} if new else {})})
            before = time.perf_counter()
            await bench.timed("aput", chain.put())
            spent = time.perf_counter() - before
            if step < edge:
                bench.record("aput, start", spent * 1000)
            if step >= 3 * turns - edge:
                bench.record("aput, end", spent * 1000)
            total += spent
            # What a node returned: a message or nothing, and where to go next.
            for number, value in enumerate([[answered] if new == [asked] else [], []]):
                before = time.perf_counter()
                await bench.timed("aput_writes", chain.write(number, value))
                total += time.perf_counter() - before
        before = time.perf_counter()
        found = await bench.timed("latest read", bench.saver.aget_tuple(chain.latest))
        spent = time.perf_counter() - before
        total += spent
        if turn >= turns - edge // 3 - 1:
            bench.record("latest read, end", spent * 1000)
        bench.check_tuple(found, chain.values, f"the latest after turn {turn}")
        assert found is not None
        bench.check(len(found.pending_writes or ()) == 4, "the writes of the latest")
        if turn % BLOCK == BLOCK - 1:
            yield
    bench.record("all operations", total, "s")
    await bench.record_stored()
    for _ in range(bench.size(FRESH)):
        yield
        await bench.fresh(chain.latest, chain.values)


KEPT = 40


async def window(bench: Bench) -> AsyncGenerator[None, None]:
    """A list that drops its oldest two messages and appends two, each turn."""
    turns = bench.size(TURNS, 3)
    chain = Chain(bench.saver, "window")
    messages = [bench.texts.message("user") for _ in range(KEPT)]
    distinct = {_packed(message) for message in messages}
    for turn in range(turns):
        new = [bench.texts.message("user"), bench.texts.message("assistant")]
        distinct |= {_packed(message) for message in new}
        messages = [*messages[len(new) :], *new]
        chain.prepare({"messages": messages})
        await bench.timed("aput", chain.put())
        if turn % BLOCK == BLOCK - 1:
            found = await bench.timed(
                "latest read", bench.saver.aget_tuple(chain.latest)
            )
            bench.check_tuple(found, chain.values, f"the latest after turn {turn}")
            yield
    found = await bench.saver.aget_tuple(chain.latest)
    bench.check_tuple(found, chain.values, "the latest at the end")
    stored = await bench.record_stored()
    bench.record("stored / distinct bytes", stored / sum(map(len, distinct)), "x")


def _packed(message: Any) -> bytes:
    if not isinstance(message, dict):
        message = message.model_dump()
    return ormsgpack.packb(message)
