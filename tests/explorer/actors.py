"""Those who take part: what an actor does is written in a script of calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from tests.checkpoint.saving import at, checkpoint, meta
from tests.explorer.ledger import (
    ENDED,
    FAILED,
    Ledger,
    Operation,
    Put,
    PutWrites,
    Removal,
    State,
)
from tests.explorer.messages import Message

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.heads import Heads
from jskv_saver.checkpoint.layout import RECORDS, WRITES
from jskv_saver.document.model import Path

TEXT = "l" * 600
LARGE = "w" * 2500
"""A write that is kept in parts."""
Script = Callable[["Actor"], Awaitable[None]]


class Gate:
    """A message that waits, and who waits for its answer."""

    def __init__(self, message: Message, answer: asyncio.Future[Any]) -> None:
        self.message = message
        self.answer = answer


class Actor:
    """A process with a saver of its own.

    Attributes:
        name: One letter.
        gates: Its messages that wait, in the order in which it sent them.
        unused: The answers that it got while others are still on their way.
        ended: Whether its script is at its end.
        moved: Set when a message comes, or the end.
    """

    def __init__(self, name: str, ledger: Ledger, store: MemoryDocumentStore) -> None:
        self.name = name
        self.ledger = ledger
        self._store = store
        self.gates: list[Gate] = []
        self.unused: list[tuple[Any, tuple[int, ...]]] = []
        self.ended = False
        self.moved = asyncio.Event()
        self.failure: BaseException | None = None
        self.seen: deque[Any] = deque()
        self._saver: DocumentCheckpointSaver | None = None
        self._current: Operation | None = None
        self._stopped = False

    @property
    def waiting(self) -> tuple[str, ...]:
        """Its messages that wait."""
        return tuple(gate.message.text for gate in self.gates)

    # -- the store's side --------------------------------------------------------------

    async def wait(self, message: Message) -> Any:
        """Wait at a gate for the answer to a message."""
        if self._stopped:
            raise asyncio.CancelledError
        gate = Gate(message, asyncio.get_running_loop().create_future())
        self.gates.append(gate)
        self.moved.set()
        return await gate.answer

    def passes(self, gate: Gate) -> None:
        """The gate opens."""
        self.gates.remove(gate)
        self.starts()

    def starts(self) -> None:
        """It sends a message: maybe the first one of a call."""
        operation = self._current
        if operation is not None and not operation.begun:
            self.ledger.start(operation, record_versions(self._store))

    def stored(self, collection: str, path: Path) -> None:
        """A message of its has stored a document."""
        operation = self._current
        if isinstance(operation, Put) and (collection, path[-1]) == (
            RECORDS,
            operation.id,
        ):
            operation.stored = True
        elif isinstance(operation, PutWrites) and collection == WRITES:
            operation.stored = operation.stored or len(path) == 5
        self.ledger.settle(present(self._store))

    def decides_with(self, other: Actor, message: Message) -> bool:
        """Whether it makes a difference to the ledger if it goes before a message.

        The ledger knows what started before the end of a removal, which of two calls
        for a task was first, and what was there when a call ended.
        """
        mine, theirs = self._current, other._current
        if mine is None or theirs is None:
            return False
        if not mine.begun:
            if isinstance(mine, Removal) or isinstance(theirs, Removal):
                return True
            if isinstance(mine, PutWrites) and isinstance(theirs, PutWrites):
                return (mine.id, mine.task) == (theirs.id, theirs.task)
        return not isinstance(mine, Removal) and any(
            area.collections & {RECORDS, WRITES} for area in message.purges
        )

    def learn(self, answer: Any, versions: tuple[int, ...]) -> None:
        """It gets an answer; if others are on their way, nobody has used it yet."""
        if self.gates:
            self.unused.append((answer, versions))
        else:
            self.unused.clear()

    def stop(self) -> None:
        """It dies: nothing that it does from here on leaves it."""
        self._stopped = True

    # -- the script's side -------------------------------------------------------------

    async def play(self, saver: DocumentCheckpointSaver, script: Script) -> None:
        """Follow a script to its end."""
        self._saver = saver
        try:
            async with saver:
                await script(self)
        except Exception as exc:
            self.failure = exc
        self.ended = True
        self.moved.set()

    @property
    def saver(self) -> DocumentCheckpointSaver:
        assert self._saver is not None
        return self._saver

    @property
    def memory(self) -> Heads:
        """What its saver remembers."""
        return self.saver._partition.heads

    async def _call(self, operation: Operation, call: Awaitable[Any]) -> None:
        operation.name = f"{self.name}{len(self.ledger.operations)}"
        number = sum(o.name[0] == self.name for o in self.ledger.operations)
        operation.name = f"{self.name}{number}"
        self.ledger.add(operation)
        self._current = operation
        try:
            await call
        except Exception as exc:
            operation.state, operation.error = FAILED, exc
            raise
        else:
            operation.state = ENDED
            self.ledger.settle(present(self._store))
        finally:
            self._current = None

    async def put(
        self,
        id: str,
        parent: str | None = None,
        *,
        delta: bool = False,
        grow: bool = True,
        **metadata: Any,
    ) -> None:
        """Put a checkpoint; what it holds follows from its id and its parent.

        `keep` is carried over from the parent, `grow` is longer than there.

        Args:
            id: Its id.
            parent: Its parent's.
            delta: Whether the channel `d` keeps only changes in it.
            grow: Whether `grow` is new in it.
        """
        states = self.ledger.states
        run = metadata.setdefault("run_id", self.name)
        if id not in states:
            before = states[parent].values if parent else {"grow": [TEXT[:300]]}
            values: dict[str, Any] = {"keep": TEXT, "grow": before["grow"]}
            if grow:
                values["grow"] = [*before["grow"], f"{id} " * 60]
            if not delta:
                values["d"] = [f"seed {id}"]
            states[id] = State(id, parent, values, run, ("d",) if delta else ())
        values = states[id].values
        versions = {"keep": 1, "grow": _grown(values), "d": id}
        if delta:
            metadata["counters_since_delta_snapshot"] = {"d": (1, 1)}
            del versions["d"]
        changed = {name: versions[name] for name in versions if name != "keep"}
        made = checkpoint(id, values, versions)
        call = self.saver.aput(
            at(parent),
            made,
            meta(**metadata),
            versions if parent is None else changed,  # type: ignore[arg-type]
        )
        await self._call(Put("", id=id), call)

    async def write(
        self, id: str, task: str, *values: Any, special: bool = False
    ) -> None:
        """Put pending writes of a task."""
        channel = "__error__" if special else "d"
        writes = [(channel, value) for value in values]
        entries = {
            WRITES_IDX_MAP.get(channel, n): each for n, each in enumerate(writes)
        }
        call = self.saver.aput_writes(at(id), writes, task)
        await self._call(PutWrites("", id=id, task=task, entries=entries), call)

    async def prune(self) -> None:
        await self._call(Removal("", kind="prune"), self.saver.aprune(["t"]))

    async def repair(self) -> None:
        await self._call(Removal("", kind="repair"), self.saver.arepair(["t"]))

    async def delete(self) -> None:
        await self._call(Removal("", kind="delete"), self.saver.adelete_thread("t"))

    async def delete_runs(self, *runs: str) -> None:
        removal = Removal("", kind="runs", runs=frozenset(runs))
        await self._call(removal, self.saver.adelete_for_runs(list(runs)))

    async def read(self, id: str | None = None) -> CheckpointTuple | None:
        """Read a checkpoint, or the latest, and take part with what is in it."""
        found = await self.saver.aget_tuple(at(id))
        self.seen.append(found)
        return found


def record_versions(store: MemoryDocumentStore) -> dict[str, int]:
    """The versions of the records that are there, by id."""
    found = store._collections.get(("default", RECORDS))
    documents = found.documents.items() if found else ()
    return {path[-1]: document.version for path, document in documents}


def present(store: MemoryDocumentStore) -> set[tuple[str, ...]]:
    """The checkpoints that are there, and the tasks with writes, by id."""
    found = store._collections.get(("default", WRITES))
    paths = found.documents if found else ()
    return {(id,) for id in record_versions(store)} | {
        path[3:] for path in paths if len(path) == 5
    }


def _grown(values: Mapping[str, Any]) -> str:
    """The version of the channel `grow`: the same for the same value."""
    return "/".join(part[:2] for part in values["grow"])
