"""Scenarios: who may call a saver, from where."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from tests.checkpoint.saving import at, get, ids, put
from tests.lifecycle.calls import (
    ASYNCHRONOUS,
    BLOCKING,
    PROMPT,
    all_raise,
    ause,
    opens,
    raises,
    use,
)
from tests.lifecycle.child import say
from tests.patience import PATIENCE

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    MemoryDocumentStore,
    Page,
)
from jskv_saver.errors import StoreClosedError, WrongThreadError

T = TypeVar("T")


def in_thread(fn: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    """Run in a thread that is not one of the default executor's."""
    pool = ThreadPoolExecutor(1)
    future = asyncio.get_running_loop().run_in_executor(pool, fn, *arguments)
    future.add_done_callback(lambda _: pool.shutdown())
    return future


def block_all(saver: DocumentCheckpointSaver) -> None:
    """Call each blocking method."""
    for call in BLOCKING.values():
        call(saver)


async def await_all(saver: DocumentCheckpointSaver) -> None:
    """Call each asynchronous method."""
    await saver.setup()
    for call in ASYNCHRONOUS.values():
        await call(saver)


def on_the_serving_loop(url: str, bucket: str) -> None:
    async def main(saver: DocumentCheckpointSaver) -> None:
        async with saver:
            await put(saver, "1", {"x": 1})
            for name, call in BLOCKING.items():
                with raises(WrongThreadError, name, "await"):
                    call(saver)
            with raises(WrongThreadError, "close", "await"):
                saver.close()
            assert saver.get_next_version(1, None) == 2
            await saver.setup()
            assert await ids(saver) == ["1"], "a call that was refused did something"
            await in_thread(block_all, saver)

    for open_saver in opens(url, bucket):
        asyncio.run(main(open_saver()))


def from_24_threads(url: str, bucket: str) -> None:
    async def main(saver: DocumentCheckpointSaver, entered: bool) -> None:
        if entered:
            await saver.__aenter__()
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(24) as pool:
            await asyncio.gather(
                *(loop.run_in_executor(pool, use, saver, f"t {n}") for n in range(24)),
                *(loop.run_in_executor(pool, block_all, saver) for _ in range(24)),
                *(ause(saver, f"async {n}") for n in range(8)),
            )
        threads = {f.config["configurable"]["thread_id"] async for f in saver.alist({})}
        assert len(threads - {"t", "u"}) == 32
        for thread in threads:
            await saver.adelete_thread(thread)
        await saver.aclose()

    for open_saver in opens(url, bucket):
        for entered in (True, False):
            say("entered" if entered else "not entered")
            asyncio.run(main(open_saver(), entered))


def with_the_default_executor_full(url: str, bucket: str) -> None:
    async def main(saver: DocumentCheckpointSaver, entered: bool) -> None:
        free = threading.Event()
        jobs = [asyncio.create_task(asyncio.to_thread(free.wait)) for _ in range(100)]
        await asyncio.sleep(0)
        if entered:
            await saver.__aenter__()
        await put(saver, "1", {"x": 1})
        await await_all(saver)
        await in_thread(block_all, saver)
        await saver.aclose()
        assert not any(job.done() for job in jobs)
        free.set()
        await asyncio.gather(*jobs)

    for open_saver in opens(url, bucket):
        for entered in (True, False):
            say("entered" if entered else "not entered")
            asyncio.run(main(open_saver(), entered))


def without_a_serving_loop(url: str, bucket: str) -> None:
    """Entered with `with`, or not at all: any thread and any loop, even a caller's."""

    async def elsewhere(saver: DocumentCheckpointSaver) -> None:
        block_all(saver)
        await await_all(saver)
        await in_thread(block_all, saver)

    for open_saver in opens(url, bucket):
        with open_saver() as saver:
            block_all(saver)
            asyncio.run(elsewhere(saver))
        saver = open_saver()
        for _ in range(2):
            saver.setup()  # which blocks where no loop runs
        block_all(saver)
        for n in range(4):
            asyncio.run(elsewhere(saver))
            asyncio.run(ause(saver, f"run {n}"))
        saver.close()


def four_runs_each_with_a_saver(url: str, bucket: str) -> None:
    async def main(saver: DocumentCheckpointSaver, n: int) -> int:
        async with saver:
            await ause(saver, f"run {n}")
            await await_all(saver)
            return len(await ids(saver, None, filter={"step": 0}))

    for open_saver in opens(url, bucket):
        for n in range(4):
            asyncio.run(main(open_saver(), n))


def from_another_loop(url: str, bucket: str) -> None:
    """Also while the serving loop is blocked: the call waits, and can be given up."""
    given_up, blocked, goes_on = (threading.Event() for _ in range(3))

    def beside(saver: DocumentCheckpointSaver) -> None:
        async def foreign() -> None:
            await await_all(saver)
            goes_on.set()
            blocked.wait()
            start = time.monotonic()
            try:
                await asyncio.wait_for(saver.aget_tuple(at()), 0.1)
            except TimeoutError:
                assert time.monotonic() - start < PROMPT
            else:
                raise AssertionError("answered by a loop that was blocked")
            given_up.set()
            await get(saver)

        asyncio.run(foreign())

    async def main(saver: DocumentCheckpointSaver) -> None:
        async with saver:
            await put(saver, "1", {"x": 1})
            other = in_thread(beside, saver)
            await in_thread(goes_on.wait, PATIENCE)
            blocked.set()
            assert given_up.wait(PATIENCE)
            waits = in_thread(saver.get_tuple, at())
            assert await waits is not None
            await other

    for open_saver in opens(url, bucket):
        for event in (given_up, blocked, goes_on):
            event.clear()
        asyncio.run(main(open_saver()))


def whose_loop_is_gone(url: str, bucket: str) -> None:
    """The loop ended, or it does not run, or it ends in mid-call."""

    async def enter(saver: DocumentCheckpointSaver) -> None:
        await saver.__aenter__()
        await put(saver, "1", {"x": 1})

    for open_saver in opens(url, bucket):
        saver = open_saver()
        asyncio.run(enter(saver))
        all_raise(saver, "ended")
        saver.close()
        asyncio.run(saver.aclose())
        all_raise(saver, "closed")

        saver, loop = open_saver(), asyncio.new_event_loop()
        loop.run_until_complete(enter(saver))
        all_raise(saver, "not running")
        with raises(StoreClosedError, "close", "not running"):
            saver.close()
        loop.run_until_complete(saver.aclose())
        loop.close()


class _Silent(MemoryDocumentStore):
    """A store that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)

    async def find(self, *_: Any, **__: Any) -> Page:
        self.asked.release()
        page: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
        return await page


def that_ends_in_mid_call(url: str, bucket: str) -> None:
    """Every thread and loop that waits for an answer is told that none will come."""

    def block(saver: DocumentCheckpointSaver) -> None:
        with raises(StoreClosedError, "get_tuple", "mid-call"):
            saver.get_tuple(at())

    async def forward(saver: DocumentCheckpointSaver) -> None:
        with raises(StoreClosedError, "aget_tuple", "mid-call"):
            await saver.aget_tuple(at())

    def asks(pool: ThreadPoolExecutor, saver: DocumentCheckpointSaver) -> list[Any]:
        """Four calls that are in the middle."""
        forwards = [pool.submit(asyncio.run, forward(saver)) for _ in range(2)]
        calls = [pool.submit(block, saver) for _ in range(2)]
        for _ in range(4):
            assert cast(_Silent, saver.store).asked.acquire(timeout=PATIENCE)
        return [*forwards, *calls]

    async def serve(
        saver: DocumentCheckpointSaver, pool: ThreadPoolExecutor
    ) -> list[Any]:
        await saver.__aenter__()
        return await in_thread(asks, pool, saver)

    with ThreadPoolExecutor(4) as pool:
        say("its loop ends")
        saver = DocumentCheckpointSaver(_Silent())
        for asked in asyncio.run(serve(saver, pool)):
            asked.result(PATIENCE)
        say("it is closed")
        saver = DocumentCheckpointSaver(_Silent())
        calls = asks(pool, saver)
        saver.close()
        for asked in calls:
            asked.result(PATIENCE)


def a_store(url: str, bucket: str) -> None:
    """A document store has one face; it is served from where it lives as well."""

    async def calls(store: JetStreamDocumentStore) -> None:
        await store.setup()
        assert await store.ids("n", "cp") == []
        assert await store.get_many("n", [("cp", "a")]) == {}
        assert list(await store.collections("n")) == []
        assert await store.namespaces() == []

    async def main() -> None:
        store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
        async with store:
            await calls(store)
            await in_thread(asyncio.run, calls(store))
        with raises(StoreClosedError, "setup"):
            await store.setup()

    asyncio.run(main())
    store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
    for _ in range(4):
        asyncio.run(calls(store))
    asyncio.run(store.close())
