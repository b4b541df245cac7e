"""Scenarios: after many openings, calls and listings all is as it was before."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nats
from tests.checkpoint.saving import at, checkpoint, id_of, ids, meta, numbered, put
from tests.checkpoint.saving import put_chain as chain
from tests.lifecycle.calls import ause, opens, use
from tests.lifecycle.child import say
from tests.patience import PATIENCE

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    JetStreamSaver,
    LocalServer,
    MemoryDocumentStore,
)
from jskv_saver.checkpoint import heads
from jskv_saver.errors import JskvError


def _held() -> dict[str, int]:
    """What this process holds of the system's."""
    gc.collect()
    children = Path("/proc/self/task").glob("*/children")
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": sum(len(path.read_text().split()) for path in children),
    }


def _returns(before: dict[str, int], what: str) -> None:
    """All is given back, soon."""
    end = time.monotonic() + PATIENCE
    while (now := _held()) != before and time.monotonic() < end:
        time.sleep(0.01)
    assert now == before, f"{what}: {before} → {now}"


def _in_use() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def _not_grown(start: int) -> None:
    """Less than one object for two operations, where each makes some hundreds."""
    grown = _in_use() - start
    say(f"{grown} objects more")
    assert grown < 1_000, f"{grown} objects more than before"


def savers_opened_and_closed(url: str, bucket: str, monitor: str) -> None:
    """Files, threads, and the connections that the server counts."""

    def connections() -> int:
        with urllib.request.urlopen(f"{monitor}/connz", timeout=PATIENCE) as answer:
            return int(json.load(answer)["num_connections"])

    def come_to(wanted: int, what: str) -> None:
        # The server may notice an end a little later.
        end = time.monotonic() + PATIENCE
        while (now := connections()) != wanted:
            assert time.monotonic() < end, f"{what}: {now} connections"
            time.sleep(0.01)

    async def entered() -> None:
        for n in range(10):
            async with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
                await ause(saver, f"entered {n}")
                come_to(1, "entered")
        async with JetStreamDocumentStore.from_conn_string(url, bucket=bucket) as docs:
            await docs.namespaces()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def blocking() -> None:
        for n in range(10):
            with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
                use(saver, f"blocking {n}")
                come_to(1, "blocking")

    def dropped() -> None:
        for n in range(10):
            use(JetStreamSaver.from_conn_string(url, bucket=bucket), f"dropped {n}")

    async def not_left() -> None:
        for n in range(3):
            saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
            await saver.__aenter__()
            await ause(saver, f"not left {n}")

    def refused() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            nobody = f"nats://127.0.0.1:{silent.getsockname()[1]}"
            stranger = url.replace("nats://", "nats://wrong")
            for address in (nobody, stranger):
                for _ in range(3):
                    saver = JetStreamSaver.from_conn_string(
                        address, bucket=bucket, timeout=0.2
                    )
                    with contextlib.suppress(JskvError), saver:
                        raise AssertionError("it opened")

    ways: list[Callable[[], object]] = [
        lambda: asyncio.run(entered()),
        blocking,
        dropped,
        lambda: asyncio.run(not_left()),
        refused,
    ]
    for name, way in zip(
        ("entered", "blocking", "dropped", "not left", "refused"), ways, strict=True
    ):
        say(name)
        before = _held()
        way()
        _returns(before, name)
        come_to(0, name)


def servers_started_and_stopped(url: str, bucket: str) -> None:
    before = _held()
    for _ in range(5):
        with LocalServer(sync_interval="2m") as server:
            server.kill()
            server.start()
    for _ in range(3):
        LocalServer(sync_interval="2m").start().stop()
    _returns(before, "LocalServer")


async def _consumers(url: str, bucket: str) -> int:
    client = await nats.connect(url)
    info = await client.jetstream().stream_info(f"KV_{bucket}")
    await client.close()
    return info.state.consumer_count


def listings_given_up(url: str, bucket: str) -> None:
    """Listings of which only the beginning was read, on either face."""

    async def given_up(saver: DocumentCheckpointSaver) -> None:
        for _ in range(50):
            rows = saver.alist(at())
            assert id_of(await anext(rows)) == "000039"
        docs = saver.store.iterate("default", "cp", page_size=10)
        await anext(docs)

    def given_up_blocking(saver: DocumentCheckpointSaver) -> None:
        for _ in range(50):
            assert id_of(next(iter(saver.list(at())))) == "000039"

    async def main(saver: DocumentCheckpointSaver) -> None:
        async with saver:
            await chain(saver, numbered(40))
            with ThreadPoolExecutor(1) as pool:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(pool, given_up_blocking, saver)
                tasks, before = asyncio.all_tasks(), _held()
                await loop.run_in_executor(pool, given_up_blocking, saver)
                await given_up(saver)
                gc.collect()
                await asyncio.sleep(0)
                if closing := asyncio.all_tasks() - tasks:
                    await asyncio.wait(closing, timeout=PATIENCE)
                left = asyncio.all_tasks() - tasks
                assert not left, f"{len(left)} tasks, such as {left.pop()}"
                assert _held() == before
            await put(saver, "9", thread="goes on")

    for open_saver in opens(url, bucket):
        asyncio.run(main(open_saver()), debug=False)
    assert asyncio.run(_consumers(url, bucket)) == 0


def listings_beside_writers(url: str, bucket: str) -> None:
    """A page is read and let go: nobody waits for whoever reads slowly."""

    async def check(
        rest: Callable[[], Awaitable[list[Any]]], write: Callable[[int], Awaitable[Any]]
    ) -> None:
        async with asyncio.timeout(PATIENCE):
            for n in range(20):
                await write(n)
        listed = [id_of(found) for found in await rest()]
        assert listed == sorted(listed, reverse=True)
        # What was there when it began is given, whatever came meanwhile.
        assert set(numbered(299)) <= set(listed)

    async def asynchronous(saver: DocumentCheckpointSaver) -> None:
        await chain(saver, numbered(300))
        rows = saver.alist(at())
        assert id_of(await anext(rows)) == "000299"

        async def rest() -> list[Any]:
            return [found async for found in rows]

        await check(rest, lambda n: put(saver, f"8{n:05}", parent="000299"))

    async def blocking(saver: DocumentCheckpointSaver) -> None:
        rows = await asyncio.to_thread(lambda: iter(saver.list(at())))
        assert id_of(await asyncio.to_thread(next, rows)) == "800019"

        def write(n: int) -> object:
            made = checkpoint(f"9{n:05}", {"n": n})
            return saver.put(at("000299"), made, meta(), made["channel_versions"])

        await check(
            lambda: asyncio.to_thread(list, rows),
            lambda n: asyncio.to_thread(write, n),
        )

    async def main(saver: DocumentCheckpointSaver) -> None:
        async with saver:
            await asynchronous(saver)
            await blocking(saver)
            # The writer is the reader, in the middle of its own listing.
            seen = 0
            async for found in saver.alist(at()):
                await saver.aput_writes(found.config, [("c", seen)], "reader")
                seen += 1
            assert seen == len(await ids(saver, at()))
            await saver.adelete_thread("t")

    for open_saver in opens(url, bucket):
        asyncio.run(main(open_saver()))


def two_thousand_operations(url: str, bucket: str) -> None:
    """They leave nothing in memory behind."""

    async def work(saver: DocumentCheckpointSaver, rounds: int) -> None:
        for n in range(rounds):
            thread = f"work {n % 20}"
            await saver.adelete_thread(thread)
            await put(saver, "1", {"log": "x" * 3_000, "n": n}, thread=thread)
            await saver.aput_writes(at("1", thread=thread), [("c", n)], "task")
            await saver.aget_tuple(at(thread=thread))
            await ids(saver, at(thread=thread), limit=1)

    async def main(saver: DocumentCheckpointSaver) -> None:
        async with saver:
            await work(saver, 100)
            tasks, before, start = asyncio.all_tasks(), _held(), _in_use()
            await work(saver, 400)
            assert _held() == before
            assert asyncio.all_tasks() == tasks
            _not_grown(start)

    saver = JetStreamSaver.from_conn_string(url, bucket=bucket)
    asyncio.run(main(saver), debug=False)


def more_threads_than_are_remembered(url: str, bucket: str) -> None:
    """All that a saver keeps of a thread is dropped for later ones."""
    heads.MAX_SCOPES, heads.MAX_SEEN = 100, 400

    async def main() -> None:
        async with DocumentCheckpointSaver(_Forgetful()) as saver:
            for thread in range(1_500):
                await put(saver, "1", {"n": "x" * 1_000}, thread=f"{thread}")
                if thread == 600:
                    start = _in_use()
            _not_grown(start)

    asyncio.run(main(), debug=False)


class _Forgetful(MemoryDocumentStore):
    """A store that takes no room: each thread finds it empty."""

    async def put_many(self, *args: Any, **options: Any) -> Any:
        stored = await super().put_many(*args, **options)
        self._collections.clear()
        return stored
