"""What many games of a scenario share: who plays, and how the thread begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.explorer.actors import Actor, Script
from tests.explorer.clockwork import Clockwork
from tests.explorer.gates import GatedStore
from tests.explorer.ledger import Ledger, Operation, State
from tests.explorer.messages import Message
from tests.explorer.plays import note_stored
from tests.explorer.sizes import DOCUMENT
from tests.explorer.stored import present, record_versions, stamp
from tests.explorer.versions import Stamps

import jskv_saver.checkpoint.holding as holding_module
import jskv_saver.checkpoint.writes as writes_module
from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore


@dataclass(frozen=True)
class Scenario:
    """Who takes part, and what they do.

    Attributes:
        name: Its name.
        actors: A script for each letter.
        before: What happened before, by nobody in particular.
        losses: How many answers may get lost; their messages arrive later, or never.
        torn: Whether a batch of reads is one message for each key.
        options: Of the savers.
        may_raise: Errors that an actor may get.
    """

    name: str
    actors: Mapping[str, Script]
    before: Script
    losses: int = 0
    torn: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    may_raise: tuple[type[BaseException], ...] = ()


class Nonces:
    """In the place of `secrets`: the same call draws the same name in each replay."""

    def __init__(self) -> None:
        self.actor = "0"
        self.drawn: dict[str, int] = {}

    def draws(self, actor: str, drawn: dict[str, int]) -> None:
        """Who draws from here on, and how many each of his game has drawn."""
        self.actor, self.drawn = actor, drawn

    def token_hex(self, size: int) -> str:
        number = self.drawn[self.actor] = self.drawn.get(self.actor, 0) + 1
        return f"{self.actor}{number}"


class Table:
    """The loop, and the state that the games begin with."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.loop = Clockwork()
        self.nonces = Nonces()
        self.stamps = Stamps()
        self.ledger = Ledger()
        self.store = MemoryDocumentStore(max_document_bytes=DOCUMENT)
        self.count = 0
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(writes_module, "secrets", self.nonces)
        self._patch.setattr(holding_module, "secrets", self.nonces)
        actor = Actor("0", self)
        gated = GatedStore(self.store, self._at_once(actor))
        saver = DocumentCheckpointSaver(gated, **scenario.options)
        self.loop.finish(actor.play(saver, scenario.before))
        if actor.failure is not None:
            raise actor.failure

    def close(self) -> None:
        self._patch.undo()
        self.loop.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- what was before ---------------------------------------------------------------

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

    def _at_once(self, actor: Actor) -> Any:
        async def wait(message: Message) -> Any:
            name = actor.current
            if name and not self.ledger.operations[name].begun:
                self.ledger.start(name, record_versions(self.store._collections))
            self.count += len(message.puts)
            stamp(self.store, self.stamps, message, self.count)
            answer = await message.call()
            note_stored(self.ledger, name, message, self._present)
            return answer

        return wait
