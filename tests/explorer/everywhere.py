"""All schedules of many scenarios, on as many processors as there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tests.explorer.scenarios import PAIRS, SCENARIOS, TINY
from tests.explorer.search import Found, Report, Search
from tests.explorer.table import Scenario


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a scenario.

    Attributes:
        name: Its name.
        report: What the search did.
        found: The schedule that breaks an invariant, if there is one.
    """

    name: str
    report: Report
    found: str | None

    def __str__(self) -> str:
        state = "ENDED" if self.report.complete else "NOT ENDED"
        if self.found is not None:
            state = "VIOLATED"
        report = self.report
        return (
            f"{self.name:18} {state:9} {report.states:9,} states {report.readable:7,} "
            f"to a reader {report.runs:9,} runs {len(report.ends):5,} ends "
            f"{report.seconds:7.1f} s"
        )


class Everywhere:
    """Searches scenarios to their ends, each in a process, the longest first.

    Args:
        names: Which.
        jobs: How many at a time; 0: as many as there are processors.
    """

    def __init__(self, names: Sequence[str], jobs: int = 0) -> None:
        # A process each: what was remembered of a scenario goes with it.
        self._pool = ProcessPoolExecutor(
            jobs or os.cpu_count() or 1, get_context("spawn"), max_tasks_per_child=1
        )
        # Three actors take longest, and of a list these are the last ones.
        order = sorted(names, key=lambda name: -len(named(name).actors))
        self.outcomes: dict[str, Future[Outcome]] = {
            name: self._pool.submit(outcome_of, name) for name in order
        }

    def close(self) -> None:
        """Start no more of them."""
        self._pool.shutdown(cancel_futures=True)


def named(name: str) -> Scenario:
    """The scenario with a name."""
    return {**SCENARIOS, **PAIRS, **TINY}[name]


def outcome_of(name: str) -> Outcome:
    """Search one scenario to its end."""
    search = Search(named(name))
    try:
        search.everything()
    except Found as found:
        return Outcome(name, search.report, str(found))
    return Outcome(name, search.report, None)
