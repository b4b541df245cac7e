"""Reads one checkpoint in a process that has just begun; prints times and a digest.

python -m scripts.bench.fresh '{"address": {...}, "config": {...}}'
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from scripts.bench.peers import open_saver
from scripts.bench.run import digest


async def read(task: dict[str, Any]) -> dict[str, Any]:
    """Open, read, and tell the milliseconds of each."""
    started = time.perf_counter()
    async with open_saver(task["address"]) as saver:
        opened = time.perf_counter()
        found = await saver.aget_tuple(task["config"])
        done = time.perf_counter()
    values = found.checkpoint["channel_values"] if found else {}
    return {
        "open": (opened - started) * 1000,
        "read": (done - opened) * 1000,
        "digest": digest(values),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(json.loads(sys.argv[1])))))
