"""What was asked for, what was acknowledged, and what nobody may have removed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

PENDING, STARTED, ENDED, FAILED = "pending", "started", "ended", "failed"


@dataclass(slots=True, eq=False)
class Operation:
    """One call of an actor. It starts with its first message.

    Attributes:
        name: The actor and a number.
        state: Of the four above. One whose actor died stays started.
        beside: The removals that ended, or will end, after it started.
        error: What it raised.
    """

    name: str
    state: str = PENDING
    beside: set[Removal] = field(default_factory=set)
    error: BaseException | None = None

    @property
    def acknowledged(self) -> bool:
        return self.state == ENDED

    @property
    def begun(self) -> bool:
        return self.state != PENDING


@dataclass(slots=True, eq=False)
class Put(Operation):
    """Attributes:
    stored: Whether its record was stored.
    """

    id: str = ""
    stored: bool = False


@dataclass(slots=True, eq=False)
class PutWrites(Operation):
    """Attributes:
    life: The version of its checkpoint's record when it started; 0: none.
    after: The calls for the same task that were acknowledged before it started.
    stored: Whether its document was stored.
    """

    id: str = ""
    life: int = 0
    after: frozenset[str] = frozenset()
    stored: bool = False
    task: str = ""
    entries: dict[int, tuple[str, Any]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Removal(Operation):
    """Attributes:
    kind: prune, delete, runs or repair.
    runs: Of `runs`: which.
    """

    kind: str = ""
    runs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint must be, whenever it is there."""

    id: str
    parent: str | None
    values: dict[str, Any]
    run: str
    deltas: tuple[str, ...] = ()


T = TypeVar("T", bound=Operation)


class Ledger:
    """All calls of a game."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.operations: list[Operation] = []

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def start(self, operation: Operation, versions: Mapping[str, int]) -> None:
        """A call sends its first message, while these records are there."""
        operation.state = STARTED
        if isinstance(operation, PutWrites):
            operation.life = versions.get(operation.id, 0)
        if isinstance(operation, PutWrites):
            operation.after = frozenset(
                each.name
                for each in self.writes_of(operation.id)
                if each.task == operation.task and each.acknowledged
            )
        if isinstance(operation, Removal):
            for each in self.operations:
                if each.begun and each is not operation:
                    each.beside.add(operation)
        else:
            operation.beside = {
                each for each in self._of(Removal) if each.state in (STARTED, FAILED)
            }

    def _of(self, kind: type[T]) -> Iterator[T]:
        return (each for each in self.operations if isinstance(each, kind))

    @property
    def puts(self) -> list[Put]:
        return list(self._of(Put))

    @property
    def removals(self) -> list[Removal]:
        return list(self._of(Removal))

    def writes_of(self, id: str) -> list[PutWrites]:
        return [each for each in self._of(PutWrites) if each.id == id]

    def settle(self, present: Container[tuple[str, ...]]) -> None:
        """What is there after a removal has ended was not taken by it.

        To be called when a removal ends, when something is stored, and when a call
        is acknowledged.

        Args:
            present: The checkpoints that are there, and the tasks with writes.
        """
        ended = {each for each in self._of(Removal) if each.acknowledged}
        for each in self.operations:
            if isinstance(each, Put) and (each.stored or each.acknowledged):
                if (each.id,) in present:
                    each.beside -= ended
            elif isinstance(each, PutWrites) and (each.stored or each.acknowledged):
                # Of several calls for a task it is not known whose writes they are.
                if self._is_alone(each) and (each.id, each.task) in present:
                    each.beside -= ended

    def _is_alone(self, write: PutWrites) -> bool:
        calls = self.writes_of(write.id)
        return sum(each.task == write.task for each in calls) == 1

    def required(self) -> set[str]:
        """The checkpoints that must be there."""
        return {
            each.id
            for each in self._of(Put)
            if each.acknowledged and not self._removable(each, each.id)
        }

    def is_required(self, write: PutWrites, versions: Mapping[str, int]) -> bool:
        """Whether writes must be there, where these records are."""
        if not write.acknowledged:
            return False
        # Of a checkpoint that is there, in the life in which it got them.
        return (
            write.life > 0 and versions.get(write.id) == write.life
        ) or not self._removable(write, write.id)

    def _removable(self, operation: Operation, id: str) -> bool:
        return any(self._takes(each, operation, id) for each in operation.beside)

    def _takes(self, removal: Removal, operation: Operation, id: str) -> bool:
        if removal.kind == "delete":
            return True
        if removal.kind == "repair":
            return False
        if removal.kind == "runs":
            return self.states[id].run in removal.runs
        return id != max(each.id for each in self._of(Put) if each.begun)

    def key(self, versions: Mapping[str, int]) -> object:
        """What of it decides about later checks, where these records are."""
        return tuple(
            sorted(_key(each, versions) for each in self.operations if each.begun)
        )


def _key(operation: Operation, versions: Mapping[str, int]) -> tuple[object, ...]:
    beside = tuple(sorted(other.name for other in operation.beside))
    key = (operation.name, operation.state, beside)
    if isinstance(operation, PutWrites):
        lives = versions.get(operation.id, -1) == operation.life
        return (*key, operation.stored, lives, tuple(sorted(operation.after)))
    return (*key, isinstance(operation, Put) and operation.stored)
