"""One execution of a scenario, message by message, as a schedule says."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.explorer.actors import Actor, Gate, record_versions
from tests.explorer.answers import (
    Named,
    digest,
    digest_of,
    documents_of,
    mentioned,
    named,
    noted,
    run_now,
)
from tests.explorer.frames import Frames
from tests.explorer.gates import GatedStore
from tests.explorer.messages import Message
from tests.explorer.table import Table, copy_ledger, copy_store, note_stored

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, WRITES
from jskv_saver.document.model import Document, Path
from jskv_saver.errors import JskvError, UnknownOutcomeError

LOST, LATE = "!", "~"
Key = bytes
"""Names a state."""
NONE: tuple[int, ...] = ()


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


class Game:
    """An execution. `choices` says what may happen next, `step` lets it happen."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.loop = table.loop
        self.scenario = table.scenario
        self.store = copy_store(table.store)
        self.ledger = copy_ledger(table.ledger)
        self.trace: list[str] = []
        self.log: list[str] = []
        self.steps: list[Step] = []
        self.digests: dict[int, Named] = {}
        self.mentions: dict[int, tuple[int, ...]] = {}
        self._late: list[Message] = []
        self._losses = table.scenario.losses
        table.nonces.drawn.clear()
        for (_, name), collection in self.store._collections.items():
            for document in collection.documents.values():
                self._note(name, document)
        self.actors = {
            name: Actor(name, self.ledger, self.store) for name in self.scenario.actors
        }
        self._tasks = {}
        for name, actor in self.actors.items():
            gated = GatedStore(self.store, actor.wait, torn=self.scenario.torn)
            saver = DocumentCheckpointSaver(gated, **self.scenario.options)
            table.nonces.actor = name
            self._tasks[name] = self.loop.create_task(
                actor.play(saver, self.scenario.actors[name])
            )
            self.loop.settle()
        self.beginning = self.waiting()

    # -- steps -------------------------------------------------------------------------

    def choices(self) -> list[str]:
        """What may happen next: an actor's letter, with a number if it has several
        messages under way, with `!` if the answer gets lost; `~`: a late message."""
        found: list[str] = []
        for name, actor in self.actors.items():
            for at, gate in enumerate(actor.gates):
                choice = f"{name}{at}" if at else name
                found.append(choice)
                if self._losses and gate.message.changes:
                    found.append(choice + LOST)
        if self._late:
            found.append(LATE)
        return found

    def message(self, choice: str) -> tuple[str, Message]:
        """The actor of a choice, and the message that it is about."""
        if choice == LATE:
            return LATE, self._late[0]
        actor = self.actors[choice[0]]
        return actor.name, self._gate(actor, choice).message

    def _gate(self, actor: Actor, choice: str) -> Gate:
        number = choice[1:].rstrip(LOST)
        return actor.gates[int(number) if number else 0]

    def step(self, choice: str) -> None:
        """Let one message through, and its actor go on to his next ones."""
        self.trace.append(choice)
        name, message = self.message(choice)
        self.log.append(f"{choice}: {message.text}")
        if choice.endswith(LOST):
            outcome, versions = "lost", NONE
            self._losses -= 1
            self._late += [message, *message.rest]
            error: JskvError | None = UnknownOutcomeError("the answer got lost")
        else:
            answer, error = run_now(message.call)
            outcome, versions = self._noted(answer, error, message)
        if error is not None:
            self.log[-1] += f" -> {type(error).__name__}"
        if choice == LATE:
            # Of a batch nothing follows what was refused.
            self._late = [] if error else self._late[1:]
        else:
            actor = self.actors[name]
            gate = self._gate(actor, choice)
            self.table.nonces.actor = name
            actor.passes(gate)
            actor.learn((message.text, outcome), versions)
            if error is not None:
                gate.answer.set_exception(error)
            else:
                note_stored(actor, message)
                gate.answer.set_result(answer)
        self.loop.settle()
        self.steps.append(Step(choice, message.text, outcome, versions, self.waiting()))

    def waiting(self) -> dict[str, tuple[str, ...]]:
        """The messages that wait, by actor."""
        return {name: actor.waiting for name, actor in self.actors.items()}

    def independent(self, one: str, other: str) -> bool:
        """Whether the order of two choices makes no difference."""
        (mine, first), (theirs, second) = self.message(one), self.message(other)
        if mine == theirs or LOST in one + other:
            return False
        if LATE not in (mine, theirs):
            a, b = self.actors[mine], self.actors[theirs]
            if a.decides_with(b, second) or b.decides_with(a, first):
                return False
        return first.commutes(second)

    @property
    def ended(self) -> bool:
        return all(actor.ended for actor in self.actors.values())

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

    def _note(self, collection: str, document: Document) -> None:
        self.digests[document.version] = named(collection, document)
        self.mentions[document.version] = mentioned(collection, document)

    def _noted(
        self, answer: Any, error: BaseException | None, message: Message
    ) -> tuple[Any, tuple[int, ...]]:
        found = documents_of(answer, message)
        if error is not None or not found:
            return noted(answer, error, message)
        for collection, document in found:
            if document.version not in self.digests:
                self._note(collection, document)
        versions = [document.version for _, document in found]
        return (
            [self.digests[version] for version in versions],
            tuple(each for version in versions for each in self.mentions[version]),
        )

    def store_key(self) -> tuple[Any, list[int]]:
        """What is stored, without its versions, and these, in the same order."""
        live: list[tuple[str, Path, bytes]] = []
        versions: list[int] = []
        for (_, name), collection in sorted(self.store._collections.items()):
            for path in collection._paths:
                version = collection.documents[path].version
                live.append((name, path, self.digests[version][2]))
                versions += self.mentions[version]
        return live, versions

    def _relabelled(self, versions: list[int]) -> list[Any]:
        """Versions as what they are compared by.

        Records and writes are held to versions, so each keeps its place among its
        like; of anything else only matters which epochs are younger.
        """
        records: set[int] = set()
        tasks: set[int] = set()
        epochs: set[int] = set()
        for version in versions:
            collection, path, _ = self.digests.get(version, (RECORDS, (EPOCH,), b""))
            if collection == RECORDS:
                records.add(version)
                if path[-1] == EPOCH:
                    epochs.add(version)
            elif collection == WRITES:
                tasks.add(version)
        in_records, in_tasks = sorted(records), sorted(tasks)
        in_epochs = sorted(epochs)
        labels: list[Any] = []
        for version in versions:
            if version in records:
                labels.append(bisect_left(in_records, version))
            elif version in tasks:
                labels.append(
                    (bisect_left(in_tasks, version), bisect_left(in_epochs, version))
                )
            else:
                labels.append((bisect_left(in_epochs, version),))
        return labels

    def readable_key(self) -> Key:
        """What names all that a reader, or a check, may see."""
        live, versions = self.store_key()
        ledger = self.ledger.key(record_versions(self.store))
        return digest((live, self._relabelled(versions), ledger))

    def key(self, readable: Key) -> Key:
        """What names this state, with what the actors still hold."""
        live, versions = self.store_key()
        held: list[Any] = []
        for actor in self.actors.values():
            if actor.ended:
                held.append(type(actor.failure).__name__)
                continue
            frames = Frames()
            held.append(frames.of(actor.memory))
            held.append(frames.of(self._tasks[actor.name]))
            versions += frames.versions
            for answer, seen in sorted(actor.unused, key=repr):
                held.append(answer)
                versions += seen
            held.append([gate.message.text for gate in actor.gates])
        for message in self._late:
            held += [message.text, digest_of(message.data)]
            versions += message.conditions
        held.append(self._losses)
        return digest((readable, live, held, self._relabelled(versions)))
