"""Scenarios: a process ends, or is interrupted, with a saver in any state."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tests.checkpoint.saving import at, checkpoint, meta, numbered, put, put_chain
from tests.lifecycle.calls import use
from tests.patience import PATIENCE

from jskv_saver import JetStreamSaver
from jskv_saver.errors import StoreClosedError

_kept: list[object] = []
"""What is alive until the very end."""


def _saver(url: str, bucket: str) -> JetStreamSaver:
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    _kept.append(saver)
    return saver


def never_used(url: str, bucket: str) -> None:
    _saver(url, bucket)


def never_closed(url: str, bucket: str) -> None:
    for n in range(3):
        use(_saver(url, bucket), f"never closed {n}")


def never_left(url: str, bucket: str) -> None:
    async def main() -> None:
        saver = await _saver(url, bucket).__aenter__()
        await put(saver, "1", thread="never left")

    asyncio.run(main())


def dropped(url: str, bucket: str) -> None:
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    use(saver, "dropped")
    del saver
    for thread in threading.enumerate():
        if thread.name == "jskv_saver":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def in_mid_listing(url: str, bucket: str) -> None:
    async def main() -> None:
        async with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
            await put_chain(saver, numbered(20), thread="listing")
            rows = saver.alist(at(thread="listing"))
            _kept.append(rows)
            await anext(rows)

    asyncio.run(main())
    rows = _saver(url, bucket).list(at(thread="listing"))
    _kept.append(rows)
    next(rows)


def with_daemon_threads(url: str, bucket: str) -> None:
    """They are in the middle of calls: each gets an answer or `StoreClosedError`."""
    saver = _saver(url, bucket)
    turns = threading.Semaphore(0)

    def work(n: int) -> None:
        with contextlib.suppress(StoreClosedError):
            for turn in count():
                thread = f"daemon {n} {turn}"
                saver.put(at(thread=thread), checkpoint("1"), meta(), {})
                turns.release()

    for n in range(4):
        threading.Thread(target=work, args=(n,), daemon=True).start()
    for _ in range(20):
        turns.acquire()


@contextmanager
def _interrupted(after: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C, as soon as something has happened in another thread."""

    def interrupt() -> None:
        after()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        yield
    except KeyboardInterrupt:
        thread.join()
    else:
        raise AssertionError("not interrupted")


def interrupted_in_a_blocking_call(url: str, bucket: str) -> None:
    """The caller is free at once, and the saver goes on working."""
    saver = _saver(url, bucket)
    calls = threading.Semaphore(0)

    def many() -> None:
        for _ in range(30):
            calls.acquire()

    with _interrupted(many):
        for n in count():
            saver.put(at(thread=f"{n}"), checkpoint("1", {"n": n}), meta(), {})
            calls.release()
    use(saver, "goes on")


def interrupted_in_a_loop(url: str, bucket: str) -> None:
    """`asyncio.run` cancels what runs; the block is left, and the process ends."""
    calls = threading.Semaphore(0)

    async def main() -> None:
        async with _saver(url, bucket) as saver:
            for n in count():
                await put(saver, "1", {"n": n}, thread=f"loop {n}")
                calls.release()

    def many() -> None:
        for _ in range(30):
            calls.acquire()

    with _interrupted(many):
        asyncio.run(main())
