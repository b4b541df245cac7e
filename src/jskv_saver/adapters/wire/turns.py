"""Who is served next: so many calls at once, none at the others' cost. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final


class Turns:
    """Starts calls, at once or in turn.

    A caller is whom the answers go to. One caller alone may have three quarters of
    the places, so that a new one finds some free whatever the others do; those who
    wait are taken up one of each caller after the other. What waits is bounded, in
    number and in bytes, for one caller at three quarters as well.

    Args:
        places: Calls at a time.
        waiting: Calls that may wait.
        most_bytes: Bytes that those who wait may hold together.
    """

    def __init__(self, places: int, waiting: int, most_bytes: int = 2**28) -> None:
        self._places: Final = places
        self._share: Final = max(1, places * 3 // 4)
        self._most: Final = waiting
        self._most_each: Final = max(1, waiting * 3 // 4)
        self._most_bytes: Final = most_bytes
        self._running = 0
        self._by_caller: dict[str, int] = {}
        self._queues: dict[str, deque[tuple[Callable[[], None], int]]] = {}
        self._waiting = self._bytes = 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self._running and not self._waiting

    def enter(self, caller: str, start: Callable[[], None], size: int = 0) -> bool:
        """Start a call of so many bytes, now or later; False where too many wait."""
        if self._may_run(caller) and caller not in self._queues:
            self._run(caller, start)
            return True
        mine = len(self._queues.get(caller, ()))
        if self._waiting >= self._most or mine >= self._most_each:
            return False
        if self._bytes + size > self._most_bytes:
            return False
        self._queues.setdefault(caller, deque()).append((start, size))
        self._waiting += 1
        self._bytes += size
        return True

    def leave(self, caller: str) -> None:
        """A call of this caller has ended: the next may begin."""
        self._running -= 1
        left = self._by_caller[caller] - 1
        if left:
            self._by_caller[caller] = left
        else:
            del self._by_caller[caller]
        for each in list(self._queues):
            if self._running >= self._places:
                return
            if self._may_run(each):
                self._run(each, self._take(each))

    def _may_run(self, caller: str) -> bool:
        return (
            self._running < self._places
            and self._by_caller.get(caller, 0) < self._share
        )

    def _take(self, caller: str) -> Callable[[], None]:
        queue = self._queues.pop(caller)
        start, size = queue.popleft()
        self._waiting -= 1
        self._bytes -= size
        if queue:
            # Behind all others.
            self._queues[caller] = queue
        return start

    def _run(self, caller: str, start: Callable[[], None]) -> None:
        self._running += 1
        self._by_caller[caller] = self._by_caller.get(caller, 0) + 1
        start()
