from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jskv_saver._portal import Portal
from jskv_saver.errors import StoreClosedError, WrongThreadError


async def _thread() -> int:
    return threading.get_ident()


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def _late() -> None:
    raise TimeoutError("mine")


async def _for_ever(started: threading.Event) -> None:
    started.set()
    await asyncio.Event().wait()


def test_a_portal_that_nobody_entered_has_a_thread_of_its_own() -> None:
    portal = Portal()
    home = portal.run(_thread)
    assert home != threading.get_ident()
    assert asyncio.run(portal.arun(_thread)) == home
    assert asyncio.run(portal.arun(_thread)) == home
    portal.close()
    portal.close()
    with pytest.raises(StoreClosedError):
        portal.run(_thread)


async def test_a_bound_portal_runs_where_it_was_bound() -> None:
    portal = Portal()
    portal.bind()
    assert await portal.arun(_thread) == threading.get_ident()
    assert await asyncio.to_thread(portal.run, _thread) == threading.get_ident()


async def test_a_blocking_call_at_home_is_refused() -> None:
    portal = Portal()
    portal.bind()
    with pytest.raises(WrongThreadError):
        portal.run(_thread)


def test_many_threads_are_served() -> None:
    portal = Portal()
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda n: portal.run(_double, n), range(240)))
    assert answers == [2 * n for n in range(240)]
    portal.close()


def test_a_timeout_of_the_call_itself_comes_through() -> None:
    portal = Portal()
    with pytest.raises(TimeoutError, match="mine"):
        portal.run(_late)
    portal.close()


def test_close_frees_a_thread_that_waits() -> None:
    portal = Portal()
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(portal.run, _for_ever, started)
        started.wait()
        portal.close()
        with pytest.raises(StoreClosedError):
            waiting.result(10)


async def test_close_frees_a_loop_that_waits() -> None:
    portal = Portal()
    started = threading.Event()
    waiting = asyncio.create_task(portal.arun(_for_ever, started))
    await asyncio.to_thread(started.wait)
    portal.close()
    with pytest.raises(StoreClosedError):
        await waiting


def test_a_home_that_stops_frees_whoever_waits_on_another_loop() -> None:
    home = asyncio.new_event_loop()
    portal = Portal(home)
    started, serves = threading.Event(), threading.Event()

    async def serve() -> None:
        serves.set()
        await asyncio.to_thread(started.wait)

    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(home.run_until_complete, serve())
        serves.wait()
        with pytest.raises(StoreClosedError):
            asyncio.run(portal.arun(_for_ever, started))
        serving.result()
    for task in asyncio.all_tasks(home):
        task.cancel()
    home.run_until_complete(asyncio.sleep(0))
    home.run_until_complete(home.shutdown_default_executor())
    home.close()


async def test_a_caller_that_gives_up_ends_the_call() -> None:
    portal = Portal()
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(portal.arun(wait))
    await asyncio.to_thread(started.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(ended.wait, 10)
    portal.close()


def test_the_end_of_the_loop_that_opened_it_is_told() -> None:
    portal = Portal()

    async def bind() -> None:
        portal.bind()

    asyncio.run(bind())
    with pytest.raises(StoreClosedError, match="ended"):
        portal.run(_thread)


def test_a_child_has_the_same_home_and_an_end_of_its_own() -> None:
    portal = Portal()
    first, second = portal.child(), portal.child()
    assert first.run(_thread) == second.run(_thread) == portal.run(_thread)
    first.close()
    with pytest.raises(StoreClosedError):
        first.run(_thread)
    assert second.run(_double, 2) == 4
    portal.close()
    with pytest.raises(StoreClosedError):
        second.run(_thread)


def test_a_portal_that_is_dropped_ends_its_thread() -> None:
    portal = Portal()
    portal.run(_thread)
    thread = next(t for t in threading.enumerate() if t.name == "jskv_saver")
    del portal
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
