"""The puts of one process to one checkpoint namespace go one after the other.

The fence alone keeps them right; but of several at a time all but one would be
refused and start again. Therefore nobody waits for a put that is stuck.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from jskv_saver.checkpoint.layout import Scope

_STUCK = 1.0
"""Seconds without a finished put after which the next one no longer waits."""


class Turns:
    """Whose turn it is, by namespace. Used on one event loop."""

    def __init__(self) -> None:
        self._queues: WeakValueDictionary[Scope, _Queue] = WeakValueDictionary()

    def take(self, scope: Scope) -> Turn:
        """A turn: `async with` waits for it, and passes it on at the end."""
        queue = self._queues.get(scope)
        if queue is None:
            queue = self._queues[scope] = _Queue()
        return Turn(queue)


class Turn:
    """One put's place in the queue."""

    __slots__ = ("_is_first", "_queue")

    def __init__(self, queue: _Queue) -> None:
        self._queue = queue
        self._is_first = False

    async def __aenter__(self) -> None:
        self._queue.users += 1
        try:
            self._is_first = await self._queue.wait()
        except BaseException:
            self._queue.users -= 1
            raise

    async def __aexit__(self, *exc: object) -> None:
        queue = self._queue
        queue.users -= 1
        if self._is_first:
            queue.finished += 1
            queue.lock.release()


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
