"""All drills, in the order of the report."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jskv_saver.cli.drills.changing import change
from jskv_saver.cli.drills.dying import accept, survive
from jskv_saver.cli.drills.ground import DEFAULT_SAVER, Ground, Report
from jskv_saver.cli.drills.leasing import resume_twice
from jskv_saver.cli.drills.nest import WorkerError, nest
from jskv_saver.cli.drills.pruning import prune
from jskv_saver.cli.drills.repeating import fail, replay
from jskv_saver.errors import InvalidRequestError, JskvError

_PATIENCE: Final = 300.0
"""Seconds that one drill may take."""


@dataclass(frozen=True, slots=True)
class Drill:
    """A drill.

    Attributes:
        name: By which it is chosen.
        title: What it does, in a line.
        run: Does it, and adds to the report what it finds.
    """

    name: str
    title: str
    run: Callable[[Ground, Report], Awaitable[None]]


DRILLS: Final[tuple[Drill, ...]] = (
    Drill("death", "kill -9 the worker before each of its messages", survive),
    Drill("failure", "one of two parallel nodes fails", fail),
    Drill("admission", "die between accepting and the first checkpoint", accept),
    Drill("lease", "two processes resume one thread at once", resume_twice),
    Drill("replay", "what runs again on a resume and on a replay", replay),
    Drill("change", "the graph changes under a thread that waits", change),
    Drill("prune", "prune threads that run and threads that wait", prune),
)


def chosen(names: Sequence[str]) -> list[Drill]:
    """The drills with some names; all if there are none.

    Raises:
        InvalidRequestError: A name is none of a drill.
    """
    by_name = {drill.name: drill for drill in DRILLS}
    for name in names:
        if name not in by_name:
            raise InvalidRequestError(
                f"there is no drill {name!r}; there are: {', '.join(by_name)}"
            )
    return [by_name[name] for name in names] or list(DRILLS)


async def perform(
    drills: Sequence[Drill],
    url: str,
    *,
    stride: int = 1,
    saver: str = DEFAULT_SAVER,
    done: Callable[[Report], None] = lambda _: None,
) -> list[Report]:
    """Do drills, one after the other.

    Args:
        drills: Which.
        url: The server; its bucket `jskv` is written to.
        stride: Every how many messages a worker is killed; 1: at each.
        saver: What the workers open.
        done: Is called after each.
    """
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="jskv-drill-") as home:
        async with nest(Path(home)) as workers:
            for drill in drills:
                folder = Path(home) / drill.name
                folder.mkdir()
                ground = Ground(url, workers, folder, stride, saver)
                reports.append(await _perform(drill, ground))
                done(reports[-1])
    return reports


async def _perform(drill: Drill, ground: Ground) -> Report:
    report = Report(drill.name, drill.title)
    begun = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE):
            await drill.run(ground, report)
    except TimeoutError:
        report.check("it comes to an end", [f"not within {_PATIENCE:.0f} seconds"])
    except (JskvError, WorkerError) as exc:
        report.check("it can be done to its end", [f"{type(exc).__name__}: {exc}"])
    report.seconds = time.monotonic() - begun
    return report
