"""Savers and a model in dicts are asked the same, and must answer the same.

A failure says the seed and the last calls; the seed is the test's parameter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver
from tests.differential.game import CALLS, POLICIES, Different, Game
from tests.differential.model import CONFLICT, DIVERGENT, LOST, OK
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint import choosing, drafts, increments, layout, pruner, writer
from jskv_saver.checkpoint.increments import Run
from jskv_saver.checkpoint.values import KNOWN
from jskv_saver.checkpoint.writes import PendingWrite, merge
from jskv_saver.errors import JskvError

GAMES = 100 if SOAK else 3
MEMORY_STEPS = 4000 if SOAK else 1200
SERVER_STEPS = 2000 if SOAK else 500
SEARCHED = 10
"""Games after which a mutant is held to be unnoticed."""

Savers = Sequence[DocumentCheckpointSaver]


@asynccontextmanager
async def opened(open_saver: OpenSaver) -> AsyncIterator[Savers]:
    """Savers on one storage, each with a memory of its own."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(open_saver(on_conflict=policy))
            for policy in POLICIES
        ]


async def play_in_memory(seed: int, steps: int = MEMORY_STEPS) -> Game:
    """A game on a memory store of its own."""
    store = MemoryDocumentStore()
    async with opened(lambda **how: DocumentCheckpointSaver(store, **how)) as savers:
        game = Game(savers, seed)
        await game.play(steps)
        return game


async def play_many_in_memory(first: int) -> None:
    for seed in range(first, first + SEARCHED):
        await play_in_memory(seed % SEARCHED)


@pytest.mark.parametrize("seed", range(GAMES))
async def test_savers_answer_as_the_model(open_saver: OpenSaver, seed: int) -> None:
    async with opened(open_saver) as savers:
        in_memory = isinstance(savers[0].store, MemoryDocumentStore)
        steps = MEMORY_STEPS if in_memory else SERVER_STEPS
        await Game(savers, seed).play(steps)


async def test_a_game_makes_every_call_and_meets_every_outcome() -> None:
    game = await play_in_memory(0)
    puts = {f"put: {outcome}" for outcome in (OK, DIVERGENT, CONFLICT, LOST)}
    wanted = {*CALLS, *puts, "copy: ok", "copy: divergent", "history: not whole"}
    assert wanted <= game.made.keys()


def least(known: Sequence[str], id: str) -> tuple[str, ...]:
    """`greatest`, keeping the wrong ids once there are too many."""
    return tuple(sorted(sorted({*known, id})[:KNOWN], reverse=True))


def beside(runs: Sequence[Run], at: int, length: int) -> Iterator[Run]:
    """`_slice`, a byte further left where there is one."""
    for run in SLICE(runs, at, length):
        yield run._replace(offset=max(run.offset - 1, 0))


SLICE = increments._slice


def last_wins(
    stored: Sequence[PendingWrite], new: Sequence[PendingWrite]
) -> list[PendingWrite]:
    """`merge`, with a regular write replaced."""
    replaced = {each.idx for each in new}
    return merge([each for each in stored if each.idx not in replaced], new)


MUTANTS: dict[str, list[tuple[Any, str, Any]]] = {
    "greatest keeps the least": [
        (module, "greatest", least) for module in (writer, drafts, layout)
    ],
    "slices are off by one": [(increments, "_slice", beside)],
    "deltas need no ancestors": [
        (module, "needed", lambda *_: set()) for module in (choosing, pruner)
    ],
    "a regular write is replaced": [(writer, "merge", last_wins)],
    "no conflict is one": [(writer.Writer, "_is_conflict", lambda *_: False)],
    "what is stored is the same": [
        (writer, "alike", lambda *_: True),
    ],
}


FIRST = {"what is stored is the same": 3}
"""The game with which a search begins: of some mutants most see nothing."""


@pytest.mark.parametrize("mutant", MUTANTS)
async def test_a_saver_that_answers_otherwise_is_found(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, wrong in MUTANTS[mutant]:
        monkeypatch.setattr(module, name, wrong)
    # Bytes at the wrong place may be no value at all.
    with pytest.raises((Different, JskvError, ValueError)) as found:
        await play_many_in_memory(FIRST.get(mutant, 0))
    assert any(note.startswith("seed ") for note in found.value.__notes__)
