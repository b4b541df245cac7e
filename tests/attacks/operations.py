"""Every operation of a saver, with the thread it acts on, and what it may leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.saving import at, get, id_of, listed, parent_of, put

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint import writes as pending

LARGE = "l" * 3000
"""A value that is kept in a part."""
COPY = " copy"


class Row(NamedTuple):
    """A checkpoint as it is read."""

    values: dict[str, Any]
    parent: str | None
    step: int
    writes: list[tuple[str, str, Any]]


@dataclass(frozen=True, slots=True)
class State:
    """A thread and its copy as they are read.

    Attributes:
        rows: Checkpoints by suffix of the thread, namespace and id.
        latest: By suffix and namespace the id of the latest, where there is one.
    """

    rows: Mapping[tuple[str, str, str], Row]
    latest: Mapping[tuple[str, str], str]

    @property
    def greatest(self) -> Mapping[tuple[str, str], str]:
        """The greatest listed ids, which are the latest unless a removal has begun."""
        return {(suffix, ns): id for suffix, ns, id in sorted(self.rows)}


Call = Callable[[DocumentCheckpointSaver, str], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is attacked.

    Attributes:
        call: It, on a thread; its result is comparable.
        settled: Whether the thread is there before.
        in_steps: Whether it may be left half done, checkpoint by checkpoint.
        reads: Whether it changes nothing.
    """

    call: Call
    settled: bool = True
    in_steps: bool = False
    reads: bool = False

    async def prepare(self, saver: DocumentCheckpointSaver, thread: str) -> None:
        """Make what it acts on."""
        if self.settled:
            await settle(saver, thread)

    def allows(self, now: State, before: State, after: State) -> bool:
        """Whether this may be left when it is stopped in the middle."""
        if now in (before, after):
            return True
        if not self.in_steps:
            return False
        least, most = sorted((before.rows, after.rows), key=len)
        whole = all(most.get(key) == row for key, row in now.rows.items())
        # What a removal has named is no latest, though it may be listed still.
        return (
            whole
            and least.keys() <= now.rows.keys()
            and all(
                now.latest.get(key) in (id, after.latest.get(key))
                for key, id in now.greatest.items()
            )
        )


def spill_early() -> None:
    """Keep writes in parts from a size on that tests can afford."""
    pending.SPILL = 2000


async def settle(saver: DocumentCheckpointSaver, thread: str) -> None:
    """Three checkpoints of three runs, one of a subgraph, and writes to them."""
    grow = [LARGE]
    for n in (1, 2, 3):
        grow = [*grow, f"{n}" * 900]
        await put(
            saver,
            f"{n}",
            {"keep": LARGE, "grow": grow, "own": f"{n}" * 2500},
            parent=f"{n - 1}" if n > 1 else None,
            thread=thread,
            versions={"keep": 1, "grow": n, "own": n},
            new={"grow": n, "own": n} | ({"keep": 1} if n == 1 else {}),
            run_id=f"{thread} r{n}",
            step=n,
        )
        writes = [("a", f"{n}"), ("b", LARGE if n == 2 else "small")]
        await saver.aput_writes(at(f"{n}", thread=thread), writes, "task", "~1")
    await put(
        saver, "1", {"inner": LARGE}, thread=thread, ns="sub:1", run_id=f"{thread} r1"
    )


async def settled_state(saver: DocumentCheckpointSaver, thread: str) -> State:
    """The state when what a call sent before it was stopped has arrived."""
    before = await state(saver, thread)
    while (now := await state(saver, thread)) != before:
        before = now
    return now


async def state(saver: DocumentCheckpointSaver, thread: str) -> State:
    """A thread and its copy as they are read, listed and one by one."""
    rows: dict[tuple[str, str, str], Row] = {}
    latest: dict[tuple[str, str], str] = {}
    for suffix in ("", COPY):
        name = thread + suffix
        for found in await listed(saver, at(thread=name, ns=None)):
            ns = found.config["configurable"]["checkpoint_ns"]
            single = await saver.aget_tuple(at(id_of(found), thread=name, ns=ns))
            if single is not None and row_of(single) == row_of(found):
                rows[suffix, ns, id_of(found)] = row_of(found)
        for ns in ("", "sub:1"):
            newest = await saver.aget_tuple(at(thread=name, ns=ns))
            if newest is not None:
                latest[suffix, ns] = id_of(newest)
    return State(rows, latest)


def row_of(found: CheckpointTuple) -> Row:
    """What is compared of a checkpoint."""
    return Row(
        found.checkpoint["channel_values"],
        parent_of(found),
        found.metadata["step"],
        list(found.pending_writes or ()),
    )


async def _put(saver: DocumentCheckpointSaver, thread: str, **how: Any) -> str:
    values = how.pop("values", {"x": "small"})
    config = await put(saver, values=values, thread=thread, step=9, **how)
    id: str = config["configurable"]["checkpoint_id"]
    return id


async def _put_again(saver: DocumentCheckpointSaver, thread: str) -> str:
    found = await get(saver, "3", thread=thread)
    metadata = found.metadata
    config = await saver.aput(
        at("2", thread=thread),
        found.checkpoint,
        metadata,
        found.checkpoint["channel_versions"],
    )
    id: str = config["configurable"]["checkpoint_id"]
    return id


def _writes(*writes: tuple[str, Any], task: str = "other") -> Call:
    async def call(saver: DocumentCheckpointSaver, thread: str) -> None:
        await saver.aput_writes(at("3", thread=thread), list(writes), task, "~2")

    return call


def _read(id: str | None) -> Call:
    async def call(saver: DocumentCheckpointSaver, thread: str) -> Row:
        return row_of(await get(saver, id, thread=thread))

    return call


async def _list(saver: DocumentCheckpointSaver, thread: str) -> list[Row]:
    return [row_of(row) for row in await listed(saver, at(thread=thread, ns=None))]


async def _history(saver: DocumentCheckpointSaver, thread: str) -> Any:
    return await saver.aget_delta_channel_history(
        config=at(thread=thread), channels=["a", "b", "grow"]
    )


def _call(method: Callable[..., Awaitable[None]], *args: Any) -> Call:
    async def call(saver: DocumentCheckpointSaver, thread: str) -> None:
        names = [arg.format(thread) if isinstance(arg, str) else arg for arg in args]
        await method(saver, *names)

    return call


def _prune(strategy: str) -> Call:
    async def call(saver: DocumentCheckpointSaver, thread: str) -> None:
        await saver.aprune([thread], strategy=strategy)

    return call


_MANY = {f"c{n}": f"{n} " * 2000 for n in range(5)}
_Saver = DocumentCheckpointSaver

OPERATIONS: dict[str, Operation] = {
    "put": Operation(lambda s, t: _put(s, t, id="4", parent="3", run_id=f"{t} r3")),
    "put of a new run": Operation(
        lambda s, t: _put(s, t, id="4", parent="3", run_id=f"{t} r4")
    ),
    "put with parts": Operation(
        lambda s, t: _put(s, t, id="4", parent="3", values=_MANY, run_id=f"{t} r4")
    ),
    "put beside": Operation(
        lambda s, t: _put(
            s, t, id="4", parent="1", values={"own": LARGE + "4"}, source="fork"
        )
    ),
    "put of a new thread": Operation(
        lambda s, t: _put(s, t, id="1", values=_MANY, run_id="r1"), settled=False
    ),
    "put of a subgraph": Operation(
        lambda s, t: _put(s, t, id="2", parent="1", ns="sub:1", values=_MANY)
    ),
    "put again": Operation(_put_again),
    "writes": Operation(_writes(("a", 1), ("b", "small"))),
    "large writes": Operation(_writes(("a", LARGE), ("b", LARGE + "b"), ("c", 3))),
    "writes that merge": Operation(
        _writes(("x", "late"), ("y", "late"), ("z", "new"), task="task")
    ),
    "a special write": Operation(_writes(("__error__", "gone"), task="task")),
    "delete_thread": Operation(_call(_Saver.adelete_thread, "{}")),
    "delete_for_runs": Operation(
        lambda s, t: s.adelete_for_runs([f"{t} r2", f"{t} r1"]), in_steps=True
    ),
    "copy_thread": Operation(
        _call(_Saver.acopy_thread, "{}", "{}" + COPY), in_steps=True
    ),
    "prune": Operation(_prune("keep_latest"), in_steps=True),
    "prune all": Operation(_prune("delete")),
    "repair": Operation(lambda s, t: s.arepair([t]), reads=True),
    "get latest": Operation(_read(None), reads=True),
    "get by id": Operation(_read("2"), reads=True),
    "list": Operation(_list, reads=True),
    "history": Operation(_history, reads=True),
}
