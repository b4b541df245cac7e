"""The demo's side of a worker: start it, hear it, kill it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

WORKER = (sys.executable, "-m", "jskv_saver.cli.demo_worker")


class DemoFailedError(Exception):
    """Something that the demo shows is not as it should be."""


class Worker:
    """A process that runs the graph."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def events(self) -> AsyncIterator[Mapping[str, Any]]:
        """What it reports, until it ends."""
        assert self._process.stdout
        async for line in self._process.stdout:
            yield json.loads(line)

    async def kill(self) -> int:
        """SIGKILL it, and return its exit code: -9 unless it had ended before."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
        return await self._process.wait()

    async def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        return await self._process.wait()

    def died(self, wanted: str) -> DemoFailedError:
        """The error that says that it ended too early, and why."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        reason = f": {lines[-1]}" if lines else ""
        return DemoFailedError(
            f"process {self.pid} ended before it was {wanted}{reason}"
        )


@asynccontextmanager
async def worker(
    order: Mapping[str, Any], home: Path, log: Path, command: Sequence[str] = WORKER
) -> AsyncIterator[Worker]:
    """Start a worker; it is gone at the end of the block, however that ends.

    Args:
        order: What it is to do.
        home: The directory where it could leave files.
        log: Where what it says on standard error goes.
        command: The program.
    """
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=home,
            env=environment(home),
            # The Ctrl-C of a terminal is for the parent, which then ends this one.
            start_new_session=True,
        )
    assert process.stdin
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        yield Worker(process, log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process.stdin.close()


def environment(home: Path) -> dict[str, str]:
    """The environment of a process that finds this package, and no server by itself."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("NATS")
    }
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        # As here, although the directory and the home are others.
        "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
    }
