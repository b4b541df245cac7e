"""The puts of one process to one checkpoint namespace go one after the other.

The fence alone keeps them right; but of several at a time all but one would be
refused and start again. Therefore nobody waits for a put that is stuck.
"""

from __future__ import annotations

import asyncio

from jskv_saver.checkpoint.layout import Scope

_STUCK = 1.0
"""Seconds without a finished put after which the next one no longer waits."""


class Turns:
    """Whose turn it is, by namespace. Used on one event loop."""

    def __init__(self) -> None:
        self._queues: dict[Scope, _Queue] = {}

    def take(self, scope: Scope) -> Turn:
        """A turn: `async with` waits for it, and passes it on at the end."""
        return Turn(self._queues, scope)


class Turn:
    """One put's place in the queue."""

    __slots__ = ("_is_first", "_queue", "_queues", "_scope")

    def __init__(self, queues: dict[Scope, _Queue], scope: Scope) -> None:
        self._queues = queues
        self._scope = scope
        self._is_first = False

    async def __aenter__(self) -> None:
        queue = self._queues.get(self._scope)
        if queue is None:
            queue = self._queues[self._scope] = _Queue()
        self._queue = queue
        queue.users += 1
        try:
            self._is_first = await queue.wait()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *exc: object) -> None:
        if self._is_first:
            self._queue.finished += 1
            self._queue.lock.release()
        self._leave()

    def _leave(self) -> None:
        self._queue.users -= 1
        if not self._queue.users:
            del self._queues[self._scope]


class _Queue:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.finished = 0

    async def wait(self) -> bool:
        """Whether the turn came; else what precedes is stuck."""
        if self.users == 1:
            # The usual case: nobody else is here, so this does not wait.
            return await self.lock.acquire()
        while True:
            finished = self.finished
            try:
                async with asyncio.timeout(_STUCK):
                    return await self.lock.acquire()
            except TimeoutError:
                if self.finished == finished:
                    return False
