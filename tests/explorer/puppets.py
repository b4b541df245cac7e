"""What an actor does with an answer, remembered: a saver runs once for each case.

What an actor does next follows from where its coroutines are, what they hold, and the
answer: of versions only from how they compare. So it is noted, and for the same case
with other versions it is the same with these. A case that is new is found out by the
saver itself: its actor is brought there again with the answers that it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tests.explorer.actors import Actor
from tests.explorer.frames import local_of
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Operation, State
from tests.explorer.messages import Message
from tests.explorer.table import Table

from jskv_saver import DocumentCheckpointSaver


@dataclass(frozen=True, slots=True)
class Answer:
    """What an actor gets.

    Attributes:
        at: To which of its messages.
        value: The answer.
        error: Or the error.
        learnt: What it learns, without versions.
        versions: The versions in it.
    """

    at: int
    value: Any
    error: BaseException | None
    learnt: Any
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """All answers that an actor got, the last one first."""

    answer: Answer
    before: Past | None

    def answers(self) -> list[Answer]:
        """They in order."""
        found: list[Answer] = []
        past: Past | None = self
        while past is not None:
            found.append(past.answer)
            past = past.before
        return found[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """Where an actor is.

    Attributes:
        name: A name for it, without versions.
        versions: The versions that it holds.
        messages: Its messages that wait.
        current: The call that it is in.
        ended: Whether its script is at its end.
        failure: What ended it.
        past: The answers that brought it there, or would have.
    """

    name: bytes
    versions: tuple[int, ...]
    messages: tuple[Message, ...]
    current: str | None
    ended: bool
    failure: BaseException | None
    past: Past | None = None


Event = Operation | tuple[str, str]
"""A call that was added, or one that ended, and how."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """What an actor did, whatever the versions.

    Attributes:
        stand: Where it came.
        sources: Where each of the versions there is from: a place among those that it
            held or got, and what was added to it.
        waiting: The same for those in its messages.
        events: What it told meanwhile.
    """

    stand: Stand
    sources: tuple[tuple[int, int], ...]
    waiting: tuple[tuple[int, int], ...]
    events: tuple[Event, ...]


class _Notes:
    """Writes down what an actor tells."""

    def __init__(self, states: dict[str, State]) -> None:
        self.states = states
        self.events: list[Event] = []

    def add(self, operation: Operation) -> None:
        self.events.append(operation)

    def end(self, name: str, state: str) -> None:
        self.events.append((name, state))


class Puppet:
    """An actor that can be anywhere.

    Attributes:
        turns: How many different cases were met.
        plays: How often it was brought somewhere from the beginning.
    """

    def __init__(self, table: Table, name: str) -> None:
        self._table = table
        self._name = name
        self._turns: dict[Any, _Turn] = {}
        self._drawn: dict[str, int] = {}
        self._actor: Actor | None = None
        self._task: asyncio.Task[None] | None = None
        self._notes = _Notes(table.ledger.states)
        # Where the actor is that runs now.
        self._here: Stand | None = None
        self.plays = 0
        self._begin()
        self.beginning = self._here = self._stand()
        self.events = tuple(self._notes.events)

    @property
    def turns(self) -> int:
        return len(self._turns)

    def advance(self, stand: Stand, answer: Answer) -> tuple[Stand, Sequence[Event]]:
        """Where an actor comes with an answer, and what it tells meanwhile."""
        known = stand.versions + answer.versions
        labels = tuple(self._table.stamps.labels(known))
        case = stand.name, answer.at, answer.learnt, labels
        turn = self._turns.get(case)
        past = Past(answer, stand.past)
        if turn is not None:
            return _at(turn, known, past), turn.events
        self._go_to(stand)
        self._notes.events.clear()
        self._pass(answer)
        came = replace(self._stand(), past=past)
        turn = _Turn(
            came,
            _sources(came.versions, known),
            _sources(_versions_of(came.messages), known),
            tuple(self._notes.events),
        )
        self._turns[case] = turn
        self._here = came
        return came, turn.events

    def close(self) -> None:
        """The actor that runs dies."""
        if self._actor is None or self._task is None:
            return
        self._actor.stop()
        self._task.cancel()
        self._table.loop.settle()
        with suppress(asyncio.CancelledError):
            self._task.result()
        self._actor = self._task = None

    # -- the actor that runs -----------------------------------------------------------

    def _begin(self) -> None:
        self.close()
        table = self._table
        self._drawn.clear()
        table.nonces.draws(self._name, self._drawn)
        self.plays += 1
        actor = self._actor = Actor(self._name, self._notes)
        gated = GatedStore(table.store, actor.wait, torn=table.scenario.torn)
        saver = DocumentCheckpointSaver(gated, **table.scenario.options)
        script = table.scenario.actors[self._name]
        self._task = table.loop.create_task(actor.play(saver, script))
        table.loop.settle()

    def _go_to(self, stand: Stand) -> None:
        if self._here is stand:
            return
        self._begin()
        for answer in stand.past.answers() if stand.past else ():
            self._pass(answer)
        assert self._stand().name == stand.name, "the same answers, another place"

    def _pass(self, answer: Answer) -> None:
        assert self._actor is not None
        self._table.nonces.draws(self._name, self._drawn)
        if answer.error is not None:
            # It is raised again and again.
            answer.error.__traceback__ = answer.error.__context__ = None
        learnt = answer.learnt, answer.versions
        self._actor.passes(answer.at, answer.value, answer.error, learnt)
        self._table.loop.settle()

    def _stand(self) -> Stand:
        actor, task = self._actor, self._task
        assert actor is not None
        assert task is not None
        name, versions = local_of(actor, task, self._drawn.get(self._name, 0))
        return Stand(
            name, versions, actor.messages, actor.current, actor.ended, actor.failure
        )


def _versions_of(messages: Sequence[Message]) -> tuple[int, ...]:
    return tuple(version for each in messages for version in each.versions())


def _sources(
    versions: Sequence[int], known: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for version in versions:
        for more in (0, 1):
            if version - more in known:
                found.append((known.index(version - more), more))
                break
        else:
            # Zero, or another number that is no version.
            assert version < 1 << 40, "a version from nowhere"
            found.append((-1, version))
    return tuple(found)


def _at(turn: _Turn, known: Sequence[int], past: Past) -> Stand:
    """Where an actor comes whose versions are these."""
    came = turn.stand
    versions = tuple((known[at] if at >= 0 else 0) + more for at, more in turn.sources)
    messages = came.messages
    if turn.waiting:
        named: Iterator[int] = iter(
            [(known[at] if at >= 0 else 0) + more for at, more in turn.waiting]
        )
        messages = tuple(each.with_versions(named) for each in messages)
    return Stand(
        came.name, versions, messages, came.current, came.ended, came.failure, past
    )
