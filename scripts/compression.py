"""Prints what S2 compression of the bucket saves on disk, and what it costs to read.

Three kinds of content: whole growing lists, as a saver without increments would store
them; small records, as this saver does; and so many that the server does not keep
them all decompressed.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Iterable, Iterator
from pathlib import Path

import ormsgpack

from jskv_saver import JetStreamDocumentStore, LocalServer
from jskv_saver.document.model import Write

WORDS = [f"{stem}{ending}" for stem in "abcdefghij" for ending in ("lo", "mer", "nt")]


def main() -> None:
    """Print one line for each kind and setting."""
    for kind, contents in (
        ("growing lists", list(growing(350))),
        ("6,000 records", list(records(6_000))),
        ("60,000 records", list(records(60_000))),
    ):
        for compression in ("none", "s2"):
            print(
                f"{kind:16}{compression:6}", asyncio.run(measure(compression, contents))
            )


def growing(count: int) -> Iterator[bytes]:
    """A list of messages after each message."""
    rng = random.Random(1)
    messages: list[str] = []
    for _ in range(count):
        messages.append(" ".join(rng.choices(WORDS, k=130)))
        yield ormsgpack.packb(messages)


def records(count: int) -> Iterator[bytes]:
    """Small records with text, numbers and hexadecimal ids."""
    rng = random.Random(1)
    for number in range(count):
        yield ormsgpack.packb(
            {
                "id": rng.randbytes(16).hex(),
                "step": number,
                "versions": {f"channel{n}": rng.randrange(1000) for n in range(10)},
                "content": " ".join(rng.choices(WORDS, k=130)),
            }
        )


async def measure(compression: str, contents: list[bytes]) -> str:
    """Store, then read single ones at random."""
    with LocalServer(sync_interval="2m") as server:
        async with JetStreamDocumentStore.from_conn_string(
            server.url, compression=compression
        ) as store:
            puts = [
                await timed(store.put("n", "bl", f"{at}", {"b": content}))
                for at, content in enumerate(contents[:300])
            ]
            rest = list(enumerate(contents))[300:]
            for at in range(0, len(rest), 400):
                writes: list[Write] = [
                    ("bl", f"{n}", {"b": content}, None)
                    for n, content in rest[at : at + 400]
                ]
                await store.put_many("n", writes, exact=False)
            order = random.Random(2).choices(range(len(contents)), k=300)
            gets = [await timed(store.get("n", "bl", f"{at}")) for at in order]
            size = await asyncio.to_thread(disk_size, server.store_dir)
    return (
        f"disk {size / 1e6:6.1f} MB, put {statistics.median(puts) * 1e6:5.0f} us, "
        f"random get {statistics.median(gets) * 1e3:6.2f} ms "
        f"(p99 {percentile(gets, 0.99) * 1e3:.2f})"
    )


def disk_size(directory: Path) -> int:
    """Bytes of the stream's message blocks."""
    return sum(file.stat().st_size for file in directory.rglob("*.blk"))


async def timed(call: Awaitable[object]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    await call
    return time.perf_counter() - started


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which a share of the values is."""
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


if __name__ == "__main__":
    main()
