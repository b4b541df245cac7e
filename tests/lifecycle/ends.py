"""Scenarios: a saver is closed, copied, pickled, forked, dropped."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.checkpoint.saving import at, get, put
from tests.lifecycle.callers import block_all, in_thread
from tests.lifecycle.calls import (
    Open,
    all_raise,
    asynchronous_raise,
    blocking_raise,
    opens,
    raises,
    use,
)
from tests.lifecycle.child import say
from tests.patience import PATIENCE

from jskv_saver import DocumentCheckpointSaver, JetStreamDocumentStore, JetStreamSaver
from jskv_saver.errors import StoreClosedError


def after_close(url: str, bucket: str) -> None:
    """However it was closed, and closed again."""

    async def end_async(open_saver: Open) -> DocumentCheckpointSaver:
        async with open_saver() as saver:
            await put(saver, "1", thread="async with")
        await asynchronous_raise(saver, "closed")
        await in_thread(blocking_raise, saver)
        await saver.aclose()
        await in_thread(saver.close)
        return saver

    async def end_aclose(open_saver: Open) -> DocumentCheckpointSaver:
        saver = open_saver()
        await put(saver, "1", thread="aclose")
        await asyncio.gather(*(saver.aclose() for _ in range(10)))
        return saver

    async def end_by_threads(open_saver: Open) -> DocumentCheckpointSaver:
        saver = open_saver()
        await put(saver, "1", thread="threads")
        await asyncio.gather(*(in_thread(saver.close) for _ in range(24)))
        return saver

    def end_close(open_saver: Open) -> DocumentCheckpointSaver:
        saver = open_saver()
        use(saver, "close")
        saver.close()
        saver.close()
        return saver

    def end_with(open_saver: Open) -> DocumentCheckpointSaver:
        with open_saver() as saver:
            use(saver, "with")
        return saver

    def end_unused(open_saver: Open) -> DocumentCheckpointSaver:
        saver = open_saver()
        saver.close()
        return saver

    for open_saver in opens(url, bucket):
        for end in (end_async, end_aclose, end_by_threads):
            say(end.__name__)
            saver = asyncio.run(end(open_saver))
            all_raise(saver, "closed")
        for close in (end_close, end_with, end_unused):
            say(close.__name__)
            saver = close(open_saver)
            all_raise(saver, "closed")
            saver.close()
            asyncio.run(saver.aclose())


def copied(url: str, bucket: str) -> None:
    """A copy shares the connection, and its end."""
    ways: dict[str, Callable[[DocumentCheckpointSaver], object]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "with_allowlist": lambda s: s.with_allowlist([("tests.other", "Kind")]),
    }
    for open_saver in opens(url, bucket):
        for way, make in ways.items():
            for used in (True, False):
                say(way, "used" if used else "unused")
                saver = open_saver()
                if used:
                    use(saver, f"{way} before")
                clone = make(saver)
                assert isinstance(clone, type(saver))
                assert clone.store is saver.store
                use(clone, f"{way} {used} clone")
                use(saver, f"{way} {used} saver")
                assert clone.get_tuple(at(thread=f"{way} {used} saver")) is not None
                clone.close()
                all_raise(saver, "closed")
                all_raise(clone, "closed")
                saver.close()


def pickled(url: str, bucket: str) -> None:
    """No other process could use it: what to do instead is said."""
    for open_saver in opens(url, bucket):
        with open_saver() as saver:
            with raises(TypeError, "used", "cannot be pickled", "make one"):
                pickle.dumps(saver)
        with raises(TypeError, "unused", "cannot be pickled", "make one"):
            pickle.dumps(open_saver())
    store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
    with raises(TypeError, "store", "cannot be pickled", "make one"):
        pickle.dumps(store)
    assert copy.copy(store) is copy.deepcopy(store) is store
    asyncio.run(store.close())


def in_child(act: Callable[[], None]) -> None:
    """Fork, act in the child, and let it end as a program does."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            gc.collect()
            sys.stdout.flush()
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"


def connections(url: str) -> int:
    """How many open files of this process are connections to the server."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as s:
            peer = s.getpeername()
            found += peer[1:] == (urlsplit(url).port,)
    return found


def forked_while_a_thread_serves(url: str, bucket: str) -> None:
    for open_saver in opens(url, bucket):
        saver = open_saver()
        use(saver, "before")

        def act(
            saver: DocumentCheckpointSaver = saver, fresh: Open = open_saver
        ) -> None:
            assert connections(url) == 0, "the child has the parent's connection"
            all_raise(saver, "fork", "open a new one")
            saver.close()
            all_raise(saver)
            gc.collect()
            with fresh() as mine:
                use(mine, "child")

        in_child(act)
        use(saver, "after")
        # A copy that was made before shares the connection, and the rule.
        clone = copy.copy(saver)
        in_child(lambda clone=clone: all_raise(clone, "fork"))  # type: ignore[misc]
        use(clone, "clone after")
        saver.close()


def forked_on_the_serving_loop(url: str, bucket: str) -> None:
    """Whatever the child closes or collects is off nobody's selector but its own."""

    async def main(open_saver: Open) -> None:
        saver = open_saver()
        async with saver:
            await put(saver, "1", thread="loop")
            loop = asyncio.get_running_loop()

            def act() -> None:
                assert connections(url) == 0, "the child has the parent's connection"
                blocking_raise(saver, "fork")
                saver.close()
                # What a garbage collector does to the connection, sooner or later.
                for found in gc.get_objects():
                    if isinstance(found, asyncio.StreamWriter):
                        found.transport.close()

            loop.set_debug(False)  # which forbids the last of it from a thread
            await in_thread(in_child, act)
            for id in ("2", "3"):
                async with asyncio.timeout(PATIENCE):
                    await put(saver, id, {"x": id}, thread="loop")
            in_child(lambda: blocking_raise(saver, "fork"))
            assert (await get(saver, thread="loop")).checkpoint["id"] == "3"

    for open_saver in opens(url, bucket):
        asyncio.run(main(open_saver))


def forked_before_first_use(url: str, bucket: str) -> None:
    """As a server does that loads the program and forks its workers then."""
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    for n in range(3):

        def act(n: int = n) -> None:
            use(saver, f"worker {n}")
            block_all(saver)
            saver.close()

        in_child(act)
    use(saver, "parent")
    assert all(saver.get_tuple(at(thread=f"worker {n}")) for n in range(3))
    saver.close()


def forked_in_the_middle(url: str, bucket: str) -> None:
    """While other threads open, call and close: no lock stays held in the child."""
    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    use(saver, "first")
    stop = threading.Event()
    fresh: list[JetStreamSaver] = [saver]

    def busy(n: int) -> None:
        while not stop.is_set():
            with JetStreamSaver.from_conn_string(url, bucket=bucket) as mine:
                fresh[0] = mine
                mine.get_tuple(at(thread=n))
                saver.get_tuple(at(thread=n))

    threads = [threading.Thread(target=busy, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()

    def act() -> None:
        blocking_raise(saver, "fork")
        # Being opened or closed at this moment, or open: anything but a hang.
        with contextlib.suppress(StoreClosedError):
            fresh[0].get_tuple(at())
        fresh[0].close()

    for _ in range(8):
        in_child(act)
    stop.set()
    for thread in threads:
        thread.join()
    use(saver, "last")
    saver.close()
