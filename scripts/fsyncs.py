"""Counts the fsyncs of a LocalServer while a saver puts checkpoints.

    python scripts/fsyncs.py

Needs strace (Linux), and the right to trace the server.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from jskv_saver import JetStreamSaver, LocalServer

PUTS = 200
CALLS = ("fsync", "fdatasync")


def main() -> int:
    """Print one line for each setting."""
    strace = shutil.which("strace")
    if strace is None:
        print(
            "strace is missing: install the package of that name (apt-get install "
            "strace); it exists on Linux only",
            file=sys.stderr,
        )
        return 1
    for interval in ("always", "2m"):
        print(f"sync_interval {interval!r}: {measure(strace, interval)}", flush=True)
    return 0


def measure(strace: str, interval: str) -> str:
    """Start a server, trace it during the puts, and count."""
    with (
        LocalServer(sync_interval=interval) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        output = Path(folder) / "trace"
        spent = asyncio.run(_puts(strace, server, output))
        calls = counted(output.read_text())
    each = ", ".join(f"{calls[name]} {name}" for name in CALLS)
    return (
        f"{PUTS} puts, {sum(calls.values())} fsyncs ({each}), "
        f"{spent / PUTS * 1000:.1f} ms a put under strace"
    )


async def _puts(strace: str, server: LocalServer, output: Path) -> float:
    """Seconds that the puts took, with strace attached."""
    async with JetStreamSaver.from_conn_string(server.url) as saver:
        # What opens the bucket and the thread is not counted.
        parent = await put(saver, {"configurable": {"thread_id": "t"}}, 0)
        with traced(strace, server.pid, output) as tracing:
            before = time.perf_counter()
            for number in range(1, PUTS + 1):
                parent = await put(saver, parent, number)
            spent = time.perf_counter() - before
            tracing.send_signal(signal.SIGINT)
    return spent


def traced(strace: str, pid: int, output: Path) -> subprocess.Popen[str]:
    """Strace that is attached, and counts."""
    command = [strace, "-f", "-c", "-e", f"trace={','.join(CALLS)}"]
    process = subprocess.Popen(
        [*command, "-o", str(output), "-p", str(pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    said = process.stderr.readline()
    if "attached" not in said:
        process.wait()
        raise SystemExit(f"strace cannot trace the server: {said.strip()}")
    # The pipe is emptied by nobody else, and threads that begin are told in it.
    os.set_blocking(process.stderr.fileno(), False)
    return process


async def put(
    saver: JetStreamSaver, parent: RunnableConfig, number: int
) -> RunnableConfig:
    """Put a small checkpoint."""
    checkpoint = empty_checkpoint()
    checkpoint["id"] = f"{number:06}"
    checkpoint["channel_values"] = {"n": number}
    checkpoint["channel_versions"] = {"n": number}
    parent["configurable"].setdefault("checkpoint_ns", "")
    return await saver.aput(
        parent, checkpoint, {"source": "loop", "step": number}, {"n": number}
    )


def counted(table: str) -> dict[str, int]:
    """How many calls a summary of strace tells of, by name."""
    # % time, seconds, usecs/call, calls, errors (may be absent), syscall.
    row = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$", re.M)
    calls = dict.fromkeys(CALLS, 0)
    calls |= {name: int(number) for number, name in row.findall(table) if name in CALLS}
    return calls


if __name__ == "__main__":
    sys.exit(main())
