"""Two writers and one who removes, message by message: the invariants hold."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.explorer.budget import COMPLETE, RECOVERY, SHARE, WALKS
from tests.explorer.everywhere import Everywhere
from tests.explorer.game import Game
from tests.explorer.mutants import MUTANTS
from tests.explorer.positions import Cast
from tests.explorer.scenarios import SCENARIOS, TINY
from tests.explorer.search import Found, Search, by_chance
from tests.explorer.table import Table


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_invariants_hold_in_schedules_by_chance(name: str) -> None:
    search = Search(SCENARIOS[name], recovery=RECOVERY)
    report = search.some(random.randrange(2**32), SHARE)
    assert report.readable > 1


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Everywhere]:
    """All of them at once, on all processors."""
    found = Everywhere(COMPLETE)
    yield found
    found.close()


@pytest.mark.parametrize("name", COMPLETE)
def test_the_invariants_hold_in_all_schedules(
    name: str, everywhere: Everywhere
) -> None:
    outcome = everywhere.outcomes[name].result()
    assert outcome.found is None, outcome.found
    assert outcome.report.complete
    assert outcome.report.ends


@pytest.mark.parametrize("name", [*SCENARIOS, *TINY])
def test_what_is_remembered_of_an_actor_is_what_it_does(name: str) -> None:
    """States that are put together from what was noted are those that come about."""
    choose = by_chance(random.randrange(2**32))
    with Table({**SCENARIOS, **TINY}[name]) as table:
        cast = Cast(table)
        for _ in range(WALKS):
            game, position = Game(table), cast.beginning()
            while choices := game.choices():
                choice = choose(choices, len(game.trace))
                game.step(choice)
                position = position.after(choice)
                assert position.log == game.log
                assert position.choices() == game.choices()
                readable = game.readable_key()
                assert position.readable_key() == readable
                assert position.key(readable) == game.key(readable)
            game.close()
        cast.close()


@pytest.mark.parametrize("name", TINY)
def test_the_reduction_leaves_no_state_out(name: str) -> None:
    reduced = Search(TINY[name], check=False)
    reduced.everything()
    full = Search(TINY[name], check=False)
    full.every_order()
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
