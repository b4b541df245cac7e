"""Reading a feed of changes, and counting the consumers that it has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nats.aio.client import Client
from tests.patience import PATIENCE

from jskv_saver import ANY, JetStreamDocumentStore
from jskv_saver.document.port import Changes

READS = [("ls", ("a", ANY))]


def follow(store: JetStreamDocumentStore, after: int | None = None) -> Changes:
    return store.changes("n", READS, after=after)


async def write(store: JetStreamDocumentStore, numbers: Iterable[int]) -> None:
    for n in numbers:
        await store.put("n", "ls", ("a", f"{n:05}"), {"n": n})


async def read(changes: Changes, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            change = await changes.next()
            assert change.document is not None
            found.append(change.document.data["n"])
    return found


async def consumers(client: Client, bucket: str) -> int:
    info = await client.jetstream().stream_info(f"KV_{bucket}")
    return info.state.consumer_count


async def until_left(client: Client, bucket: str, wanted: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await consumers(client, bucket) == wanted:
                return
            await asyncio.sleep(0.02)
