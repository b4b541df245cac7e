"""Starting again on what others wrote meanwhile, for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable

from jskv_saver.errors import VersionConflictError

_PATIENCE = 30.0
"""Seconds for which what was refused is built anew on what others wrote meanwhile."""

_CONCURRENT = 64


async def persist(attempt: Callable[[], Awaitable[bool]]) -> None:
    """Call until it succeeds, each time on what definitely refused it, read anew."""
    if await attempt():
        return
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    pause = 0.001
    while not await attempt():
        if asyncio.get_running_loop().time() > deadline:
            raise VersionConflictError(
                f"other writers were first for {_PATIENCE:.0f} seconds; nothing was "
                "written"
            )
        await asyncio.sleep(pause * random.random())
        pause = min(pause * 1.5, 0.05)


async def gather_some(calls: Iterable[Awaitable[None]]) -> None:
    """Await calls, `_CONCURRENT` at a time; the first failure ends it."""
    waiting: list[Awaitable[None]] = []
    for call in calls:
        waiting.append(call)
        if len(waiting) == _CONCURRENT:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)
