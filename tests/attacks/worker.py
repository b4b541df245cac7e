"""A process that does everything at once on some threads, and writes it down."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from tests.attacks.clocks import skewed_id
from tests.attacks.history import Log, digest
from tests.checkpoint.saving import at, checkpoint, id_of, listed, meta

from jskv_saver import JetStreamSaver
from jskv_saver.errors import JskvError

GENERATION = 2.0
"""Seconds after which all go on to fresh threads: on these every loss counts again."""
CHANNELS = [["a"], ["a", "b"], ["a", "b", "c"], ["__error__"]]
_OTHERS = [
    *["put"] * 10,
    *["writes"] * 8,
    *["latest"] * 5,
    *["by id"] * 4,
    *["list"] * 3,
    *["again"] * 3,
    *["other"] * 3,
]
CALLS = {
    "all": [*_OTHERS, *["prune", "delete_thread", "delete_runs"] * 2],
    "no removals": _OTHERS,
    "steps": ["step"],
}
Kinds = Literal["all", "no removals", "steps"]
_KEPT = 12


async def work(
    *,
    url: str,
    bucket: str,
    log: str,
    seed: int,
    began: int,
    seconds: float,
    threads: int,
    tasks: int,
    hours: float = 0.0,
    conflict: Literal["fork", "raise"] = "fork",
    kinds: Kinds = "all",
    patience: float = 1.5,
    stop: str | None = None,
) -> None:
    """Work for a while.

    Args:
        url: Of the server.
        bucket: The bucket.
        log: Path of the log; its name is that of the process.
        seed: Of the dice.
        began: When all began, on the machine's monotonic clock; it names the threads.
        seconds: Until how long after that.
        threads: On how many threads at a time.
        tasks: How many calls at a time.
        hours: How far the clock is wrong.
        conflict: What to do about others.
        kinds: Whether removals are among the calls; or only steps, each of a run of
            its own, from the latest that was read.
        patience: Seconds that a call may take.
        stop: Path of a file without which nobody ends.
    """
    path = Path(log)
    opened = Log(path, path.name)
    saver = JetStreamSaver.from_conn_string(
        url,
        bucket=bucket,
        timeout=patience,
        reconnect_time_wait=0.02,
        on_conflict=conflict,
    )
    worker = Worker(saver, opened, path.name, random.Random(seed), hours)

    def ended() -> bool:
        enough = time.monotonic_ns() >= began + int(seconds * 1e9)
        return enough and (stop is None or os.path.exists(stop))

    try:
        while not await _entered(saver):
            pass
        # All begin at once, but for those who come later.
        await asyncio.sleep(max(0.0, (began - time.monotonic_ns()) / 1e9))
        await asyncio.gather(
            *(worker.run(began, ended, threads, kinds) for _ in range(tasks))
        )
    finally:
        with suppress(JskvError):
            await saver.aclose()
        opened.close()


async def _entered(saver: JetStreamSaver) -> bool:
    """Settle on this loop, and connect."""
    saver._portal.bind()
    try:
        await saver.setup()
    except JskvError:
        await asyncio.sleep(0.05)
        return False
    return True


class Worker:
    """Makes calls and logs them; values grow from those of the parent."""

    def __init__(
        self,
        saver: JetStreamSaver,
        log: Log,
        name: str,
        dice: random.Random,
        hours: float,
    ) -> None:
        self._saver = saver
        self._log = log
        self._name = name
        self._dice = dice
        self._hours = hours
        # Of each thread what was met last: ids, and values by id.
        self._met: dict[str, dict[str, dict[str, Any]]] = {}
        self._steps = 0

    async def run(
        self, began: int, ended: Callable[[], bool], threads: int, kinds: Kinds
    ) -> None:
        """Call until the end."""
        calls = CALLS[kinds]
        # Whoever comes too late puts something all the same.
        kind = calls[0]
        while True:
            generation = int((time.monotonic_ns() - began) / 1e9 / GENERATION)
            thread = f"{generation}.{self._dice.randrange(threads)}"
            await self._one(kind, thread)
            kind = self._dice.choice(calls)
            if ended():
                return

    async def _one(self, kind: str, thread: str) -> None:
        met = self._met.setdefault(thread, {})
        id = self._dice.choice(list(met)) if met else None
        match kind:
            case "put":
                parent = max(met, default=None) if self._dice.random() < 0.8 else id
                await self._put_new(thread, parent)
            case "step":
                latest = await self.get(thread, None)
                await self._put_new(thread, latest, run=f"{self._name} {self._steps}")
            case "again" | "other" if id:
                await self._put_again(thread, id, other=kind == "other")
            case "writes" if id:
                await self._put_writes(thread, id)
            case "latest":
                await self.get(thread, None)
            case "by id" if id:
                await self.get(thread, id)
            case "list":
                await self.list(thread)
            case "prune":
                call = self._saver.aprune([thread])
                await self._log.call("prune", thread, {}, call)
            case "delete_thread" if self._dice.random() < 0.3:
                call = self._saver.adelete_thread(thread)
                await self._log.call("delete_thread", thread, {}, call)
            case "delete_runs":
                runs = [self._run(thread)]
                call = self._saver.adelete_for_runs(runs)
                await self._log.call("delete_runs", thread, {"runs": runs}, call)

    async def get(self, thread: str, id: str | None) -> str | None:
        """Read a checkpoint, or the latest; its id."""
        call = self._saver.aget_tuple(at(id, thread=thread))
        found = await self._log.call("get", thread, {"id": id}, call)
        if found is None:
            return None
        self._meet(thread, id_of(found), found.checkpoint["channel_values"])
        return id_of(found)

    async def list(self, thread: str) -> None:
        """Read all checkpoints."""
        call = listed(self._saver, at(thread=thread))
        await self._log.call("list", thread, {}, call)

    async def _put_new(
        self, thread: str, parent: str | None, *, run: str | None = None
    ) -> None:
        id = skewed_id(self._hours)
        before = self._met[thread].get(parent or "", {})
        values = {
            "keep": f"{thread} " * 300,
            "grow": [*before.get("grow", ())[-9:], f"{id} " * 20],
            "own": f"{id} " * self._dice.choice((1, 60, 200)),
        }
        await self._put(thread, id, parent, values, run)

    async def _put_again(self, thread: str, id: str, *, other: bool) -> None:
        """The very same, if its parent is known; or another one under its id."""
        known = self._met[thread][id]
        values = {name: known[name] for name in known if not name.startswith("its ")}
        if "its parent" in known:
            if other:
                values["own"] = f"other {self._steps}"
            await self._put(thread, id, known["its parent"], values, known["its run"])

    async def _put(
        self,
        thread: str,
        id: str,
        parent: str | None,
        values: dict[str, Any],
        run: str | None = None,
    ) -> None:
        versions: dict[str, str | int | float] = {"keep": 1, "grow": id, "own": id}
        new = dict(versions)
        if parent is not None:
            del new["keep"]
        run = run or self._run(thread)
        self._steps += 1
        args = {
            "id": id,
            "parent": parent,
            "values": {name: digest(value) for name, value in values.items()},
            "run": run,
        }
        made = checkpoint(id, values, versions)
        metadata = meta(run_id=run, step=1)
        call = self._saver.aput(at(parent, thread=thread), made, metadata, new)
        if await self._log.call("put", thread, args, call):
            self._meet(thread, id, {**values, "its parent": parent, "its run": run})

    async def _put_writes(self, thread: str, id: str) -> None:
        task = f"task {self._dice.randrange(3)}"
        # Of a task each channel has its number, whatever the call.
        channels = self._dice.choice(
            [["a"], ["a", "b"], ["a", "b", "c"], ["__error__"]]
        )
        size = self._dice.choice((1, 1, 1, 10, 60_000))
        self._steps += 1
        writes = [
            (channel, f"{self._name} {self._steps} {channel} " * size)
            for channel in channels
        ]
        args = {
            "id": id,
            "task": task,
            "path": f"~{9 - int(task[-1])}",
            "writes": [[channel, digest(value)] for channel, value in writes],
        }
        call = self._saver.aput_writes(
            at(id, thread=thread), writes, task, str(args["path"])
        )
        await self._log.call("writes", thread, args, call)

    def _run(self, thread: str) -> str:
        """One run out of a few of this process."""
        return f"{self._name} {thread} {self._steps // 8 % 2}"

    def _meet(self, thread: str, id: str, values: dict[str, Any]) -> None:
        met = self._met[thread]
        # What a put knows of itself, a read does not.
        met.setdefault(id, values)
        while len(met) > _KEPT:
            del met[min(met)]
