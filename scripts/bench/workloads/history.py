"""A thread of a thousand checkpoints, listed and read."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from scripts.bench.chain import Chain, at
from scripts.bench.peers import AnySaver
from scripts.bench.run import Bench

CHECKPOINTS = 1000
SHARE = 100
"""One checkpoint in so many has the metadata that is looked for."""
REPEATS = 10
BLOCK = 50


async def history(bench: Bench) -> AsyncGenerator[None, None]:
    """List 10, all, and those of a filter, by the writer and by a stranger; by id."""
    count = bench.size(CHECKPOINTS, 20)
    chain = Chain(bench.saver, "history")
    values: dict[str, dict[str, Any]] = {}
    for number in range(count):
        changed = {"n": number, "text": bench.texts.text(300)}
        if number == 0:
            changed["profile"] = bench.texts.text(2000)
        chain.prepare(changed, tag=number % SHARE)
        await chain.put()
        await chain.write(0, f"write of {number}")
        assert chain.id is not None
        values[chain.id] = chain.values
        if number % BLOCK == BLOCK - 1:
            yield
    rng = random.Random(2)
    for _ in range(bench.size(REPEATS, 2)):
        await _listings(bench, bench.saver, values, "")
        yield
        # Opened anew each time: what a stranger has read once it knows.
        async with bench.place.open() as stranger:
            await _listings(bench, stranger, values, ", stranger")
        yield
        for id in rng.choices(list(values), k=10):
            found = await bench.timed(
                "by id", bench.saver.aget_tuple(at("history", id))
            )
            bench.check_tuple(found, values[id], "a checkpoint by id")
        yield


async def _listings(
    bench: Bench, saver: AnySaver, values: dict[str, dict[str, Any]], who: str
) -> None:
    newest = sorted(values, reverse=True)
    some = await bench.timed(f"list 10{who}", listed(saver, "history", limit=10))
    _check(bench, some, newest[:10], values)
    tag = {"tag": 7}
    few = await bench.timed(f"filter 1 %{who}", listed(saver, "history", filter=tag))
    _check(bench, few, [id for id in newest if values[id]["n"] % SHARE == 7], values)
    whole = await bench.timed(f"list all{who}", listed(saver, "history"))
    _check(bench, whole, newest, values)


def _check(
    bench: Bench,
    found: list[CheckpointTuple],
    ids: list[str],
    values: dict[str, dict[str, Any]],
) -> None:
    bench.check([each.checkpoint["id"] for each in found] == ids, "a listing's ids")
    for each, id in zip(found, ids, strict=True):
        bench.check_tuple(each, values[id], "a listed checkpoint")
        writes = [value for _, _, value in each.pending_writes or ()]
        right = [f"write of {values[id]['n']}", None]
        bench.check(writes == right, "a listed checkpoint's writes")


async def listed(
    saver: AnySaver, thread: str | None, **options: Any
) -> list[CheckpointTuple]:
    """All that a listing gives."""
    config = None if thread is None else at(thread)
    return [each async for each in saver.alist(config, **options)]
