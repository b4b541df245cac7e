"""Leases as a user has them: blocks in which one process alone continues a thread."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import sys
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

from jskv_saver._portal import Portal, running_loop
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.document.requests import LEAST_TTL, MOST_TTL
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    LeaseHeldError,
    LeaseLostError,
    StoreClosedError,
)

_log = logging.getLogger(__name__)
_RENEWALS: Final = 3
"""How often it is renewed in the time that one renewal lasts."""
_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.25
"""Seconds between two looks of one who waits."""

_HELD: ContextVar[tuple[Holding, ...]] = ContextVar("jskv_saver_leases", default=())
"""The holdings in whose blocks this code runs, the innermost last."""


class Leases:
    """The leases that a saver holds. Used on its home loop, and asked from anywhere."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._held: dict[str, tuple[Lease, ...]] = {}
        self._closed = False

    def holding(self, thread: str, ttl: float) -> Holding:
        """One that is not taken yet."""
        return Holding(self._partition, thread, ttl)

    def current(self, thread: str) -> Holding | None:
        """Under which lease a put from here is: the block's, or else the saver's.

        A thread that was started in a block need not know that it runs in it.
        """
        if not self._held and not _HELD.get():
            return None
        for holding in reversed(_HELD.get()):
            if holding.thread == thread and holding.is_of(self._partition):
                return holding
        held = self._held.get(thread)
        return held[-1].holding if held else None

    def add(self, lease: Lease) -> None:
        """A lease was taken.

        Raises:
            StoreClosedError: The saver was closed meanwhile.
        """
        if self._closed:
            raise StoreClosedError("used after it was closed; open a new one")
        self._held[lease.thread_id] = (*self._held.get(lease.thread_id, ()), lease)

    def discard(self, lease: Lease) -> None:
        """A block ends."""
        rest = tuple(e for e in self._held.get(lease.thread_id, ()) if e is not lease)
        if rest:
            self._held[lease.thread_id] = rest
        else:
            self._held.pop(lease.thread_id, None)

    async def close(self) -> None:
        """Give all of them back: the saver ends."""
        self._closed = True
        for lease in [each for held in self._held.values() for each in held]:
            # What cannot be given back expires.
            with suppress(JskvError):
                await lease.end()


class Lease:
    """A block in which this process alone continues a thread: what `lease` gives.

    Entered with `async with` or `with`. It is renewed until the block ends, and is over
    by itself when the process dies or does not reach the server for `ttl` seconds: then
    another one may take it, and this one's puts raise `LeaseLostError`. What is put to
    the thread from within the block, and by code that it starts, is put under it.

    Attributes:
        thread_id: The thread.
        ttl: Seconds for which it lasts without a renewal.
    """

    def __init__(
        self, portal: Portal, leases: Leases, thread_id: str, ttl: float, wait: float
    ) -> None:
        self.thread_id = thread_id
        self.ttl = ttl
        self._portal = portal
        self._leases = leases
        self._wait = wait
        self._begun = False
        self._holding: Holding | None = None
        self._stop: asyncio.Event | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def holding(self) -> Holding:
        """What is held, in the block."""
        if self._holding is None:
            raise InvalidRequestError(
                "this lease was never taken: enter it with `async with` or `with`"
            )
        return self._holding

    @property
    def holder(self) -> str:
        """How others are told who holds it: host, process, and a name of its own."""
        return self.holding.holder

    @property
    def lost(self) -> bool:
        """Whether it is known to be lost; `check` asks the server."""
        return self.holding.lost

    def check(self) -> None:
        """Ask the server whether it is still held: before what cannot be undone.

        Raises:
            LeaseLostError: It is not.
        """
        self._portal.run(self.holding.check)

    async def acheck(self) -> None:
        """As `check`, to be awaited."""
        await self._portal.arun(self.holding.check)

    async def __aenter__(self) -> Lease:
        self._begin()
        try:
            await self._portal.arun(self._take)
        except JskvError:
            raise
        except BaseException:
            self._abandon()
            raise
        self._enter()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()
        try:
            await self._portal.arun(self.end)
        except JskvError as failure:
            self._note(failure, exc)

    def __enter__(self) -> Lease:
        self._begin()
        try:
            self._portal.run(self._take)
        except JskvError:
            raise
        except BaseException:
            self._abandon()
            raise
        self._enter()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()
        try:
            self._portal.run(self.end)
        except JskvError as failure:
            self._note(failure, exc)

    def _begin(self) -> None:
        if self._begun:
            raise InvalidRequestError(
                "this lease was entered before: ask the saver for another one"
            )
        self._begun = True

    def _enter(self) -> None:
        _HELD.set((*_HELD.get(), self.holding))

    def _leave(self) -> None:
        _HELD.set(tuple(each for each in _HELD.get() if each is not self._holding))

    def _abandon(self) -> None:
        """Who entered gave up; it may have been taken meanwhile, on another loop."""
        with suppress(JskvError, RuntimeError):
            home = self._portal.home()
            if home is not running_loop():
                home.call_soon_threadsafe(self._end_later)

    def _note(self, failure: JskvError, exc: BaseException | None) -> None:
        """What to do with a failure at the end of a block."""
        if isinstance(failure, LeaseLostError) and exc is None:
            raise failure
        # What the block raised goes before; and what could not be given back expires.
        _log.warning(
            "the lease of thread %r ended: %s",
            self.thread_id,
            failure,
            extra={"event": "jskv.lease.not_given_back"},
        )

    # -- at home -----------------------------------------------------------------------

    async def _take(self) -> None:
        self._taking = asyncio.current_task()
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + self._wait, _FIRST_LOOK
        while True:
            holding = self._leases.holding(self.thread_id, self.ttl)
            try:
                if await holding.take():
                    self._holding = holding
                    self._leases.add(self)
                    break
            except BaseException:
                await holding.drop()
                raise
            while (other := await holding.other()) is not None:
                left = end - loop.time()
                if left <= 0:
                    raise self._held_by(other)
                await asyncio.sleep(min(left, pause * random.uniform(0.5, 1)))
                pause = min(pause * 1.5, _LONGEST_LOOK)
        self._stop = asyncio.Event()
        self._keeper = asyncio.create_task(self._keep(holding, self._stop))

    def _held_by(self, other: str) -> LeaseHeldError:
        waited = f" after {self._wait:g} seconds" if self._wait else ""
        return LeaseHeldError(
            f"the lease of thread {self.thread_id!r} is held by {other}{waited}; it is "
            "free when that ends, or its ttl after it died: wait longer, or try again",
            thread=self.thread_id,
            holder=other,
        )

    async def _keep(self, holding: Holding, stop: asyncio.Event) -> None:
        """Renew it until the block ends, or it is lost."""
        pause = self.ttl / _RENEWALS
        while not await _within(stop.wait(), pause):
            pause = self.ttl / _RENEWALS
            try:
                if not await holding.renew():
                    _log.warning(
                        "the lease of thread %r was lost",
                        self.thread_id,
                        extra={"event": "jskv.lease.lost"},
                    )
                    return
            except StoreClosedError:
                return
            except JskvError as failure:
                # It lasts until it expires, and then is lost: that will be seen.
                pause /= _RENEWALS
                _log.warning(
                    "the lease of thread %r was not renewed: %s",
                    self.thread_id,
                    failure,
                    extra={"event": "jskv.lease.not_renewed"},
                )

    def _end_later(self) -> None:
        async def end() -> None:
            if self._taking is not None:
                await asyncio.wait((self._taking,))
            with suppress(JskvError):
                await self.end()

        self._ending = asyncio.create_task(end())

    async def end(self) -> None:
        """Give it back. Idempotent.

        Raises:
            LeaseLostError: It was lost before.
        """
        holding, keeper = self._holding, self._keeper
        if holding is None or keeper is None:
            return
        self._keeper = None
        holding.ended = True
        self._leases.discard(self)
        if self._stop is not None:
            self._stop.set()
        # One that is under way ends first, or the lease would outlive its block.
        await asyncio.wait((keeper,))
        await holding.give_back()


async def _within(coroutine: Coroutine[None, None, object], seconds: float) -> bool:
    """Whether it ended in that time."""
    try:
        async with asyncio.timeout(seconds):
            await coroutine
    except TimeoutError:
        return False
    return True


def lease_of(
    portal: Portal, leases: Leases, thread_id: str, ttl: float, wait: float
) -> Lease:
    """A lease that is not taken yet.

    Raises:
        InvalidRequestError: A time is none.
    """
    if type(ttl) not in (int, float) or not LEAST_TTL <= ttl <= MOST_TTL:
        raise InvalidRequestError(
            f"ttl must be a number of seconds from {LEAST_TTL:g} to {MOST_TTL:g}: "
            f"{ttl!r:.40}"
        )
    if type(wait) not in (int, float) or not wait >= 0:
        raise InvalidRequestError(
            "wait must be a number of seconds from 0 (do not wait) to math.inf: "
            f"{wait!r:.40}"
        )
    # An int may be too large for a float.
    longest = math.inf if wait > sys.float_info.max else float(wait)
    return Lease(portal, leases, thread_id, ttl, longest)
