"""Explore a scenario, or replay a schedule that a test printed.

python -m tests.explorer                       the scenarios
python -m tests.explorer two-prune             all schedules of one
python -m tests.explorer two-prune A B P P     this one; then the first choices
python -m tests.explorer --mutant NAME …       the same with the protocol broken
"""

from __future__ import annotations

import argparse
import sys

import pytest
from tests.explorer.mutants import MUTANTS
from tests.explorer.scenarios import PAIRS, SCENARIOS, TINY
from tests.explorer.search import Found, Search


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explorer")
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("trace", nargs="*")
    parser.add_argument("--mutant", choices=MUTANTS)
    given = parser.parse_args()
    scenarios = {**SCENARIOS, **PAIRS, **TINY}
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
        except Found as found:
            sys.stdout.write(f"{found}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
