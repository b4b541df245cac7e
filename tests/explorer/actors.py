"""Those who take part: what an actor does is written in a script of calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from tests.checkpoint.saving import at, checkpoint, meta
from tests.explorer.ledger import (
    ENDED,
    FAILED,
    Leasing,
    Operation,
    Put,
    PutWrites,
    Removal,
    State,
)
from tests.explorer.messages import NO_ID, Message
from tests.explorer.sizes import ALONE, FEW

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.heads import Heads
from jskv_saver.checkpoint.holding import HOLDER, LEASES, Holding
from jskv_saver.checkpoint.leases import Lease
from jskv_saver.errors import LeaseHeldError

TEXT = "l" * ALONE
_FOR_EVER = 1e9
Script = Callable[["Actor"], Awaitable[None]]


def full(name: str) -> str:
    """The id of what has a short name in scripts: a UUID, or it would bring nothing."""
    return f"{NO_ID}{name:0>12}"


class Gate:
    """A message that waits, and who waits for its answer."""

    def __init__(self, message: Message, answer: asyncio.Future[Any]) -> None:
        self.message = message
        self.answer = answer


class Notes(Protocol):
    """Who is told what an actor calls, and how that ends."""

    @property
    def states(self) -> dict[str, State]: ...

    def add(self, operation: Operation) -> None: ...

    def end(self, name: str, state: str) -> None: ...


class Actor:
    """A process with a saver of its own.

    Attributes:
        name: One letter.
        gates: Its messages that wait, in the order in which it sent them.
        unused: The answers that it got while others are still on their way.
        current: The name of the call that it is in, if it is in one.
        ended: Whether its script is at its end.
        moved: Set when a message comes, or the end.
    """

    def __init__(self, name: str, notes: Notes) -> None:
        self.name = name
        self.gates: list[Gate] = []
        self.unused: list[tuple[Any, tuple[int, ...]]] = []
        self.current: str | None = None
        self.ended = False
        self.moved = asyncio.Event()
        self.failure: BaseException | None = None
        self.seen: deque[Any] = deque()
        self._notes = notes
        self._calls = 0
        self.holding: Holding | None = None
        self._under = ""
        self._saver: DocumentCheckpointSaver | None = None
        self._stopped = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages that wait."""
        return tuple(gate.message for gate in self.gates)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Their texts."""
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

    def passes(
        self, at: int, answer: Any, error: BaseException | None, learnt: Any
    ) -> None:
        """A gate opens; what it learns if others are on their way nobody used yet."""
        gate = self.gates.pop(at)
        if self.gates:
            self.unused.append(learnt)
        else:
            self.unused.clear()
        if error is not None:
            gate.answer.set_exception(error)
        else:
            gate.answer.set_result(answer)

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
        self._calls += 1
        self.current = name = f"{self.name}{self._calls}"
        self._notes.add(replace(operation, name=name))
        try:
            await call
        except Exception:
            self._notes.end(name, FAILED)
            raise
        else:
            self._notes.end(name, ENDED)
        finally:
            self.current = None

    async def put(
        self,
        id: str,
        parent: str | None = None,
        *,
        delta: bool = False,
        grow: bool = True,
        apart: bool = False,
        **metadata: Any,
    ) -> None:
        """Put a checkpoint; what it holds follows from its id and its parent.

        `keep` is carried over from the parent, `grow` is longer than there.

        Args:
            id: Its short name.
            parent: Its parent's.
            delta: Whether the channel `d` keeps only changes in it.
            grow: Whether `grow` is new in it.
            apart: Whether it has so many new bytes that all of them are parts apart;
                else it brings them itself.
        """
        states = self._notes.states
        run = metadata.setdefault("run_id", self.name)
        name, id = id, full(id)
        parent = full(parent) if parent else None
        if id not in states:
            before = states[parent].values if parent else {"grow": [TEXT]}
            values = {channel: v for channel, v in before.items() if channel != "d"}
            if grow:
                values["grow"] = [*before["grow"], f"{name} " * (FEW // 2)]
            if apart:
                values["keep"] = f"{name} " * (ALONE // 2)
            if not delta:
                values["d"] = [f"seed {name}"]
            states[id] = State(id, parent, values, run, ("d",) if delta else ())
        values = states[id].values
        versions: dict[str, str | int | float] = {"grow": _grown(values), "d": id}
        if "keep" in values:
            versions["keep"] = values["keep"][:2]
        if delta:
            metadata["counters_since_delta_snapshot"] = {"d": (1, 1)}
            del versions["d"]
        made = checkpoint(id, values, versions)
        new = {n: versions[n] for n in versions if n != "keep" or apart or not parent}
        call = self.saver.aput(at(parent), made, meta(**metadata), new)
        await self._call(Put("", id=id, under=self._under), call)

    async def write(
        self, id: str, task: str, *values: Any, special: bool = False
    ) -> None:
        """Put pending writes of a task."""
        id = full(id)
        channel = "__error__" if special else "d"
        writes = [(channel, value) for value in values]
        entries = {
            WRITES_IDX_MAP.get(channel, n): each for n, each in enumerate(writes)
        }
        call = self.saver.aput_writes(at(id), writes, task)
        await self._call(PutWrites("", id=id, task=task, entries=entries), call)

    async def take(self) -> None:
        """Take the lease of the thread, or raise; nobody renews it by himself."""
        leases = self.saver._leases
        lease = Lease(self.saver._portal, leases, "t", _FOR_EVER, 0)
        self.holding = lease._holding = leases.holding("t", _FOR_EVER)

        async def take(holding: Holding) -> None:
            if not await holding.take():
                raise LeaseHeldError("t")

        await self._call(Leasing("", takes=True), take(self.holding))
        self._under = f"{self.name}{self._calls}"
        leases.add(lease)

    async def renew(self) -> None:
        assert self.holding is not None
        await self._call(Leasing(""), self.holding.renew())

    async def give_back(self) -> None:
        assert self.holding is not None
        await self._call(Leasing(""), self.holding.give_back())

    async def expire(self) -> None:
        """As the server does: whoever holds the lease holds it no more."""
        path = ("default", "t", HOLDER)
        call = self.saver.store.delete("default", LEASES, path)
        await self._call(Leasing(""), call)

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
        found = await self.saver.aget_tuple(at(full(id) if id else None))
        self.seen.append(found)
        if found is not None:
            state = self._notes.states[found.checkpoint["id"]]
            if found.checkpoint["channel_values"] != state.values:
                raise AssertionError(f"{state.id} was read, and is not what was put")
        return found


def _grown(values: Mapping[str, Any]) -> str:
    """The version of the channel `grow`: the same for the same value."""
    return "/".join(part[:2] for part in values["grow"])
