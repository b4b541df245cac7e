"""Erase: no key of a thread is left in the bucket, by the bucket's own listing."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from nats.aio.client import Client
from tests.checkpoint.saving import HOSTILE, at, put
from tests.patience import PATIENCE

from jskv_saver import JetStreamSaver, Retention
from jskv_saver.adapters.jetstream import writes

LARGE = "l" * 400_000
MANY = 1_000


@pytest.fixture(autouse=True)
def _short_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The notices of deletion live for a minute; here for a second."""
    monkeypatch.setattr(writes, "_MARKER_TTL", "1s")


async def _names(client: Client, bucket: str) -> set[str]:
    """The keys in the bucket, without the notices of deletion."""
    info = await client.jetstream().stream_info(f"KV_{bucket}", subjects_filter=">")
    notice = f"$KV.{bucket}.th./"
    return {name for name in info.state.subjects or {} if not name.startswith(notice)}


async def _goes_back(client: Client, bucket: str, messages: int) -> None:
    """Wait until the notices have gone, and nothing but what was is there."""
    end = time.monotonic() + PATIENCE
    while (left := await _messages(client, bucket)) != messages:
        assert left > messages
        assert time.monotonic() < end, f"{left - messages} messages are left"
        await asyncio.sleep(0.05)


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
        await _goes_back(client, bucket, before)


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
        await _goes_back(client, bucket, before)


async def _small(saver: JetStreamSaver, thread: str) -> None:
    values: dict[str, Any] = {"text": "x" * 2000}
    await put(saver, "1", values, thread=thread, run_id="run")
    await saver.aput_writes(at("1", thread=thread), [("c", 1)], "task")
