"""One execution of a scenario, message by message, as a schedule says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.explorer.actors import Actor
from tests.explorer.answers import noted, run_now
from tests.explorer.frames import local_of
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Operation, State
from tests.explorer.messages import Message
from tests.explorer.plays import LATE, LOST, Key, Play, key_of, note_stored, readable_of
from tests.explorer.stored import Shelf, copy_store, present, record_versions, stamp
from tests.explorer.table import Table

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import JskvError, UnknownOutcomeError


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of a game was, to compare it with that of another game.

    Attributes:
        choice: Whose message went through.
        text: The message.
        outcome: The answer without its versions, or the error's name.
        versions: The versions in the answer.
        waiting: What waits then, by actor.
    """

    choice: str
    text: str
    outcome: Any
    versions: tuple[int, ...]
    waiting: Mapping[str, tuple[str, ...]]


class Game(Play):
    """An execution. `choices` says what may happen next, `step` lets it happen."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.loop = table.loop
        self.scenario = table.scenario
        self.store = copy_store(table.store)
        self.ledger = table.ledger.copy()
        self.trace: list[str] = []
        self.log: list[str] = []
        self.steps: list[Step] = []
        self.late: list[Message] = []
        self.losses = table.scenario.losses
        self._count = table.count
        self._drawn: dict[str, int] = {}
        self.actors = {name: Actor(name, self) for name in self.scenario.actors}
        self._tasks = {}
        for name, actor in self.actors.items():
            gated = GatedStore(self.store, actor.wait, torn=self.scenario.torn)
            saver = DocumentCheckpointSaver(gated, **self.scenario.options)
            table.nonces.draws(name, self._drawn)
            self._tasks[name] = self.loop.create_task(
                actor.play(saver, self.scenario.actors[name])
            )
            self.loop.settle()
        self.beginning = self.waiting()

    # -- what its actors tell ----------------------------------------------------------

    @property
    def states(self) -> dict[str, State]:
        """What each checkpoint must be."""
        return self.ledger.states

    def add(self, operation: Operation) -> None:
        self.ledger.add(operation)

    def end(self, name: str, state: str) -> None:
        self.ledger.end(name, state, self._present)

    def _present(self) -> set[tuple[str, ...]]:
        return present(self.store._collections)

    # -- steps -------------------------------------------------------------------------

    @property
    def letters(self) -> Sequence[str]:
        return list(self.actors)

    def messages(self, name: str) -> Sequence[Message]:
        return self.actors[name].messages

    def current(self, name: str) -> str | None:
        return self.actors[name].current

    def step(self, choice: str) -> None:
        """Let one message through, and its actor go on to his next ones."""
        self.trace.append(choice)
        name, at, message = self.message(choice)
        self.log.append(f"{choice}: {message.text}")
        answer: Any = None
        if choice.endswith(LOST):
            outcome: Any = "lost"
            versions: tuple[int, ...] = ()
            self.losses -= 1
            self.late += [message, *message.rest]
            error: JskvError | None = UnknownOutcomeError("the answer got lost")
        else:
            self._count += len(message.puts)
            stamp(self.store, self.table.stamps, message, self._count)
            answer, error = run_now(message.call)
            outcome, versions = noted(answer, error, message)
        if error is not None:
            self.log[-1] += f" -> {type(error).__name__}"
        if choice == LATE:
            # Of a batch nothing follows what was refused.
            self.late = [] if error else self.late[1:]
        else:
            actor = self.actors[name]
            self.table.nonces.draws(name, self._drawn)
            current = actor.current
            if current and not self.ledger.operations[current].begun:
                self.ledger.start(current, record_versions(self.store._collections))
            if error is None:
                note_stored(self.ledger, current, message, self._present)
            actor.passes(at, answer, error, ((message.text, outcome), versions))
        self.loop.settle()
        self.steps.append(Step(choice, message.text, outcome, versions, self.waiting()))

    def waiting(self) -> dict[str, tuple[str, ...]]:
        """The messages that wait, by actor."""
        return {name: actor.waiting for name, actor in self.actors.items()}

    @property
    def failures(self) -> dict[str, BaseException]:
        """Who failed, and with what."""
        return {
            name: actor.failure for name, actor in self.actors.items() if actor.failure
        }

    def close(self) -> None:
        """End it; whoever is still under way dies."""
        for name, task in self._tasks.items():
            self.actors[name].stop()
            task.cancel()
        self.loop.settle()
        for task in self._tasks.values():
            with suppress(asyncio.CancelledError):
                task.result()

    # -- what a state is ---------------------------------------------------------------

    def readable_key(self) -> Key:
        """What names all that a reader, or a check, may see."""
        shelf = Shelf.of(self.store._collections)
        return readable_of(shelf, self.ledger, self.table.stamps)

    def key(self, readable: Key) -> Key:
        """What names this state, with what the actors still hold."""
        shelf = Shelf.of(self.store._collections)
        held = [
            local_of(actor, self._tasks[name], self._drawn.get(name, 0))
            for name, actor in self.actors.items()
        ]
        return key_of(readable, shelf, held, self.late, self.losses, self.table.stamps)
