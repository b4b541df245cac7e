"""Erase: no key of a thread is left in the bucket, by the bucket's own listing."""

from __future__ import annotations

import asyncio
from typing import Any

from nats.aio.client import Client
from tests.checkpoint.saving import HOSTILE, at, put

from jskv_saver import JetStreamSaver, Retention

LARGE = "l" * 400_000
MANY = 1_000


async def _names(client: Client, bucket: str) -> set[str]:
    info = await client.jetstream().stream_info(f"KV_{bucket}", subjects_filter=">")
    return set(info.state.subjects or {})


async def _messages(client: Client, bucket: str) -> int:
    return (await client.jetstream().stream_info(f"KV_{bucket}")).state.messages


async def _fill(saver: JetStreamSaver, thread: str) -> None:
    for ns in ("", "child:1|x"):
        for n, text in enumerate(("a" * 5000, "b" * 5000)):
            parent = f"{n - 1}" if n else None
            await put(
                saver,
                f"{n}",
                {"text": text},
                parent=parent,
                thread=thread,
                ns=ns,
                run_id="run",
            )
        config = at("1", thread=thread, ns=ns)
        await saver.aput_writes(config, [("c", LARGE)], "large")
    await saver.aadmit(at(thread=thread), "a request")
    await saver.apin(thread)
    # What a lease leaves whose holder has died.
    await saver.store.put("default", "ls", ("default", thread, "guard"), {"t": "x"})


async def test_nothing_of_a_deleted_thread_is_left_in_the_bucket(
    nats_url: str, bucket: str, client: Client
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        await _fill(saver, "kept")
        before = await _names(client, bucket)
        kinds = {name.split(".")[2] for name in before}
        assert kinds == {"cp", "wr", "bl", "th", "rn", "ls", "ad", "pn"}
        for thread in ("t", *HOSTILE[:12]):
            await _fill(saver, thread)
            assert len(await _names(client, bucket)) == 2 * len(before)
            await saver.adelete_thread(thread)
            assert await _names(client, bucket) == before


async def test_a_thousand_threads_that_come_and_go_leave_no_message(
    nats_url: str, bucket: str, client: Client
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        await _fill(saver, "kept")
        before = await _messages(client, bucket)
        for begin in range(0, MANY, 50):
            some = [f"t{n}" for n in range(begin, begin + 50)]
            await asyncio.gather(*(_small(saver, thread) for thread in some))
            await asyncio.gather(*map(saver.adelete_thread, some))
        assert await _messages(client, bucket) == before


async def test_threads_that_a_retention_erases_leave_no_message(
    nats_url: str, bucket: str, client: Client
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        await _fill(saver, "kept")
        before = await _messages(client, bucket)
        some = [f"t{n}" for n in range(50)]
        await asyncio.gather(*(_small(saver, thread) for thread in some))
        report = await saver.aenforce_retention(Retention(idle=1e-6))
        assert report.erased == tuple(sorted(some))
        assert report.pinned == ("kept",)
        assert await _messages(client, bucket) == before


async def _small(saver: JetStreamSaver, thread: str) -> None:
    values: dict[str, Any] = {"text": "x" * 2000}
    await put(saver, "1", values, thread=thread, run_id="run")
    await saver.aput_writes(at("1", thread=thread), [("c", 1)], "task")
