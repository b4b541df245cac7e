"""An event loop without a clock and without a network: nothing in it ever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Clockwork(asyncio.BaseEventLoop):
    """Runs what can run, in a fixed order; a sleep is over when nothing else can."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> Sequence[Any]:
        """As a selector's: no file is ever ready."""
        if timeout is None:
            # Everybody waits for a future that somebody outside has to set.
            self.stop()
        elif timeout > 0:
            self._now += timeout
        return ()

    def _process_events(self, events: Sequence[Any]) -> None:
        assert not events

    def _write_to_self(self) -> None:
        """Nobody else wakes it."""

    def settle(self) -> None:
        """Run until nobody can go on."""
        self.run_forever()

    def finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that depends on nobody outside to its end."""
        task = self.create_task(coroutine)
        self.settle()
        assert task.done(), "it waits for somebody outside"
        return task.result()
