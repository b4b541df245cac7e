"""Explore a scenario, or replay a schedule that a test printed.

python -m tests.explorer                       the scenarios
python -m tests.explorer --all                 all schedules of each, a line for each
python -m tests.explorer two-prune             all schedules of one
python -m tests.explorer two-prune A B P P     this one; then the first choices
python -m tests.explorer --mutant NAME …       the same with the protocol broken
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import as_completed
from time import perf_counter

import pytest
from tests.explorer.everywhere import Everywhere
from tests.explorer.mutants import MUTANTS
from tests.explorer.scenarios import PAIRS, SCENARIOS, TINY
from tests.explorer.search import Found, Impossible, Search


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explorer")
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("trace", nargs="*")
    parser.add_argument("--mutant", choices=MUTANTS)
    parser.add_argument("--all", action="store_true", help="all scenarios to their end")
    parser.add_argument("--jobs", type=int, default=0, help="of --all: at a time")
    given = parser.parse_args()
    scenarios = {**SCENARIOS, **PAIRS, **TINY}
    if given.all:
        if given.scenario or given.mutant:
            parser.error("--all is for all scenarios, with the protocol as it is")
        return everything(given.jobs)
    if given.scenario is None:
        sys.stdout.write("\n".join(scenarios) + "\n")
        return 0
    if given.scenario not in scenarios:
        parser.error(f"there is no scenario {given.scenario!r}; without arguments: all")
    search = Search(scenarios[given.scenario])
    with pytest.MonkeyPatch.context() as patch:
        if given.mutant:
            MUTANTS[given.mutant][0](patch)
        try:
            if given.trace:
                sys.stdout.write("\n".join(search.replay(given.trace).log) + "\n")
            else:
                sys.stdout.write(f"{search.everything()}\n")
        except Impossible as impossible:
            parser.error(str(impossible))
        except Found as found:
            sys.stdout.write(f"{found}\n")
            return 1
    return 0


def everything(jobs: int) -> int:
    """Search all scenarios to their ends, and say what came out."""
    began = perf_counter()
    everywhere = Everywhere([*SCENARIOS, *PAIRS], jobs)
    found: list[str] = []
    try:
        for future in as_completed(everywhere.outcomes.values()):
            outcome = future.result()
            sys.stdout.write(f"{outcome}\n")
            sys.stdout.flush()
            if outcome.found is not None:
                found.append(outcome.found)
    finally:
        everywhere.close()
    sys.stdout.write("".join(f"\n{each}\n" for each in found))
    sys.stdout.write(
        f"{len(everywhere.outcomes)} scenarios, {len(found)} of them violated, in "
        f"{perf_counter() - began:.0f} s\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
