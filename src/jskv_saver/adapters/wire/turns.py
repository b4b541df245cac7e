"""Who is served next: so many calls at once, none at the others' cost. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple


class Caller(NamedTuple):
    """Who asks.

    Attributes:
        owner: The namespace, which the broker may have checked.
        inbox: Where the answers go: one program, as far as it tells the truth.
    """

    owner: str
    inbox: str


class _Waiting(NamedTuple):
    start: Callable[[], None]
    size: int


class Turns:
    """Starts calls, at once or in turn.

    One owner may have three quarters of the places, and one of its callers three
    quarters of those, so that a new one finds some free whatever the others do. Those
    who wait are taken up one of each owner after the other, and of an owner one of
    each caller. What waits is bounded, in number and in bytes, and shared likewise.

    Args:
        places: Calls at a time.
        waiting: Calls that may wait.
        most_bytes: Bytes that those who wait may hold together.
    """

    def __init__(self, places: int, waiting: int, most_bytes: int = 2**28) -> None:
        self._running: Final = _Shares(places)
        self._waiting: Final = _Shares(waiting)
        self._most_bytes: Final = most_bytes
        self._bytes = 0
        self._queues: dict[str, dict[str, deque[_Waiting]]] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self._running.total and not self._waiting.total

    def enter(self, caller: Caller, start: Callable[[], None], size: int = 0) -> bool:
        """Start a call of so many bytes, now or later; False where too many wait."""
        queued = caller.inbox in self._queues.get(caller.owner, ())
        if not queued and self._running.has_room(caller):
            self._running.add(caller, 1)
            start()
            return True
        if not self._waiting.has_room(caller):
            return False
        if self._bytes + size > self._most_bytes:
            return False
        queues = self._queues.setdefault(caller.owner, {})
        queues.setdefault(caller.inbox, deque()).append(_Waiting(start, size))
        self._waiting.add(caller, 1)
        self._bytes += size
        return True

    def leave(self, caller: Caller) -> None:
        """A call of this caller has ended: the next may begin."""
        self._running.add(caller, -1)
        while (following := self._next()) is not None:
            call = self._take(following)
            self._running.add(following, 1)
            call.start()

    def drop(self) -> None:
        """Forget those who wait: they are never started."""
        for owner, queues in self._queues.items():
            for inbox, queue in queues.items():
                self._waiting.add(Caller(owner, inbox), -len(queue))
        self._queues.clear()
        self._bytes = 0

    def _next(self) -> Caller | None:
        """The first of those who wait that may run."""
        for owner, queues in self._queues.items():
            if not self._running.has_room_of(owner):
                continue
            for inbox in queues:
                caller = Caller(owner, inbox)
                if self._running.has_room(caller):
                    return caller
        return None

    def _take(self, caller: Caller) -> _Waiting:
        """Its first call; what it has besides goes behind all others."""
        queues = self._queues.pop(caller.owner)
        queue = queues.pop(caller.inbox)
        call = queue.popleft()
        self._waiting.add(caller, -1)
        self._bytes -= call.size
        if queue:
            queues[caller.inbox] = queue
        if queues:
            self._queues[caller.owner] = queues
        return call


class _Shares:
    """How many there are, of each owner and of each caller, and how many may be."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._of_owner: Final = max(1, most * 3 // 4)
        self._of_caller: Final = max(1, most * 9 // 16)
        self._counts: dict[str | Caller, int] = {}
        self.total = 0

    def has_room(self, caller: Caller) -> bool:
        """Whether there may be one more."""
        return (
            self.has_room_of(caller.owner)
            and self._counts.get(caller, 0) < self._of_caller
        )

    def has_room_of(self, owner: str) -> bool:
        """Whether there may be one more of any caller of this owner."""
        return self.total < self._most and self._counts.get(owner, 0) < self._of_owner

    def add(self, caller: Caller, number: int) -> None:
        """Count one more, or one less."""
        self.total += number
        for key in (caller.owner, caller):
            count = self._counts.get(key, 0) + number
            if count:
                self._counts[key] = count
            else:
                del self._counts[key]
