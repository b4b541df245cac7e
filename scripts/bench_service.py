"""What the service costs: a remote call beside the local one and an echo.

    python scripts/bench_service.py [--rounds N] [--limit RATIO]

In one run, one after the other in every round: a call of JetStreamDocumentStore, a raw
request that another process answers with the same bytes, and the same call of
RemoteDocumentStore, which a service in a third process serves from the same bucket. Two
echoes: by nats-py as it is, and past its queues, as the service and its client send.
The ratio is the remote call to the sum of the local one and the echo, medians. With
--limit it exits with 1 where a ratio to the former is above it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import nats

from jskv_saver import (
    CollectionSpec,
    DocumentService,
    JetStreamDocumentStore,
    LocalServer,
    RemoteDocumentStore,
)
from jskv_saver._nats.connection import Connection
from jskv_saver._nats.listener import Listener
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.waiting import Message

SIZES = (100, 1_000, 10_000, 100_000)
Call = Callable[[], Awaitable[Any]]


async def serve(url: str) -> None:
    """The service, in a process of its own."""
    store = JetStreamDocumentStore.from_conn_string(url)
    async with store, DocumentService(store, url):
        print("ready", flush=True)
        await asyncio.Event().wait()


async def echo(url: str) -> None:
    """Both echoes, in a process of their own."""
    plain, direct = await nats.connect(url), await nats.connect(url)

    async def respond(msg: Any) -> None:
        await msg.respond(msg.data)

    tasks: set[asyncio.Task[None]] = set()

    def answer(msg: Any) -> None:
        task = asyncio.ensure_future(listener.send(msg.reply, msg.data))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await plain.subscribe("echo.plain", cb=respond)
    await plain.flush()
    listener = Listener(direct, "echo.direct", "", answer)
    await listener.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


@contextlib.contextmanager
def process(what: str, url: str) -> Iterator[None]:
    """One of the two above."""
    child = subprocess.Popen(
        [sys.executable, __file__, "--child", what, url], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout
        child.stdout.readline()
        yield
    finally:
        child.kill()
        child.communicate()


async def measure(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Medians in microseconds, of calls that take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + rounds // 10):
        for name, call in calls.items():
            begin = time.perf_counter()
            await call()
            if number >= rounds // 10:
                times[name].append((time.perf_counter() - begin) * 1e6)
    return {name: statistics.median(each) for name, each in times.items()}


async def run(url: str, rounds: int) -> float:
    """Measure, print, and return the greatest ratio."""
    worst = 0.0
    client = await nats.connect(url)
    requests = Requests(Connection(url), timeout=5)
    async with (
        JetStreamDocumentStore.from_conn_string(url) as local,
        RemoteDocumentStore.from_conn_string(url) as remote,
    ):
        await local.ensure_collection("bench", CollectionSpec("notes"))
        columns = ("local", "plain", "direct", "remote")
        print(
            f"{'call':<22}{'bytes':>8}"
            + "".join(f"{name:>9}" for name in columns)
            + f"{'ratio':>8}{'direct':>8}"
        )
        for size in SIZES:
            data, body = {"b": b"x" * size}, b"x" * size

            def put(store: Any, name: str, collection: str, data: Any = data) -> Call:
                return lambda: store.put("bench", collection, name, data)

            def get(store: Any, name: str, collection: str) -> Call:
                return lambda: store.get("bench", collection, name)

            for what, call in (("put", put), ("get", get)):
                for collection in ("notes", "cp"):
                    for name in ("local", "remote"):
                        await local.put("bench", collection, name, data)
                    took = await measure(
                        {
                            "local": call(local, "local", collection),
                            "plain": partial(
                                client.request, "echo.plain", body, timeout=5
                            ),
                            "direct": partial(
                                requests.request,
                                Message("echo.direct", body),
                                write=False,
                            ),
                            "remote": call(remote, "remote", collection),
                        },
                        rounds,
                    )
                    ratio = took["remote"] / (took["local"] + took["plain"])
                    direct = took["remote"] / (took["local"] + took["direct"])
                    worst = max(worst, ratio)
                    print(
                        f"{what + ' ' + collection:<22}{size:>8}"
                        + "".join(f"{took[name]:>9.0f}" for name in columns)
                        + f"{ratio:>8.2f}{direct:>8.2f}",
                        flush=True,
                    )
    await requests.close()
    await client.close()
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, url = given.child
        asyncio.run(serve(url) if what == "serve" else echo(url))
        return 0
    with (
        LocalServer(sync_interval="2m") as server,
        process("serve", server.url),
        process("echo", server.url),
    ):
        worst = asyncio.run(run(server.url, given.rounds))
    print(f"greatest ratio: {worst:.2f}")
    return 1 if given.limit is not None and worst > given.limit else 0


if __name__ == "__main__":
    sys.exit(main())
