"""What many games of a scenario share: who plays, and how the thread begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.explorer.actors import Actor, Script
from tests.explorer.clockwork import Clockwork
from tests.explorer.frames import FIRST_VERSION
from tests.explorer.gates import SMALL, GatedStore
from tests.explorer.ledger import Ledger
from tests.explorer.messages import Message

import jskv_saver.checkpoint.writes as writes_module
from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.adapters.memory.collection import Collection


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

    def token_hex(self, size: int) -> str:
        number = self.drawn[self.actor] = self.drawn.get(self.actor, 0) + 1
        return f"{self.actor}{number}"


class Table:
    """The loop, and the state that the games begin with."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.loop = Clockwork()
        self.nonces = Nonces()
        self.ledger = Ledger()
        self.store = MemoryDocumentStore(max_document_bytes=SMALL)
        self.store._version = FIRST_VERSION
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(writes_module, "secrets", self.nonces)
        actor = Actor("0", self.ledger, self.store)
        gated = GatedStore(self.store, _at_once(actor))
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


def _at_once(actor: Actor) -> Any:
    async def wait(message: Message) -> Any:
        actor.starts()
        answer = await message.call()
        note_stored(actor, message)
        return answer

    return wait


def note_stored(actor: Actor, message: Message) -> None:
    """A message was stored by its actor."""
    for area in message.puts:
        (collection,) = area.collections
        actor.stored(collection, area.path)


def copy_store(store: MemoryDocumentStore) -> MemoryDocumentStore:
    """Another store with the same documents at the same versions."""
    copy = MemoryDocumentStore(max_document_bytes=SMALL)
    copy._version = store._version
    for key, collection in store._collections.items():
        copied = copy._collections[key] = Collection(collection.spec)
        copied.documents = dict(collection.documents)
        copied._paths = list(collection._paths)
    return copy


def copy_ledger(ledger: Ledger) -> Ledger:
    """Another ledger with the same past."""
    copy = Ledger()
    copy.states = dict(ledger.states)
    # What is past does not change, but for the removals beside it.
    copy.operations = [_copied(each) for each in ledger.operations]
    return copy


def _copied(operation: Any) -> Any:
    copied = object.__new__(type(operation))
    for kind in type(operation).__mro__:
        for name in getattr(kind, "__slots__", ()):
            setattr(copied, name, getattr(operation, name))
    copied.beside = set(operation.beside)
    return copied
