"""What was asked for, what was acknowledged, and what nobody may have removed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

PENDING, STARTED, ENDED, FAILED = "pending", "started", "ended", "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One call of an actor. It starts with its first message.

    Attributes:
        name: The actor and a number.
        state: Of the four above. One whose actor died stays started.
        beside: The removals that ended, or will end, after it started.
    """

    name: str
    state: str = PENDING
    beside: frozenset[str] = frozenset()

    @property
    def acknowledged(self) -> bool:
        return self.state == ENDED

    @property
    def begun(self) -> bool:
        return self.state != PENDING


@dataclass(frozen=True, slots=True, eq=False)
class Put(Operation):
    """Attributes:
    stored: Whether its record was stored.
    under: The call that took the lease under which it is put.
    """

    id: str = ""
    stored: bool = False
    under: str = ""


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Removal(Operation):
    """Attributes:
    kind: prune, delete, runs or repair.
    runs: Of `runs`: which.
    """

    kind: str = ""
    runs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Leasing(Operation):
    """Attributes:
    takes: Whether, when it has ended, its actor holds the thread alone.
    """

    takes: bool = False


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
    """All calls of a game.

    Attributes:
        states: What each checkpoint must be. It follows from the scripts alone, so
            that copies share it.
        operations: The calls by name.
        holder: The call that took the lease last.
        found: The checkpoints that were there when it had it.
    """

    def __init__(
        self,
        states: dict[str, State] | None = None,
        operations: Mapping[str, Operation] | None = None,
    ) -> None:
        self.states = {} if states is None else states
        self.operations = dict(operations or {})
        self.holder = ""
        self.found: frozenset[str] = frozenset()

    def copy(self) -> Ledger:
        """Another ledger with the same past."""
        copied = Ledger(self.states, self.operations)
        copied.holder, copied.found = self.holder, self.found
        return copied

    def add(self, operation: Operation) -> None:
        self.operations[operation.name] = operation

    def start(self, name: str, versions: Mapping[str, int]) -> None:
        """A call sends its first message, while these records are there."""
        operation = self.operations[name]
        if isinstance(operation, PutWrites):
            after = frozenset(
                each.name
                for each in self.writes_of(operation.id)
                if each.task == operation.task and each.acknowledged
            )
            life = versions.get(operation.id, 0)
            operation = replace(operation, life=life, after=after)
        beside: frozenset[str] = frozenset()
        if isinstance(operation, Removal):
            for each in [*self.operations.values()]:
                if each.begun and each.name != name:
                    self._beside(each, each.beside | {name})
        else:
            beside = frozenset(
                each.name
                for each in self._of(Removal)
                if each.state in (STARTED, FAILED)
            )
        self.add(replace(operation, state=STARTED, beside=beside))

    def store(
        self, name: str, present: Callable[[], Container[tuple[str, ...]]]
    ) -> None:
        """What a call is about was stored.

        Args:
            name: The call.
            present: The checkpoints that are there, and the tasks with writes.
        """
        operation = self.operations[name]
        assert isinstance(operation, Put | PutWrites)
        if not operation.stored:
            self.add(replace(operation, stored=True))
        self.settle(present)

    def end(
        self, name: str, state: str, present: Callable[[], AbstractSet[tuple[str, ...]]]
    ) -> None:
        """A call is acknowledged, or fails."""
        operation = replace(self.operations[name], state=state)
        self.add(operation)
        if state == ENDED:
            if isinstance(operation, Leasing) and operation.takes:
                self.holder = name
                self.found = frozenset(path[0] for path in present() if len(path) == 1)
            self.settle(present)

    def _of(self, kind: type[T]) -> Iterator[T]:
        return (each for each in self.operations.values() if isinstance(each, kind))

    def _beside(self, operation: Operation, beside: frozenset[str]) -> None:
        if beside != operation.beside:
            self.add(replace(operation, beside=beside))

    @property
    def puts(self) -> list[Put]:
        return list(self._of(Put))

    def writes_of(self, id: str) -> list[PutWrites]:
        return [each for each in self._of(PutWrites) if each.id == id]

    def settle(self, present: Callable[[], Container[tuple[str, ...]]]) -> None:
        """What is there after a removal has ended was not taken by it.

        To be called when a removal ends, when something is stored, and when a call
        is acknowledged.
        """
        ended = {each.name for each in self._of(Removal) if each.acknowledged}
        if not ended:
            return
        there = present()
        for each in [*self.operations.values()]:
            if isinstance(each, Put) and (each.stored or each.acknowledged):
                if (each.id,) in there:
                    self._beside(each, each.beside - ended)
            elif isinstance(each, PutWrites) and (each.stored or each.acknowledged):
                # Of several calls for a task it is not known whose writes they are.
                if self._is_alone(each) and (each.id, each.task) in there:
                    self._beside(each, each.beside - ended)

    def _is_alone(self, write: PutWrites) -> bool:
        calls = self.writes_of(write.id)
        return sum(each.task == write.task for each in calls) == 1

    def late(self, ids: Iterable[str]) -> set[str]:
        """Of the checkpoints that are there, those that came too late.

        Who put them held a lease, and another one had taken it by then.
        """
        under = {each.id: each.under for each in self.puts}
        return {
            id for id in set(ids) - self.found if under.get(id) not in ("", self.holder)
        }

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
        return any(self._takes(name, id) for name in operation.beside)

    def _takes(self, name: str, id: str) -> bool:
        removal = self.operations[name]
        assert isinstance(removal, Removal)
        if removal.kind == "delete":
            return True
        if removal.kind == "repair":
            return False
        if removal.kind == "runs":
            return self.states[id].run in removal.runs
        return id != max(each.id for each in self._of(Put) if each.begun)

    def depends(self, mine: Operation, theirs: Operation, purging: bool) -> bool:
        """Whether it makes a difference here if a message of one call goes before one
        of another.

        It is known what started before the end of a removal, which of two calls for a
        task was first, and what was there when a call ended.

        Args:
            mine: The call of the message that goes first, or second.
            theirs: That of the other one.
            purging: Whether the other one purges records or writes.
        """
        # Which puts came before somebody held the thread alone.
        if isinstance(mine, Leasing) and isinstance(theirs, Put):
            return mine.takes and theirs.under != mine.name
        if not mine.begun:
            if isinstance(mine, Removal) or isinstance(theirs, Removal):
                return True
            if isinstance(mine, PutWrites) and isinstance(theirs, PutWrites):
                return (mine.id, mine.task) == (theirs.id, theirs.task)
        return not isinstance(mine, Removal) and purging

    def key(self, versions: Mapping[str, int]) -> object:
        """What of it decides about later checks, where these records are."""
        calls = sorted(_key(e, versions) for e in self.operations.values() if e.begun)
        return self.holder, tuple(sorted(self.found)), tuple(calls)


def _key(operation: Operation, versions: Mapping[str, int]) -> tuple[object, ...]:
    key = (operation.name, operation.state, tuple(sorted(operation.beside)))
    if isinstance(operation, PutWrites):
        lives = versions.get(operation.id, -1) == operation.life
        return (*key, operation.stored, lives, tuple(sorted(operation.after)))
    return (*key, isinstance(operation, Put) and operation.stored)
