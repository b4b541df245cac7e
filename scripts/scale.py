"""How the cost of a call grows with its thread, and with the bucket.

    python -m scripts.scale               two minutes; prints both tables
    python -m scripts.scale --quick       small sizes, for the tests
    python -m scripts.scale --write-docs  puts them, and their curves, into docs/

One thread is measured when it has so many checkpoints, and small threads are in
a bucket that has so many keys of others. Medians; a whole thread is deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base.id import uuid6

from jskv_saver import JetStreamSaver, LocalServer

THREAD = (100, 1_000, 10_000)
BUCKET = (1_000, 10_000, 100_000, 1_000_000)
CALLS = 60
DELETED = 20
SMALL = 4
"""Checkpoints of a small thread."""
DOCS = Path(__file__).parents[1] / "docs"
LIMITS = {"put": 3.0, "latest": 3.0, "list 10": 2.0}
"""What a call on the longest thread may take of the one on the shortest."""
IN_A_FULL_BUCKET = 1.5
A_KEY = 2.0
"""Microseconds that each key of a deleted thread may take."""

OTHERS = "others"
"""The namespace that fills the bucket."""
FILLING = {"l": b"x" * 200}

Row = dict[str, float]
"""By call: milliseconds."""


def at(thread: str, id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread, "checkpoint_ns": ""}
    if id is not None:
        configurable["checkpoint_id"] = id
    return {"configurable": configurable}


class Thread:
    """A thread that grows by small steps."""

    def __init__(self, saver: JetStreamSaver, name: str) -> None:
        self.saver = saver
        self.name = name
        self.steps = self.tasks = 0
        self.id: str | None = None

    async def put(self) -> None:
        """A checkpoint with a counter and a text, on top of the one before."""
        config, self.id = at(self.name, self.id), str(uuid6(clock_seq=self.steps))
        values = {"n": self.steps, "text": f"step {self.steps} " * 20}
        versions: dict[str, Any] = dict.fromkeys(values, self.steps)
        checkpoint = Checkpoint(
            v=4,
            id=self.id,
            ts=datetime.now(UTC).isoformat(),
            channel_values=values,
            channel_versions=versions,
            versions_seen={},
            updated_channels=None,
        )
        metadata: CheckpointMetadata = {"source": "loop", "step": self.steps}
        await self.saver.aput(config, checkpoint, metadata, versions)
        self.steps += 1

    async def latest(self) -> None:
        """Read it."""
        found = await self.saver.aget_tuple(at(self.name))
        assert found is not None
        assert found.checkpoint["id"] == self.id

    async def by_id(self) -> None:
        """Read it by its id."""
        found = await self.saver.aget_tuple(at(self.name, self.id))
        assert found is not None

    async def write(self) -> None:
        """Two pending writes of a task of its own."""
        self.tasks += 1
        writes = [("n", self.tasks), ("text", f"task {self.tasks}")]
        await self.saver.aput_writes(at(self.name, self.id), writes, f"{self.tasks}")

    async def newest(self) -> None:
        """List the newest ten."""
        rows = [row async for row in self.saver.alist(at(self.name), limit=10)]
        assert len(rows) == min(10, self.steps)

    async def delete(self) -> None:
        """Delete it."""
        await self.saver.adelete_thread(self.name)


async def median(call: Callable[[], Awaitable[object]], times: int = CALLS) -> float:
    """Milliseconds."""
    spent: list[float] = []
    for _ in range(times):
        before = time.perf_counter()
        await call()
        spent.append(time.perf_counter() - before)
    return statistics.median(spent) * 1000


async def along_a_thread(url: str, sizes: Sequence[int]) -> dict[int, Row]:
    """What the calls take when a thread has so many checkpoints."""
    found: dict[int, Row] = {}
    async with JetStreamSaver.from_conn_string(url, bucket="thread") as saver:
        for size in sizes:
            thread = Thread(saver, f"of {size}")
            while thread.steps < size:
                await thread.put()
            found[size] = {
                "put": await median(thread.put),
                "latest": await median(thread.latest),
                "list 10": await median(thread.newest),
            }
            keys = thread.steps + 2
            before = time.perf_counter()
            await thread.delete()
            spent = time.perf_counter() - before
            found[size]["delete"] = spent * 1000
            found[size]["delete, us a key"] = spent * 1e6 / keys
    return found


async def in_a_bucket(url: str, sizes: Sequence[int]) -> dict[int, Row]:
    """What the calls take on small threads when others have so many keys."""
    found: dict[int, Row] = {}
    async with JetStreamSaver.from_conn_string(url, bucket="bucket") as saver:
        keys = 0
        for size in sizes:
            keys = await _fill(saver, keys, size)
            mine = [Thread(saver, f"{size} {number}") for number in range(CALLS)]
            for thread in mine:
                while thread.steps < SMALL:
                    await thread.put()
            found[size] = {
                "put": await median(_each(mine, Thread.put)),
                "latest": await median(_each(mine, Thread.latest)),
                "list 10": await median(_each(mine, Thread.newest)),
                "delete": await median(_each(mine, Thread.delete), DELETED),
            }
    return found


def _each(
    threads: Sequence[Thread], call: Callable[[Thread], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    """The call, on one thread after the other."""
    turn = iter(threads)
    return lambda: call(next(turn))


async def _fill(saver: JetStreamSaver, keys: int, size: int) -> int:
    """Store records of other threads until there are so many keys."""
    store, block = saver.store, 500
    while keys < size:
        writes = [
            (
                "cp",
                ("default", f"other {n // 8}", "", f"{n:012}"),
                {"l": b"x" * 200},
                None,
            )
            for n in range(keys, min(keys + block, size))
        ]
        await store.put_many("others", writes, exact=False)
        keys += len(writes)
    return keys


def table(title: str, found: Mapping[int, Row]) -> str:
    """Rows by size, as Markdown."""
    columns = list(next(iter(found.values())))
    lines = [
        f"| {title} | {' | '.join(columns)} |",
        "|" + " ---: |" * (len(columns) + 1),
    ]
    for size, row in found.items():
        cells = " | ".join(f"{row[name]:.2f}" for name in columns)
        lines.append(f"| {size:,} | {cells} |")
    return "\n".join(lines)


def judged(thread: Mapping[int, Row], bucket: Mapping[int, Row]) -> list[str]:
    """The bounds, kept or missed."""
    (first, *_, last), (small, *_, full) = thread.values(), bucket.values()
    lines = [
        _verdict(f"thread: {name}", last[name] / first[name], most)
        for name, most in LIMITS.items()
    ]
    lines.append(_verdict("thread: delete, us a key", last["delete, us a key"], A_KEY))
    lines += [
        _verdict(f"bucket: {name}", full[name] / small[name], IN_A_FULL_BUCKET)
        for name in full
    ]
    return lines


def _verdict(name: str, value: float, most: float) -> str:
    return f"{name:26}<= {most:<5g}{value:7.2f}  {'ok' if value <= most else 'MISS'}"


def curves(found: Mapping[int, Row], names: Sequence[str], title: str) -> str:
    """A picture: what each call takes of what it took at first, over the size."""
    sizes, rows = list(found), list(found.values())
    ratios = {name: [row[name] / rows[0][name] for row in rows] for name in names}
    top = max(2.0, max(map(max, ratios.values())) * 1.1)

    def x(index: int) -> int:
        return LEFT + round(index * 440 / max(len(sizes) - 1, 1))

    def y(ratio: float) -> int:
        return LOW - round(ratio / top * (LOW - 40))

    right = x(len(sizes) - 1)
    parts = [_text(LEFT, 20, title)]
    for ratio in range(int(top) + 1):
        parts.append(_line([(LEFT, y(ratio)), (right, y(ratio))], "#ddd"))
        parts.append(_text(LEFT - 30, y(ratio) + 4, f"{ratio}x"))
    for index, size in enumerate(sizes):
        parts.append(_text(x(index) - 20, LOW + 18, f"{size:,}"))
    for colour, name in zip(COLOURS, names, strict=False):
        points = [(x(index), y(ratio)) for index, ratio in enumerate(ratios[name])]
        parts.append(_line(points, colour))
        label = f"{name} {rows[-1][name]:.2f} ms"
        parts.append(_text(right + 8, points[-1][1] + 4, label, colour))
    body = "\n".join(parts)
    area = 'width="640" height="290"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {area} \
font-family="sans-serif" font-size="12">
<rect {area} fill="white"/>
{body}
</svg>
"""


LEFT, LOW = 50, 250
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def _text(x: int, y: int, text: str, colour: str = "#222") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}">{text}</text>'


def _line(points: Sequence[tuple[int, int]], colour: str) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}"/>'


def write(thread: Mapping[int, Row], bucket: Mapping[int, Row]) -> None:
    """Replace the section of the page, and the pictures."""
    page = DOCS / "benchmarks.md"
    body = "\n\n".join(
        [
            table("checkpoints in the thread", thread),
            "![What each call takes on a longer thread](scale-thread.svg)",
            table("keys in the bucket", bucket),
            "![What each call takes in a fuller bucket](scale-bucket.svg)",
            "```text\n" + "\n".join(judged(thread, bucket)) + "\n```",
        ]
    )
    begin, end = "<!-- scale: begin -->", "<!-- scale: end -->"
    text = page.read_text()
    pattern = re.compile(f"{begin}.*{end}", re.DOTALL)
    assert pattern.search(text), f"{page} has no section for this"
    page.write_text(pattern.sub(lambda _: f"{begin}\n{body}\n{end}", text))
    calls = ["put", "latest", "list 10"]
    (DOCS / "scale-thread.svg").write_text(
        curves(thread, calls, "One thread: times what it takes at first")
    )
    (DOCS / "scale-bucket.svg").write_text(
        curves(
            bucket, [*calls, "delete"], "Small threads: times what it takes at first"
        )
    )


async def measured(quick: bool) -> tuple[dict[int, Row], dict[int, Row]]:
    """Both tables."""
    share = 100 if quick else 1
    lengths = [max(size // share, 4) for size in THREAD]
    fills = [max(size // share, 10) for size in BUCKET]
    with LocalServer(sync_interval="2m") as server:
        thread = await along_a_thread(server.url, lengths)
        return thread, await in_a_bucket(server.url, fills)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    thread, bucket = asyncio.run(measured(options.quick))
    print(table("checkpoints in the thread", thread), end="\n\n")
    print(table("keys in the bucket", bucket), end="\n\n")
    print("\n".join(judged(thread, bucket)))
    if options.write_docs:
        write(thread, bucket)


if __name__ == "__main__":
    main()
