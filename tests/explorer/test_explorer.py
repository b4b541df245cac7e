"""Two writers and one who removes, message by message: the invariants hold."""

from __future__ import annotations

import random

import pytest
from tests.explorer.budget import COMPLETE, RECOVERY, SHARE
from tests.explorer.mutants import MUTANTS
from tests.explorer.scenarios import PAIRS, SCENARIOS, TINY
from tests.explorer.search import Found, Search


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_invariants_hold_in_schedules_by_chance(name: str) -> None:
    search = Search(SCENARIOS[name], recovery=RECOVERY)
    report = search.some(random.randrange(2**32), SHARE)
    assert report.readable > 1


@pytest.mark.parametrize("name", COMPLETE)
def test_the_invariants_hold_in_all_schedules(name: str) -> None:
    report = Search({**SCENARIOS, **PAIRS}[name]).everything()
    assert report.complete
    assert report.ends


@pytest.mark.parametrize("name", TINY)
def test_the_reduction_leaves_no_state_out(name: str) -> None:
    reduced = Search(TINY[name], check=False)
    reduced.everything()
    full = Search(TINY[name], check=False, reduced=False)
    full.everything()
    assert reduced.report.ends == full.report.ends
    assert reduced.readable == full.readable
    assert reduced.report.steps < full.report.steps


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_protocol_is_found(
    monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    mutate, scenario = MUTANTS[mutant]
    mutate(monkeypatch)
    with pytest.raises(Found) as found:
        Search(SCENARIOS[scenario], recovery=0).some(1, seconds=50, most=20_000)
    # The trace that it gives leads there again.
    with pytest.raises(Found) as again:
        Search(SCENARIOS[scenario], recovery=0).replay(found.value.trace)
    assert again.value.trace == found.value.trace
    monkeypatch.undo()
    # Without the breakage there is nothing to find there.
    Search(SCENARIOS[scenario]).replay(found.value.trace, exact=False)
