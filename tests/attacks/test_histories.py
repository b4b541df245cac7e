"""Histories of many processes and faults: a saver that keeps its word has them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.checker import REMOVALS, forks, violations
from tests.attacks.history import Event, Log, by_thread, merged
from tests.attacks.indexes import check_threads
from tests.attacks.nursery import Nursery, nursery
from tests.attacks.proxy import Proxy, proxy_to
from tests.attacks.servers import terminate
from tests.checkpoint.saving import at, listed
from tests.conftest import BINARY
from tests.patience import PATIENCE
from tests.soak import SOAK

from jskv_saver import JetStreamSaver, LocalServer

SECONDS = 120.0 if SOAK else 4.0
SEEDS = range(5) if SOAK else range(1)
SKEWS = (0.0, 5.0, -3.0, 0.001)
FAULTS = ("process", "server", "wire", "cut")
WORK = "tests.attacks.worker:work"


class Crew:
    """The processes of a run: whoever is killed is replaced."""

    def __init__(self, processes: Nursery, folder: Path, **settings: Any) -> None:
        self._processes = processes
        self._folder = folder
        self._settings = settings
        self._alive: dict[int, int] = {}
        self._born = 0
        self.deaths = 0

    async def hire(self, place: int, url: str) -> None:
        """A process more."""
        self._born += 1
        pid = await self._processes.start(
            WORK,
            url=url,
            log=str(self._folder / f"p{self._born}"),
            seed=self._settings["seed"] * 1000 + self._born,
            hours=SKEWS[place % len(SKEWS)],
            **{name: v for name, v in self._settings.items() if name != "seed"},
        )
        self._alive[place] = pid

    async def replace(self, place: int, url: str) -> None:
        """Kill one, wherever it is, and put another in its place."""
        pid = self._alive[place]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        code = await self._processes.end(pid)
        # It may have just come to its end.
        assert code in (0, -signal.SIGKILL)
        self.deaths += code != 0
        await self.hire(place, url)

    async def end(self) -> None:
        """Wait until all have done their work."""
        for pid in self._alive.values():
            assert await self._processes.end(pid) == 0

    def events(self) -> list[Event]:
        """What they have logged."""
        return merged(self._folder.iterdir())


async def _disturb(
    dice: random.Random,
    until: float,
    server: LocalServer,
    end: Callable[[LocalServer], None],
    proxy: Proxy,
    crew: Crew,
) -> None:
    """End the server, cut the wire, kill processes, again and again.

    Each kind once, whatever the dice say and however slow the machine is.
    """
    for number in count():
        await asyncio.sleep(dice.uniform(0.1, 0.6))
        if number >= len(FAULTS) and time.monotonic() > until:
            return
        match FAULTS[number] if number < len(FAULTS) else dice.choice(FAULTS):
            case "process":
                place = dice.randrange(4)
                await crew.replace(place, proxy.url if place % 2 else server.url)
            case "server":
                await asyncio.to_thread(end, server)
                await asyncio.to_thread(server.start)
            case "wire":
                proxy.hang_up()
            case "cut":
                proxy.cut["answer"] = dice.randrange(20)


async def _look(
    server: LocalServer, folder: Path, threads: list[str], unfinished: set[str]
) -> None:
    """At the end, one who has seen nothing reads it all.

    A deletion whose caller was told nothing, or died, may have left what `repair` puts
    in order.
    """
    log = Log(folder / "last", "last")
    async with JetStreamSaver.from_conn_string(server.url) as saver:
        for thread in threads:
            config = at(thread=thread)
            await log.call("get", thread, {"id": None}, saver.aget_tuple(config))
            await log.call("list", thread, {}, listed(saver, config))
        await saver.arepair(sorted(unfinished))
        await check_threads(saver.store, *threads)
    log.close()


# A killed server of a single copy may bring back an older version of what was
# overwritten and then purged (nats-io/nats-server#8505), so where one is killed nothing
# is removed, and where things are removed it is ended by SIGTERM.
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("end", "kinds"),
    [(LocalServer.kill, "no removals"), (terminate, "all")],
    ids=["killed server", "removals"],
)
@pytest.mark.timeout(SECONDS + 60)
async def test_whatever_fails_the_history_is_in_order(
    tmp_path: Path, seed: int, end: Callable[[LocalServer], None], kinds: str
) -> None:
    dice = random.Random(seed)
    logs, stop = tmp_path / "logs", tmp_path / "stop"
    logs.mkdir()
    # It syncs always, as one that must survive more than processes would.
    with LocalServer(binary=BINARY) as server:
        async with proxy_to(server.url) as proxy, nursery() as processes:
            await processes.ready()
            crew = Crew(
                processes,
                logs,
                seed=seed,
                bucket="jskv",
                began=time.monotonic_ns(),
                seconds=SECONDS,
                threads=4,
                tasks=3,
                kinds=kinds,
                stop=str(stop),
            )
            until = time.monotonic() + SECONDS
            for place in range(4):
                await crew.hire(place, proxy.url if place % 2 else server.url)
            await _disturb(dice, until, server, end, proxy, crew)
            proxy.heal()
            stop.touch()
            await crew.end()
        events = crew.events()
        unfinished = {
            event.thread
            for event in events
            if event.operation == "delete_thread" and event.outcome != "done"
        }
        await _look(server, logs, list(by_thread(events)), unfinished)

    events = crew.events()
    assert violations(events) == []
    # All kinds of calls were made, and ended in all kinds of ways.
    assert crew.deaths
    done = {event.operation for event in events if event.outcome == "done"}
    assert done >= {"put", "writes", "get", "list"}
    assert kinds != "all" or done & REMOVALS
    outcomes = {event.outcome for event in events if event.operation == "put"}
    assert outcomes == {"done", "refused", "unknown"}


@pytest.mark.parametrize("threads", [1, 40])
@pytest.mark.parametrize(
    ("conflict", "kinds"), [("fork", "no removals"), ("raise", "steps")]
)
async def test_forty_tasks_and_eight_processes_at_once(
    nats_url: str, bucket: str, tmp_path: Path, conflict: str, kinds: str, threads: int
) -> None:
    seconds = 20.0 if SOAK else 1.0
    async with nursery() as processes:
        await processes.ready()
        common: dict[str, Any] = {
            "url": nats_url,
            "bucket": bucket,
            "began": time.monotonic_ns() + 500_000_000,
            "threads": threads,
            "conflict": conflict,
            "kinds": kinds,
            "seconds": seconds,
            "patience": PATIENCE,
        }
        logs = [tmp_path / f"p{number}" for number in range(9)]
        # One of them does forty calls at a time.
        pids = [
            await processes.start(
                WORK,
                log=str(logs[number]),
                seed=number,
                tasks=4 if number else 40,
                **common,
            )
            for number in range(9)
        ]
        for pid in pids:
            assert await processes.end(pid) == 0
    events = merged(logs)
    assert violations(events) == []
    assert len({event.process for event in events}) == 9
    done = [e for e in events if e.operation == "put" and e.outcome == "done"]
    # Who must start again after each step of another may never be first.
    assert len({put.process for put in done}) >= (2 if conflict == "raise" else 9)
    assert {e.outcome for e in events if e.operation != "put"} == {"done"}
    if conflict == "raise":
        assert any(event.error == "WriterConflictError" for event in events)
        assert forks(events) == []
