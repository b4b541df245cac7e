"""From any thread and any loop; never a hang."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    checkpoint,
    get,
    id_of,
    ids,
    meta,
    numbered,
    put,
    put_chain,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import StoreClosedError, WrongThreadError

BLOCKING: dict[str, Callable[[DocumentCheckpointSaver], object]] = {
    "put": lambda s: s.put(at(), checkpoint("2"), meta(), {}),
    "put_writes": lambda s: s.put_writes(at("1"), [("a", 1)], "task"),
    "get_tuple": lambda s: s.get_tuple(at()),
    "get": lambda s: s.get(at()),
    "list": lambda s: list(s.list(at())),
    "delete_thread": lambda s: s.delete_thread("t"),
    "delete_for_runs": lambda s: s.delete_for_runs(["r"]),
    "copy_thread": lambda s: s.copy_thread("t", "u"),
    "prune": lambda s: s.prune(["t"]),
    "get_delta_channel_history": lambda s: s.get_delta_channel_history(
        config=at(), channels=["x"]
    ),
    "close": lambda s: s.close(),
}

ASYNCHRONOUS: dict[
    str, Callable[[DocumentCheckpointSaver], Coroutine[Any, Any, object]]
] = {
    "aput": lambda s: s.aput(at(), checkpoint("2"), meta(), {}),
    "aput_writes": lambda s: s.aput_writes(at("1"), [("a", 1)], "task"),
    "aget_tuple": lambda s: s.aget_tuple(at()),
    "aget": lambda s: s.aget(at()),
    "alist": lambda s: ids(s, at()),
    "adelete_thread": lambda s: s.adelete_thread("t"),
    "adelete_for_runs": lambda s: s.adelete_for_runs(["r"]),
    "acopy_thread": lambda s: s.acopy_thread("t", "u"),
    "aprune": lambda s: s.aprune(["t"]),
    "aget_delta_channel_history": lambda s: s.aget_delta_channel_history(
        config=at(), channels=["x"]
    ),
    "asetup": lambda s: s.asetup(),
}


def _use(saver: DocumentCheckpointSaver, name: str) -> None:
    """The whole life of a thread, blocking."""
    config = saver.put(at(thread=name), checkpoint("1", {"x": name}), meta(), {})
    saver.put_writes(config, [("c", name)], "task")
    found = saver.get_tuple(at(thread=name))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": name}
    assert found.pending_writes == [("task", "c", name)]
    assert [id_of(f) for f in saver.list(at(thread=name))] == ["1"]
    saver.copy_thread(name, name + " copy")
    saver.prune([name + " copy"])
    assert saver.get(at(thread=name + " copy")) == found.checkpoint
    saver.delete_thread(name + " copy")
    assert list(saver.list(at(thread=name + " copy"))) == []


async def _ause(saver: DocumentCheckpointSaver, name: str) -> None:
    """The same, asynchronous."""
    await put(saver, "1", {"x": name}, thread=name)
    await saver.aput_writes(at("1", thread=name), [("c", name)], "task")
    found = await get(saver, thread=name)
    assert found.checkpoint["channel_values"] == {"x": name}
    assert found.pending_writes == [("task", "c", name)]
    assert await ids(saver, at(thread=name)) == ["1"]


@pytest.mark.parametrize("name", BLOCKING)
async def test_a_blocking_call_on_the_serving_loop_is_refused_at_once(
    saver: DocumentCheckpointSaver, name: str
) -> None:
    await put(saver, "1", {"x": 1})
    start = time.monotonic()
    with pytest.raises(WrongThreadError, match="await"):
        BLOCKING[name](saver)

    assert time.monotonic() - start < 1
    assert await ids(saver, at()) == ["1"]


@pytest.mark.parametrize("name", BLOCKING)
async def test_it_is_served_from_another_thread_meanwhile(
    saver: DocumentCheckpointSaver, name: str
) -> None:
    await put(saver, "1", {"x": 1})
    async with asyncio.timeout(15):
        await asyncio.to_thread(BLOCKING[name], saver)


async def test_a_blocking_call_beside_a_loop_that_does_not_serve_it_works(
    open_saver: OpenSaver,
) -> None:
    with open_saver() as saver:
        _use(saver, "t")
        await _ause(saver, "u")


def test_plain_code_needs_no_loop(open_saver: OpenSaver) -> None:
    with open_saver() as saver:
        _use(saver, "entered")
    saver = open_saver()
    _use(saver, "not entered")
    saver.close()
    saver.close()


def test_setup_blocks_without_a_loop_and_is_awaited_on_one(
    open_saver: OpenSaver,
) -> None:
    saver = open_saver()
    saver.setup()
    saver.setup()

    async def main() -> None:
        await saver.setup()
        await saver.asetup()

    asyncio.run(main())
    saver.close()


async def test_another_loop_in_a_thread_is_served(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, numbered(300))

    def elsewhere() -> None:
        async def main() -> None:
            assert await ids(saver, at()) == numbered(300)[::-1]
            await _ause(saver, "elsewhere")
            await asyncio.gather(
                *(put(saver, f"{n}", thread=f"thread {n}") for n in range(20))
            )

        asyncio.run(main())

    async with asyncio.timeout(15):
        await asyncio.to_thread(elsewhere)
    assert await values(saver, thread="elsewhere") == {"x": "elsewhere"}


@pytest.mark.parametrize("entered", [True, False])
async def test_twenty_four_threads_use_one_saver(
    open_saver: OpenSaver, entered: bool
) -> None:
    saver = open_saver()
    if entered:
        await saver.__aenter__()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(24) as pool:
        async with asyncio.timeout(30):
            await asyncio.gather(
                *(loop.run_in_executor(pool, _use, saver, f"t {n}") for n in range(24)),
                *(_ause(saver, f"async {n}") for n in range(8)),
            )
    assert len(await ids(saver)) == 32
    await saver.aclose()
    await saver.aclose()


def test_a_saver_that_is_not_entered_outlives_loops(open_saver: OpenSaver) -> None:
    saver = open_saver()
    for n in range(4):
        asyncio.run(_ause(saver, f"run {n}"))
    _use(saver, "plain")
    saver.close()


def test_four_runs_each_with_a_saver_of_its_own(open_saver: OpenSaver) -> None:
    async def main(n: int) -> int:
        async with open_saver() as saver:
            await _ause(saver, f"run {n}")
            return len(await ids(saver))

    assert [asyncio.run(main(n)) for n in range(4)] == [1, 2, 3, 4]


def test_a_saver_whose_loop_has_ended_says_so(open_saver: OpenSaver) -> None:
    saver = open_saver()

    async def enter() -> None:
        await saver.__aenter__()
        await put(saver, "1")
        if saver._close_store:
            await saver.store.close()

    asyncio.run(enter())
    for call in ASYNCHRONOUS.values():
        with pytest.raises(StoreClosedError):
            asyncio.run(call(saver))
    for name, block in BLOCKING.items():
        if name != "close":
            with pytest.raises(StoreClosedError):
                block(saver)


@pytest.mark.parametrize("way", ["async with", "with", "close", "aclose"])
async def test_use_after_close_is_an_error_at_once(
    open_saver: OpenSaver, way: str
) -> None:
    saver = open_saver()
    if way == "async with":
        async with saver:
            await put(saver, "1")
    elif way == "with":
        await asyncio.to_thread(saver.__enter__)
        await asyncio.to_thread(saver.__exit__, None, None, None)
    elif way == "close":
        await put(saver, "1")
        await asyncio.to_thread(saver.close)
    else:
        await put(saver, "1")
        await saver.aclose()

    start = time.monotonic()
    for call in ASYNCHRONOUS.values():
        with pytest.raises(StoreClosedError):
            await call(saver)
    for name, block in BLOCKING.items():
        if name != "close":
            with pytest.raises(StoreClosedError):
                await asyncio.to_thread(block, saver)
    assert time.monotonic() - start < 5


async def test_a_blocking_listing_may_be_abandoned(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, numbered(20))

    def read() -> None:
        for _ in range(50):
            assert id_of(next(saver.list(at()))) == "000019"

    async with asyncio.timeout(15):
        await asyncio.to_thread(read)
        await put(saver, "9", thread="u")


async def test_a_thread_that_waits_is_freed_by_close(open_saver: OpenSaver) -> None:
    before = threading.active_count()
    for _ in range(5):
        saver = open_saver()
        await asyncio.to_thread(_use, saver, "t")
        await asyncio.to_thread(saver.close)

    # The pool's threads stay; the saver's have ended.
    names = [thread.name for thread in threading.enumerate()]
    assert "jskv_saver" not in names
    assert threading.active_count() <= before + 5


ENDINGS = {
    "never closed": "saver.put(at(), checkpoint('1', {'x': 1}), meta(), {})",
    "closed": "saver.put(at(), checkpoint('1'), meta(), {}); saver.close()",
    "entered": "with saver: saver.get_tuple(at())",
    "entered async": """
        async def main():
            async with saver:
                await saver.aput(at(), checkpoint('1'), meta(), {})
        asyncio.run(main())
        """,
    "not left": """
        async def main():
            await saver.__aenter__()
            await saver.aput(at(), checkpoint('1'), meta(), {})
        asyncio.run(main())
        """,
    "used after close": """
        with saver: pass
        try: saver.get_tuple(at())
        except jskv_saver.errors.StoreClosedError: pass
        """,
    "blocked on its own loop": """
        async def main():
            async with saver:
                try: saver.put(at(), checkpoint('1'), meta(), {})
                except jskv_saver.errors.WrongThreadError: pass
        asyncio.run(main())
        """,
    "an abandoned listing": """
        saver.put(at(), checkpoint('1'), meta(), {})
        rows = saver.list(at())
        next(rows)
        """,
    "an error": "raise SystemExit(0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_process_ends_by_itself(nats_url: str, bucket: str, ending: str) -> None:
    head = f"""
        import asyncio
        import jskv_saver
        from jskv_saver import JetStreamSaver
        from tests.checkpoint.saving import at, checkpoint, meta
        saver = JetStreamSaver.from_conn_string({nats_url!r}, bucket={bucket!r})
        """
    code = textwrap.dedent(head) + textwrap.dedent(ENDINGS[ending]) + "\nprint('done')"

    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    if ending != "an error":
        assert ended.stdout == "done\n"
