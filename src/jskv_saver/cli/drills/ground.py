"""Where the drills take place, and what they find."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jskv_saver import JetStreamSaver
from jskv_saver.cli.drills.graph import EXPECTED, Event, Tally
from jskv_saver.cli.drills.nest import Nest, Worker, WorkerError
from jskv_saver.cli.drills.wire import wire_to
from jskv_saver.cli.drills.worker import open_saver

DEFAULT_SAVER: Final = "jskv_saver.cli.drills.worker:open_saver"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that should hold.

    Attributes:
        what: What it is.
        holds: Whether it does.
        detail: How it does not; empty where it does.
    """

    what: str
    holds: bool
    detail: str = ""


@dataclass
class Report:
    """What a drill found.

    Attributes:
        name: The drill.
        title: What it does, in a line.
        checks: What should hold.
        columns: Of the table of what was seen.
        rows: Its rows.
        seconds: How long it took.
        skipped: Why it was not done; None.
    """

    name: str
    title: str
    checks: list[Check] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str | None = None

    @property
    def holds(self) -> bool:
        """Whether all does that should."""
        return all(check.holds for check in self.checks)

    def check(self, what: str, failures: Any = ()) -> None:
        """Add something that should hold: it does where there are no failures."""
        found = [str(each) for each in failures]
        self.checks.append(Check(what, not found, "; ".join(found[:3])))


@dataclass(frozen=True)
class Death:
    """A worker that was killed, and the one that went on.

    Attributes:
        lives: How many messages it sent.
        victim: The worker.
        heir: The one that went on.
        before: What the nodes of the first one did.
        after: What those of the second one did.
    """

    lives: int
    victim: Worker
    heir: Worker
    before: list[Event]
    after: list[Event]

    @property
    def result(self) -> str:
        """What is wrong with the end; empty: nothing."""
        log = sorted(self.heir.said.get("ended", {}).get("log", ()))
        if log != sorted(EXPECTED):
            return f"after {self.lives} messages it ended with {log}"
        return ""


@dataclass(frozen=True)
class Ground:
    """A server, a nest, a directory.

    Attributes:
        url: The server.
        nest: Starts the workers.
        home: A directory for what nodes write down.
        stride: Every how many messages a worker is killed; 1: at each.
        saver: What the workers open.
    """

    url: str
    nest: Nest
    home: Path
    stride: int = 1
    saver: str = DEFAULT_SAVER

    def order(self, thread: str, action: str, **more: Any) -> Mapping[str, Any]:
        """An order to a worker."""
        path = self.home / f"{thread}.tally"
        return {
            "url": self.url,
            "thread": thread,
            "tally": str(path),
            "action": action,
            "saver": self.saver,
            **more,
        }

    def tally(self, thread: str) -> list[Event]:
        """What the nodes of a thread did, in all processes."""
        return Tally(self.home / f"{thread}.tally").events()

    def open_saver(self) -> AbstractAsyncContextManager[JetStreamSaver]:
        """A saver in this process."""
        return open_saver(self.url)

    async def die_everywhere(
        self,
        name: str,
        action: str,
        looked: Callable[[str], Awaitable[None]] | None = None,
        **more: Any,
    ) -> list[Death]:
        """Kill a worker before each of its messages; each time another goes on.

        Args:
            name: A name for its threads.
            action: What it does.
            looked: Is called with each thread between the two.
            **more: Of the order.
        """
        deaths: list[Death] = []
        lives = 0
        while True:
            thread = f"{name}-{lives}"
            victim, killed = await self._die(thread, action, lives, **more)
            if looked is not None:
                await looked(thread)
            before = self.tally(thread)
            if not killed:
                return deaths
            heir = await self.nest.run(self.order(thread, "resume", **more))
            after = self.tally(thread)[len(before) :]
            deaths.append(Death(lives, victim, heir, before, after))
            lives += self.stride

    async def _die(
        self, thread: str, action: str, lives: int, **more: Any
    ) -> tuple[Worker, bool]:
        async with wire_to(self.url, lives) as wire:
            worker = await self.nest.start(
                {**self.order(thread, action, **more), "url": wire.url}
            )
            wire.to_kill(worker.kill)
            code = await worker.ended()
            if code not in (0, -signal.SIGKILL):
                raise WorkerError(
                    f"process {worker.pid} ended with {code}: {self.nest.complaint()}"
                )
            return worker, code != 0
