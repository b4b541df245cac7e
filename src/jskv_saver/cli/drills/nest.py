"""The drills' side of their workers: processes that are cheap to start and to kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jskv_saver.cli.demo_process import environment

WORKER: Final = (sys.executable, "-m", "jskv_saver.cli.drills.worker")
_PATIENCE: Final = 60.0
"""Seconds after which a worker that says nothing never will."""


class WorkerError(Exception):
    """A worker did not do what it was told."""


@dataclass
class Worker:
    """A process.

    Attributes:
        pid: Its id.
        said: What it has reported, by event.
        code: Its exit code, once it has ended; negative: the signal.
    """

    pid: int
    said: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    code: int | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def kill(self) -> None:
        """SIGKILL it, if it is there."""
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        await self._until(lambda: self.code is not None)
        assert self.code is not None
        return self.code

    async def event(self, name: str) -> Mapping[str, Any]:
        """Wait for a report.

        Raises:
            WorkerError: It ended before.
        """
        await self._until(lambda: name in self.said or self.code is not None)
        if name not in self.said:
            raise WorkerError(f"process {self.pid} ended before it was {name}")
        return self.said[name]

    async def _until(self, true: Any) -> None:
        async with asyncio.timeout(_PATIENCE):
            while not true():
                self.changed.clear()
                await self.changed.wait()


class Nest:
    """Starts workers: forks of a process that has imported all they need.

    Args:
        home: A directory for what they write on standard error.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._log = home / "log"
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._workers: dict[int, Worker] = {}
        self._born: asyncio.Queue[Worker | None] = asyncio.Queue()
        self._turn = asyncio.Lock()

    async def start(self, order: Mapping[str, Any]) -> Worker:
        """Start a worker.

        Raises:
            WorkerError: The process that forks them is gone.
        """
        async with self._turn, asyncio.timeout(_PATIENCE):
            process = self._process or await self._begin()
            assert process.stdin
            process.stdin.write(json.dumps(order).encode() + b"\n")
            worker = await self._born.get()
        if worker is None:
            raise WorkerError(f"no worker starts: {self.complaint()}")
        return worker

    async def run(self, order: Mapping[str, Any]) -> Worker:
        """Start a worker, and wait for its end.

        Raises:
            WorkerError: It did not end by itself, and well.
        """
        worker = await self.start(order)
        if await worker.ended() != 0:
            raise WorkerError(
                f"process {worker.pid} ended with {worker.code}: {self.complaint()}"
            )
        return worker

    def complaint(self) -> str:
        """The last line that a worker wrote on standard error."""
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        lines = said.strip().splitlines()
        return lines[-1] if lines else "it says nothing"

    async def _begin(self) -> asyncio.subprocess.Process:
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=self._home,
                env=environment(self._home),
                start_new_session=True,
            )
        self._listening = asyncio.create_task(self._listen(self._process))
        return self._process

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async for line in process.stdout:
            said = json.loads(line)
            pid = said.pop("pid")
            if "born" in said:
                self._workers[pid] = Worker(pid)
                self._born.put_nowait(self._workers[pid])
                continue
            worker = self._workers[pid]
            if "code" in said:
                worker.code = said["code"]
                del self._workers[pid]
            else:
                worker.said[said.pop("event")] = said
            worker.changed.set()
        self._born.put_nowait(None)

    async def close(self) -> None:
        """End all workers."""
        if self._process is None:
            return
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()
        if self._listening is not None:
            await self._listening


@asynccontextmanager
async def nest(home: Path) -> AsyncIterator[Nest]:
    """A nest, whose workers are gone at the end of the block."""
    opened = Nest(home)
    try:
        yield opened
    finally:
        await opened.close()
