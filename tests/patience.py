"""Waiting for what happens, on a machine that may be busy with something else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from jskv_saver.errors import StoreUnavailableError, UnknownOutcomeError

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which what has not happened never will. Nothing waits so long else."""
PROMPT = 10.0
"""Seconds that an immediate answer may take: less than those that wait in vain do."""
_LOOK = 0.005


async def until(true: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(_LOOK)


def wait_until(true: Callable[[], bool], patience: float = PATIENCE) -> None:
    """The same, where no loop runs."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(_LOOK)


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call whose deadline is short again until the server was in time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except (StoreUnavailableError, UnknownOutcomeError):
                await asyncio.sleep(_LOOK)


@contextmanager
def at_once() -> Iterator[None]:
    """What is done here waits for no deadline, if that is `PATIENCE`."""
    begin = time.monotonic()
    yield
    took = time.monotonic() - begin
    assert took < PROMPT, f"it took {took:.1f} s"
