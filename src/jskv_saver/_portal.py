"""The only bridge between threads and event loops.

A `Portal` has one home: an event loop on which everything that it is given runs.
The home is the loop that entered it (`bind`), or else a loop in a thread of its own,
started by the first call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

from jskv_saver.errors import StoreClosedError, WrongThreadError

Ts = TypeVarTuple("Ts")
T = TypeVar("T")

_LIVENESS_CHECK = 1.0
"""Seconds between two looks whether the loop that owes an answer still runs."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Portal:
    """Runs coroutine functions on one event loop, from any thread or other loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Make a portal.

        Args:
            loop: The home, where it is settled already (an existing connection's).
        """
        self._loop = loop
        # Of the process that the home is in; None as long as there is no home.
        self._pid = None if loop is None else os.getpid()
        self._thread: threading.Thread | None = None
        self._stop: weakref.finalize[..., Portal] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._parent: Portal | None = None

    def child(self) -> Portal:
        """A portal with the same home that can be closed without closing this one."""
        child = Portal()
        child._parent = self
        return child

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def lost(self) -> bool:
        """Whether its home is out of reach: another process's, or ended."""
        home = self._parent or self
        ended = home._loop is not None and home._loop.is_closed()
        return ended or home._is_foreign()

    def bind(self) -> None:
        """Make the running loop the home, unless there is a home already."""
        if self._parent:
            self._parent.bind()
            return
        loop = asyncio.get_running_loop()
        self._settle_here()
        with self._lock:
            self._refuse_strangers()
            if self._loop is None:
                self._loop = loop

    def home(self) -> asyncio.AbstractEventLoop:
        """The home loop; a thread with one is started if there is none yet.

        Raises:
            StoreClosedError: After `close`, in a forked child, or when the loop that
                opened it has ended.
        """
        if self._parent:
            self._refuse_strangers()
            return self._parent.home()
        loop = self._loop
        if loop is None:
            self._settle_here()
            with self._lock:
                self._refuse_strangers()
                loop = self._loop or self._start()
        else:
            self._refuse_strangers()
        if loop.is_closed():
            raise StoreClosedError(
                "the event loop that opened this has ended; open a new one, or do "
                "not enter it with `async with` to let it keep a loop of its own"
            )
        return loop

    def run(self, fn: Callable[[*Ts], Coroutine[Any, Any, T]], *args: *Ts) -> T:
        """Run `fn(*args)` at home and block until it answers.

        Raises:
            WrongThreadError: This thread runs the home loop, which could never
                answer.
        """
        loop = self.home()
        if running_loop() is loop:
            raise WrongThreadError(
                "a blocking call on the event loop that must serve it would never "
                "return: await the asynchronous method (aput, aget_tuple, ainvoke, …) "
                "instead, or call from another thread"
            )
        if not loop.is_running():
            raise StoreClosedError(
                "the event loop that serves this is not running, so a blocking call "
                "would never return"
            )
        future = _hand_over(loop, fn, args)
        while True:
            try:
                return future.result(_LIVENESS_CHECK)
            except concurrent.futures.CancelledError:
                raise _closed_meanwhile() from None
            except TimeoutError:
                # Either the answer itself is a TimeoutError, or none came yet.
                if future.done():
                    return future.result()
                if not loop.is_running():
                    raise _closed_meanwhile() from None
            except BaseException:
                future.cancel()
                raise

    async def arun(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await `fn(*args)` at home: here, or forwarded from another loop."""
        loop = self.home()
        if asyncio.get_running_loop() is loop:
            return await fn(*args)
        if not loop.is_running():
            raise StoreClosedError("the event loop that serves this is not running")
        future = _hand_over(loop, fn, args)
        answer = asyncio.wrap_future(future)
        try:
            while not answer.done():
                await asyncio.wait((answer,), timeout=_LIVENESS_CHECK)
                if not loop.is_running() and not future.done():
                    raise _closed_meanwhile()
        except BaseException:
            answer.cancel()
            raise
        if answer.cancelled():
            raise _closed_meanwhile()
        return answer.result()

    def close(self) -> None:
        """End the own loop thread, if there is one. Idempotent.

        A call in progress ends with `StoreClosedError`.
        """
        if self._is_foreign():
            # The thread is not in this process, and the lock may be held for ever.
            self._closed = True
            return
        with self._lock:
            self._closed = True
            thread, stop = self._thread, self._stop
            self._thread = self._stop = None
        if thread is None or stop is None:
            return
        stop()
        if thread is not threading.current_thread():
            thread.join()

    def _refuse_strangers(self) -> None:
        if self._closed:
            raise StoreClosedError("used after it was closed; open a new one")
        if (self._parent or self)._is_foreign():
            raise StoreClosedError(
                "opened by another process: after a fork, open a new one in the child"
            )

    def _is_foreign(self) -> bool:
        return self._pid is not None and self._pid != os.getpid()

    def _settle_here(self) -> None:
        """Say whose the home will be, before the lock: a fork may copy it locked."""
        self._refuse_strangers()
        self._pid = os.getpid()

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(
            target=_serve, args=(loop, started), name="jskv_saver", daemon=True
        )
        self._thread.start()
        started.wait()
        # A portal that is dropped without being closed ends its thread as well.
        self._stop = weakref.finalize(self, _stop_loop, loop, os.getpid())
        # At exit the thread just ends with the process, and its socket with it.
        self._stop.atexit = False
        self._loop = loop
        return loop


def _closed_meanwhile() -> StoreClosedError:
    return StoreClosedError("this was closed, or its event loop ended, in mid-call")


def _hand_over(
    loop: asyncio.AbstractEventLoop, fn: Callable[..., Awaitable[T]], args: Any
) -> concurrent.futures.Future[T]:
    """Have a loop run `fn(*args)`; what it never takes up leaves no coroutine behind.

    Cancelling the future cancels what runs.
    """
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def start() -> None:
        if not future.cancelled():
            task = loop.create_task(_awaited(fn, args))
            task.add_done_callback(tell)
            future.add_done_callback(lambda _: _cancel(loop, task))

    def tell(task: asyncio.Future[T]) -> None:
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            future.cancel()
        elif not future.set_running_or_notify_cancel():
            return  # nobody waits any more
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError:
        # It was closed since it was seen running.
        raise _closed_meanwhile() from None
    return future


async def _awaited(fn: Callable[..., Awaitable[T]], args: Any) -> T:
    return await fn(*args)


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Any]) -> None:
    if not task.done():
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(task.cancel)


def _stop_loop(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    # What wakes the loop goes to a socket that a forked child shares.
    if pid == os.getpid() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop, started: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    loop.call_soon(started.set)
    try:
        loop.run_forever()
    finally:
        # What was handed over before becomes a task, and is ended with the others.
        loop.run_until_complete(asyncio.sleep(0))
        rest = asyncio.all_tasks(loop)
        for task in rest:
            task.cancel()
        if rest:
            loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
