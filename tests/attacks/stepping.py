"""Cancelling a call at each of its awaits, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from tests.patience import until

T = TypeVar("T")


class Stepped(Generic[T]):
    """Awaits a call, and cancels it at its n-th suspension.

    Args:
        call: The call.
        cancel_at: The suspension, from 0 on.
        late: Cancel when what it waits for is there already, as it happens to a task
            whose answer has arrived but that has not run yet. Else while it waits.

    Attributes:
        suspensions: How often it has been suspended.
    """

    def __init__(
        self, call: Coroutine[Any, Any, T], cancel_at: int, *, late: bool = False
    ) -> None:
        self._call = call
        self._cancel_at = cancel_at
        self._late = late
        self.suspensions = 0

    def __await__(self) -> Generator[Any, None, T]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._call.throw(error) if error else self._call.send(None)
            except StopIteration as stop:
                value: T = stop.value
                return value
            now = self.suspensions == self._cancel_at
            self.suspensions += 1
            if now and not self._late:
                task = asyncio.current_task()
                assert task is not None
                # The task meets this as soon as it is given what to wait for.
                task.cancel()
            error = None
            try:
                yield awaited
            except BaseException as exc:
                error = exc
            if now and self._late:
                error = asyncio.CancelledError()


async def cancelled_at(
    call: Coroutine[Any, Any, Any], suspension: int, *, late: bool
) -> bool:
    """Make a call in a task of its own and cancel it; whether it came to that.

    A call that was cancelled ends as cancelled: it swallows nothing.
    """
    stepped = Stepped(call, suspension, late=late)

    async def run() -> None:
        await stepped

    task = asyncio.create_task(run())
    await asyncio.wait({task})
    if task.cancelled():
        return True
    task.result()
    assert stepped.suspensions <= suspension, "the cancellation was swallowed"
    return False


async def only(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait until no other tasks run than these."""
    await until(lambda: not asyncio.all_tasks() - tasks)
