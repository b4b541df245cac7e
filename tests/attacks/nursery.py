"""Processes that can be killed, many and cheap: forks of one that has imported all.

    in   {"call": "module:function", "args": {...}}      one JSON object a line
    out  {} when it is ready; {"pid": n}, and when it has ended {"pid": n, "code": n}

The function is asynchronous. When the owner is gone, all end.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
_LOOK = 0.005


class Nursery:
    """The owner's side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._born: asyncio.Queue[int] = asyncio.Queue()
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._ready = asyncio.Event()

    async def ready(self) -> None:
        """Wait until a process starts within milliseconds."""
        await self._ready.wait()

    async def start(self, call: str, **args: Any) -> int:
        """Start a process and return its id."""
        assert self._process.stdin
        self._process.stdin.write(
            json.dumps({"call": call, "args": args}).encode() + b"\n"
        )
        return await self._born.get()

    async def end(self, pid: int) -> int:
        """Wait until a process has ended, and return its code; negative: a signal."""
        return await self._ended[pid]

    async def run(self, call: str, **args: Any) -> int:
        """Start a process and wait for its end."""
        return await self.end(await self.start(call, **args))

    async def listen(self) -> None:
        """Take in what it says, until it ends."""
        assert self._process.stdout
        loop = asyncio.get_running_loop()
        async for line in self._process.stdout:
            said = json.loads(line)
            if not said:
                self._ready.set()
            elif "code" in said:
                self._ended[said["pid"]].set_result(said["code"])
            else:
                self._ended[said["pid"]] = loop.create_future()
                self._born.put_nowait(said["pid"])


@asynccontextmanager
async def nursery(*modules: str) -> AsyncIterator[Nursery]:
    """A nursery for the duration of a test, which has imported these modules."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.attacks.nursery",
        *(modules or ("tests.attacks.victim", "tests.attacks.worker")),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    opened = Nursery(process)
    listening = asyncio.create_task(opened.listen())
    try:
        yield opened
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()
        await listening


def _child(call: str, args: dict[str, Any]) -> NoReturn:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    module, name = call.split(":")
    code = 1
    try:
        asyncio.run(getattr(importlib.import_module(module), name)(**args))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**words: int) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


def main() -> None:
    """Fork for each line, and tell who has ended, until there are no more lines."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    _say()
    alive: set[int] = set()
    unread = b""
    while True:
        if select.select([0], [], [], _LOOK)[0]:
            read = os.read(0, 65_536)
            if not read:
                break
            *lines, unread = (unread + read).split(b"\n")
            for line in lines:
                pid = os.fork()
                if not pid:
                    _child(**json.loads(line))
                alive.add(pid)
                _say(pid=pid)
        for pid in list(alive):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                alive.remove(pid)
                _say(pid=pid, code=os.waitstatus_to_exitcode(status))
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
