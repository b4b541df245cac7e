"""A schedule again, on a real store: every answer as in the memory store."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.saving import at, listed
from tests.explorer.actors import Actor
from tests.explorer.answers import noted, told
from tests.explorer.game import Game, Step
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Operation, State
from tests.explorer.messages import Message
from tests.explorer.plays import LATE, LOST
from tests.explorer.table import Nonces, Scenario

import jskv_saver.checkpoint.holding as holding_module
import jskv_saver.checkpoint.writes as writes_module
from jskv_saver import DocumentCheckpointSaver
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import JskvError, UnknownOutcomeError

PATIENCE = 30.0
"""Seconds within which an actor sends what it sent on the memory store."""


class Different(AssertionError):
    """The stores do not agree."""


class Replay:
    """A game on any store, which follows one that was played on the memory store."""

    def __init__(self, scenario: Scenario, store: DocumentStore) -> None:
        self._scenario = scenario
        self._store = store
        self._nonces = Nonces()
        self._late: list[Message] = []
        # What the scripts put.
        self.states: dict[str, State] = {}
        self._actors = {name: self._actor(name) for name in scenario.actors}
        # For each version there, the one that it has here.
        self._versions: dict[int, int] = {}

    def _actor(self, name: str) -> Actor:
        return Actor(name, self)

    def add(self, operation: Operation) -> None:
        """Nobody asks here what was called."""

    def end(self, name: str, state: str) -> None:
        """Nor how it ended."""

    async def follow(self, game: Game) -> None:
        """Let the same messages through in the same order, and compare.

        Raises:
            Different: An answer, what an actor does then, or what is stored at the
                end is not the same.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writes_module, "secrets", self._nonces)
            patch.setattr(holding_module, "secrets", self._nonces)
            await self._prepare()
            tasks = []
            for name, actor in self._actors.items():
                self._nonces.actor = name
                gated = GatedStore(self._store, actor.wait, torn=self._scenario.torn)
                saver = DocumentCheckpointSaver(gated, **self._scenario.options)
                script = self._scenario.actors[name]
                tasks.append(asyncio.create_task(actor.play(saver, script)))
                await self._settled(name, game.beginning[name])
            try:
                for step in game.steps:
                    await self._step(step)
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
        self._compare_ends(game)
        await self._compare_contents(game)

    async def _prepare(self) -> None:
        actor = self._actor("0")

        async def wait(message: Message) -> Any:
            return await message.call()

        saver = DocumentCheckpointSaver(
            GatedStore(self._store, wait), **self._scenario.options
        )
        await actor.play(saver, self._scenario.before)
        if actor.failure is not None:
            raise actor.failure

    async def _settled(self, name: str, expected: tuple[str, ...]) -> None:
        """Wait until an actor's messages are those."""
        actor = self._actors[name]
        try:
            async with asyncio.timeout(PATIENCE):
                while actor.waiting != expected:
                    actor.moved.clear()
                    await actor.moved.wait()
        except TimeoutError:
            raise Different(
                f"{name} sends {actor.waiting}, not {expected} ({actor.failure!r})"
            ) from None

    async def _step(self, step: Step) -> None:
        if step.choice == LATE:
            message = self._late.pop(0)
        else:
            actor = self._actors[step.choice[0]]
            number = step.choice[1:].rstrip(LOST)
            gate = actor.gates.pop(int(number) if number else 0)
            message = gate.message
        self._nonces.actor = step.choice[0]
        error: JskvError | None = None
        answer: Any = None
        if step.choice.endswith(LOST):
            self._late += [message, *message.rest]
            error = UnknownOutcomeError("the answer got lost")
        else:
            try:
                answer = await message.call()
            except JskvError as exc:
                error = exc
            outcome, versions = noted(answer, error, message)
            if outcome != step.outcome:
                raise Different(
                    f"{step.choice} {step.text}: {outcome}, not {step.outcome}"
                )
            self._compare_versions(step, versions)
        if step.choice == LATE:
            if error is not None:
                self._late.clear()
            return
        if error is not None:
            gate.answer.set_exception(error)
        else:
            gate.answer.set_result(answer)
        await self._settled(step.choice[0], step.waiting[step.choice[0]])

    def _compare_versions(self, step: Step, versions: tuple[int, ...]) -> None:
        """The same ones are equal, and a greater one is greater."""
        for there, here in zip(step.versions, versions, strict=True):
            if self._versions.setdefault(there, here) != here:
                raise Different(f"{step.choice} {step.text}: another version")
        in_order = [self._versions[there] for there in sorted(self._versions)]
        if in_order != sorted(set(in_order)):
            raise Different(f"{step.choice} {step.text}: versions in another order")

    def _compare_ends(self, game: Game) -> None:
        for name, actor in self._actors.items():
            there = game.actors[name]
            ends = [(each.ended, type(each.failure)) for each in (actor, there)]
            if ends[0] != ends[1]:
                raise Different(f"{name} ended with {actor.failure!r}")
            if list(actor.seen) != list(there.seen):
                raise Different(f"{name} read something else")

    async def _compare_contents(self, game: Game) -> None:
        mine, theirs = await contents(self._store), await contents(game.store)
        if mine != theirs:
            raise Different(f"stored: {mine}, not {theirs}")
        here, there = await rows(self._store), await rows(game.store)
        if here != there:
            raise Different(f"listed: {here}, not {there}")


async def contents(store: DocumentStore) -> set[Any]:
    """All that is stored of the thread, without versions."""
    found: set[Any] = set()
    for name in RESERVED_COLLECTIONS:
        # The index of runs has the run where the others have the namespace.
        page = await store.find("default", name, within=("default", "t"), limit=1000)
        found |= {told(name, document)[0] for document in page.items}
    return found


async def rows(store: DocumentStore) -> list[CheckpointTuple]:
    """What a reader who knows nothing lists."""

    async def at_once(message: Message) -> Any:
        return await message.call()

    async with DocumentCheckpointSaver(GatedStore(store, at_once)) as saver:
        return await listed(saver, at())
