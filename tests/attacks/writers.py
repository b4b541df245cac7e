"""Twenty threads of puts and reads, whatever happens to the server meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.attacks.indexes import check_threads
from tests.checkpoint.saving import at, listed, put, values
from tests.patience import until

from jskv_saver import JetStreamSaver
from jskv_saver.errors import JskvError, StoreUnavailableError, UnknownOutcomeError

AWAY = (StoreUnavailableError, UnknownOutcomeError)
THREADS = [f"thread {n}" for n in range(20)]


def state_of(thread: str, n: int) -> dict[str, Any]:
    return {"n": n, "keep": thread * 300, "large": f"{thread} {n} " * 300}


class Writers:
    """Twenty threads of puts and reads, each put repeated until it is acknowledged.

    They write for as long as it is entered.

    Attributes:
        acknowledged: Of each thread the greatest number.
        errors: What the calls raised.
        longest: Seconds that the longest step took, with its three calls.
    """

    def __init__(self, saver: JetStreamSaver, *expected: type[JskvError]) -> None:
        self._saver = saver
        self._expected = expected
        self._end = False
        self.acknowledged: dict[str, int] = {}
        self.errors: list[JskvError] = []
        self.longest = 0.0

    async def __aenter__(self) -> Writers:
        self._running = asyncio.gather(*map(self._write, THREADS))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._end = True
        await self._running

    async def _write(self, thread: str) -> None:
        n = 0
        while not self._end:
            begin = time.monotonic()
            try:
                await self._step(thread, n)
            except self._expected as error:
                self.errors.append(error)
                await asyncio.sleep(0.01)
            else:
                n += 1
            finally:
                self.longest = max(self.longest, time.monotonic() - begin)

    async def _step(self, thread: str, n: int) -> None:
        await put(
            self._saver,
            f"{n:06}",
            state_of(thread, n),
            parent=f"{n - 1:06}" if n else None,
            thread=thread,
        )
        self.acknowledged[thread] = n
        config = at(f"{n:06}", thread=thread)
        await self._saver.aput_writes(config, [("a", n)], "task")
        # A thread that has been acknowledged is never an empty one.
        assert await values(self._saver, thread=thread) == state_of(thread, n)

    async def progress(self, puts: int = 60) -> None:
        """Wait until so many more are acknowledged."""
        target = self.count() + puts
        await self.wait(lambda: self.count() >= target)

    async def wait(self, true: Callable[[], bool]) -> None:
        """Wait for something, while all write."""
        await until(lambda: self._running.done() or true())
        assert not self._running.done() or self._running.result()

    def count(self) -> int:
        """How many puts are acknowledged."""
        return sum(n + 1 for n in self.acknowledged.values())


async def check(writers: Writers, reader: JetStreamSaver) -> None:
    """All that was acknowledged is there and whole; nothing is there in part."""
    for thread in THREADS:
        rows = await listed(reader, at(thread=thread))
        numbers = [row.checkpoint["channel_values"]["n"] for row in rows]
        last = writers.acknowledged[thread]
        assert numbers[0] in (last, last + 1)
        assert numbers == list(range(numbers[0], -1, -1))
        for row, n in zip(rows, numbers, strict=True):
            assert row.checkpoint["channel_values"] == state_of(thread, n)
            if n < last:
                assert row.pending_writes == [("task", "a", n)]
    await check_threads(reader.store, *THREADS)
