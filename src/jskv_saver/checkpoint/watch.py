"""`saver.watch`: what happens to threads, for programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver._portal import Portal
from jskv_saver.checkpoint.config import config_of
from jskv_saver.checkpoint.following import EventKind, Follower, Happening
from jskv_saver.errors import StoreClosedError, WrongThreadError


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """Something that happened to a thread.

    Attributes:
        kind: `checkpoint`: one was stored. `writes`: a task's pending writes were.
            `interrupt`: so were writes that wait for an answer. `pruned`: checkpoints
            were removed. `deleted`: the thread was.
        revision: Its place in the order; `watch(after=...)` goes on after it.
        at: When the store took it (aware, UTC).
        thread_id: The thread.
        checkpoint_ns: The checkpoint namespace; None: of the whole thread.
        checkpoint_ids: The checkpoints it is about: one, but for `pruned`.
        parent_id: Of a checkpoint: its parent's id, or None.
        run_id: Of a checkpoint: the run that wrote it, or None.
        metadata: Of a checkpoint: its metadata; None where it was removed already.
        channels: Of a checkpoint its channels with a value; of writes where they go,
            those of earlier calls of the task included.
        task_id: Of writes: the task.
        interrupts: Of an interrupt: the values that `interrupt` was called with, as
            LangGraph keeps them.
    """

    kind: EventKind
    revision: int
    at: datetime
    thread_id: str
    checkpoint_ns: str | None = None
    checkpoint_ids: tuple[str, ...] = ()
    parent_id: str | None = None
    run_id: str | None = None
    metadata: Any = None
    channels: tuple[str, ...] = ()
    task_id: str | None = None
    interrupts: tuple[Any, ...] = ()

    @property
    def config(self) -> RunnableConfig:
        """Names the checkpoint, for `get_tuple`; the thread's latest where none is."""
        if len(self.checkpoint_ids) == 1:
            id = self.checkpoint_ids[0]
            return config_of(self.thread_id, self.checkpoint_ns or "", id)
        ns = self.checkpoint_ns or ""
        return {"configurable": {"thread_id": self.thread_id, "checkpoint_ns": ns}}


class Watch:
    """What happens to threads, for `for` and `async for`; without an end.

    Iterated as it is, it begins with the first step, and a loop that is left ends it.
    Entered with `with` or `async with` it begins there, and ends there. Iterated again
    it goes on where it stopped.
    """

    def __init__(
        self,
        portal: Portal,
        serde: SerializerProtocol,
        make: Callable[[int | None], Follower],
        after: int | None,
    ) -> None:
        self._portal = portal
        self._serde = serde
        self._make = make
        self._after = after
        self._entered = False
        self._turn = asyncio.Lock()
        self._ends = 0
        # What is wrong with the arguments or the store is said at once.
        self._follower: Follower | None = make(after)

    async def __aenter__(self) -> Self:
        self._entered = True
        await self._portal.arun(self._open)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self._entered = True
        self._portal.run(self._open)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aiter__(self) -> AsyncIterator[ThreadEvent]:
        """What happens, in order; waits for it without an end."""
        try:
            while (happening := await self._portal.arun(self._step)) is not None:
                yield self._event(happening)
        finally:
            if not self._entered:
                await self.aclose()

    def __iter__(self) -> Iterator[ThreadEvent]:
        """As `async for`, blocking."""
        try:
            while (happening := self._portal.run(self._step)) is not None:
                yield self._event(happening)
        finally:
            if not self._entered:
                self.close()

    async def aclose(self) -> None:
        """End it; whoever waits for the next event gets none. Idempotent."""
        if not (self._portal.closed or self._portal.lost):
            with suppress(StoreClosedError):
                await self._portal.arun(self._end)

    def close(self) -> None:
        """As `aclose`, blocking."""
        if not (self._portal.closed or self._portal.lost):
            # A generator that is dropped may end anywhere, on that very loop too.
            with suppress(StoreClosedError, WrongThreadError):
                self._portal.run(self._end)

    async def _open(self) -> Follower:
        if self._follower is None:
            self._follower = self._make(self._after)
        follower = self._follower
        await follower.open()
        return follower

    async def _step(self) -> Happening | None:
        """The next one; None when it was ended meanwhile."""
        # Of several that iterate each gets its own events, and none is lost.
        ends = self._ends
        async with self._turn:
            if ends != self._ends:
                return None
            if self._follower is None:
                self._follower = self._make(self._after)
            follower = self._follower
            try:
                happening = await follower.next()
            except StoreClosedError:
                if self._follower is follower:
                    raise
                return None
            # Before anything of the user's is made: what cannot be is not met again.
            self._after = happening.revision
            return happening

    async def _end(self) -> None:
        self._ends += 1
        follower, self._follower = self._follower, None
        if follower is not None:
            await follower.close()

    def _event(self, happening: Happening) -> ThreadEvent:
        loads = self._serde.loads_typed
        interrupts: list[Any] = []
        for value in map(loads, happening.interrupts):
            interrupts += value if isinstance(value, list | tuple) else [value]
        metadata = happening.metadata
        return ThreadEvent(
            kind=happening.kind,
            revision=happening.revision,
            at=happening.at,
            thread_id=happening.thread,
            checkpoint_ns=happening.ns,
            checkpoint_ids=happening.ids,
            parent_id=happening.parent,
            run_id=happening.run,
            metadata=None if metadata is None else loads(metadata),
            channels=happening.channels,
            task_id=happening.task,
            interrupts=tuple(interrupts),
        )
