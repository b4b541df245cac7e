"""Where the time of a call goes, by part of the program.

    python -m scripts.account               a minute; prints a table for each call
    python -m scripts.account --quick       few calls, for the tests
    python -m scripts.account --write-docs  puts the table into docs/benchmarks.md

Each call is made many times under cProfile, whose own cost makes many small functions
look dearer than they are: the shares tell, and the first row, which is without it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from scripts.scale import Thread

from jskv_saver import JetStreamSaver, LocalServer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
CALLS = 1000
STEPS = 100
"""Checkpoints of the thread before anything is measured."""
PARTS = (
    ("serialising (LangGraph)", r"langgraph|langchain|ormsgpack"),
    ("layout, increments, checksums", r"checkpoint/|blake2b|crc32|sha256"),
    ("port and document codec", r"document/|cbor2"),
    ("keys, fences, bucket", r"adapters/jetstream"),
    ("NATS protocol", r"_nats/|/nats/"),
    ("bridge between loops", r"_portal"),
    ("waiting for the server", r"select\.epoll|poll"),
    ("socket", r"_socket"),
    ("event loop", r"asyncio|selectors|_contextvars|weakref|contextlib"),
)
"""The first that fits a function's file or name has its time."""
REST = "built-in functions, the rest"


def part_of(function: str) -> str:
    """The part of the program that a function belongs to."""
    where = function.replace(str(ROOT), "")
    for part, pattern in PARTS:
        if re.search(pattern, where):
            return part
    return REST


async def account(
    call: Callable[[], Awaitable[object]], times: int
) -> tuple[float, Mapping[str, float]]:
    """The median in microseconds, and each part's share under the profiler."""
    spent: list[float] = []
    for _ in range(times):
        before = time.perf_counter()
        await call()
        spent.append(time.perf_counter() - before)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(times):
        await call()
    profile.disable()
    shares: dict[str, float] = {}
    for entry in profile.getstats():
        code = entry.code
        where = code if isinstance(code, str) else f"{code.co_filename}:{code.co_name}"
        part = part_of(where)
        shares[part] = shares.get(part, 0.0) + entry.inlinetime
    whole = sum(shares.values())
    return statistics.median(spent) * 1e6, {p: s / whole for p, s in shares.items()}


async def measured(times: int) -> dict[str, tuple[float, Mapping[str, float]]]:
    """By call."""
    with LocalServer(sync_interval="2m") as server:
        async with JetStreamSaver.from_conn_string(server.url) as saver:
            thread = Thread(saver, "account")
            for _ in range(STEPS):
                await thread.put()
            # The writes last: all are of one checkpoint, and reads would have them.
            return {
                "aput": await account(thread.put, times),
                "latest": await account(thread.latest, times),
                "by id": await account(thread.by_id, times),
                "list 10": await account(thread.newest, times // 5),
                "aput_writes": await account(thread.write, times),
            }


def table(found: Mapping[str, tuple[float, Mapping[str, float]]]) -> str:
    """Parts by call, as Markdown."""
    lines = [f"| | {' | '.join(found)} |", "| --- |" + " ---: |" * len(found)]
    medians = " | ".join(f"{median:.0f} us" for median, _ in found.values())
    lines.append(f"| a call, median | {medians} |")
    for part in (*(part for part, _ in PARTS), REST):
        cells = [f"{shares.get(part, 0.0):.0%}" for _, shares in found.values()]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    told = table(asyncio.run(measured(20 if options.quick else CALLS)))
    print(told)
    if options.write_docs:
        begin, end = "<!-- account: begin -->", "<!-- account: end -->"
        pattern = re.compile(f"{begin}.*{end}", re.DOTALL)
        text = PAGE.read_text()
        assert pattern.search(text), f"{PAGE} has no section for this"
        PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{told}\n{end}", text))


if __name__ == "__main__":
    main()
