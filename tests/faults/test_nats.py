"""What NATS and its clients do that others were caught by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from tests.checkpoint.saving import (
    at,
    get,
    id_of,
    ids,
    listed,
    numbered,
    put,
    put_chain,
    values,
)
from tests.faults.blocking import Blocking
from tests.integration.buckets import config_of, gone, make_stream
from tests.patience import PATIENCE, until

from jskv_saver import DocumentCheckpointSaver, JetStreamSaver
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.errors import BucketNotFoundError, CorruptDocumentError

Saver = DocumentCheckpointSaver


@pytest.fixture
async def saver(client: Client, bucket: str) -> AsyncIterator[JetStreamSaver]:
    """On the client that the test can look at."""
    async with JetStreamSaver(client, bucket=bucket) as opened:
        yield opened


# -- buckets that others made ----------------------------------------------------------

BUCKETS: dict[str, dict[str, Any]] = {
    "without direct get": {"allow_direct": False},
    "with history": {"max_msgs_per_subject": 5},
    "without direct get, with history": {
        "allow_direct": False,
        "max_msgs_per_subject": 64,
    },
    "with limit markers": {
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 60_000_000_000,
    },
    "in memory": {"storage": "memory"},
    "compressed": {"compression": "s2"},
    "that may be deleted from": {"deny_delete": False},
}


@pytest.mark.parametrize("made", BUCKETS)
async def test_any_bucket_answers_alike(client: Client, bucket: str, made: str) -> None:
    """Bound as it is, not changed; removed is removed, whatever it keeps of it."""
    await make_stream(client, bucket, **BUCKETS[made])
    before = await config_of(client, bucket)
    async with (
        JetStreamSaver(client, bucket=bucket) as saver,
        JetStreamSaver(client, bucket=bucket) as other,
    ):
        await saver.setup()
        for turn in range(3):
            large = f"{turn}" * 600_000
            await put_chain(saver, numbered(6), run_id="r")
            await put(saver, "9", {"x": large}, parent="000005", run_id="s")
            writes = [("a", turn), ("b", large)]
            await saver.aput_writes(at("9"), writes, "task")
            await saver.acopy_thread("t", "copy")
            assert await ids(other, at()) == ["9", *numbered(6)[::-1]]
            await other.aprune(["copy"])
            assert await ids(saver, at(thread="copy")) == ["9"]
            await other.adelete_for_runs(["r"])
            for thread in ("t", "copy"):
                for reader in (saver, other):
                    (row,) = await listed(reader, at(thread=thread))
                    assert row == await get(reader, thread=thread)
                    assert row.checkpoint["channel_values"] == {"x": large}
                    assert row.pending_writes == [("task", *w) for w in writes]
            for thread in ("t", "copy"):
                await saver.adelete_thread(thread)
                for reader in (saver, other):
                    assert await reader.aget_tuple(at(thread=thread)) is None
                    assert await reader.aget_tuple(at("9", thread=thread)) is None
                    assert await listed(reader, at(thread=thread)) == []
        assert await listed(other) == []
    assert await config_of(client, bucket) == before


@pytest.mark.parametrize("how", ["delete", "purge"])
async def test_a_marker_of_a_stock_tool_is_no_value_and_no_obstacle(
    client: Client, bucket: str, saver: Saver, how: str
) -> None:
    async with JetStreamSaver(client, bucket=bucket) as other:
        await put(saver, "1", {"x": 1}, run_id="r")
        await put(saver, "2", {"x": 2}, parent="1", run_id="r")
        await saver.aput_writes(at("1"), [("a", "old")], "task")
        entries = await client.jetstream().key_value(bucket)
        for key in await entries.keys():
            # The newest record, and all that is found by listing.
            if not key.endswith(".1") or key.startswith("wr"):
                await (entries.delete(key) if how == "delete" else entries.purge(key))
        for reader in (saver, other):
            assert await reader.aget_tuple(at("2")) is None
            assert await ids(reader, at()) == ["1"]
            found = await get(reader)
            assert found.checkpoint["channel_values"] == {"x": 1}
            assert found.pending_writes == []
        await other.aput_writes(at("1"), [("a", "new")], "task")
        await put(saver, "2", {"x": "new"}, parent="1", run_id="r")
        await other.aput_writes(at("2"), [("a", "new")], "task")
        for reader in (saver, other):
            assert await ids(reader, at()) == ["2", "1"]
            assert await values(reader) == {"x": "new"}
            assert (await get(reader, "1")).pending_writes == [("task", "a", "new")]
        await saver.adelete_thread("t")
        assert await listed(other) == []


async def test_what_has_expired_is_absent_and_can_be_put_again(
    client: Client, bucket: str
) -> None:
    """Also where the server leaves a marker, which has no value and no operation."""
    await make_stream(client, bucket, **BUCKETS["with limit markers"])
    async with JetStreamSaver(client, bucket=bucket) as saver:
        await put(saver, "1", {"x": "old"})
        await saver.aput_writes(at("1"), [("a", "old")], "task")
        entries = await client.jetstream().key_value(bucket)
        keys = [k for k in await entries.keys() if k.startswith(("cp", "wr"))]
        for key in keys:
            value = (await entries.get(key)).value or b""
            ttl = {"Nats-TTL": "1s"}
            await client.jetstream().publish(f"$KV.{bucket}.{key}", value, headers=ttl)
        kv = Bucket(client, bucket)
        for key in keys:
            await gone(kv, key)
        assert await saver.aget_tuple(at("1")) is None
        assert await saver.aget_tuple(at()) is None
        assert await listed(saver, at()) == []
        await put(saver, "1", {"x": "new"})
        found = await get(saver)
        assert found.checkpoint["channel_values"] == {"x": "new"}
        assert found.pending_writes == []
        await saver.aput_writes(at("1"), [("a", "new")], "task")
        assert (await get(saver)).pending_writes == [("task", "a", "new")]


# -- values that are not what was written ----------------------------------------------

EPOCH = "cp.default.default.t.-.-"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda value: b"",
    "one byte": lambda value: value[:1],
    "cut": lambda value: value[:-1],
    "longer": lambda value: value + b"\0",
    "first bit": lambda value: bytes([value[0] ^ 1]) + value[1:],
    "middle bit": lambda value: _flipped(value, len(value) // 2),
    "last bit": lambda value: _flipped(value, len(value) - 1),
    "zeros": lambda value: bytes(len(value)),
    "text": lambda value: b"not a document",
}


def _flipped(value: bytes, at: int) -> bytes:
    return value[:at] + bytes([value[at] ^ 0x10]) + value[at + 1 :]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_rotten_bytes_are_an_error_that_names_the_key(
    client: Client, bucket: str, saver: Saver, damage: str
) -> None:
    """Never a partial state, never nothing; an empty value is no marker."""
    await put(saver, "1", {"x": "x" * 3000})
    await saver.aput_writes(at("1"), [("a", "w" * 400_000)], "task")
    await put(saver, "1", {"x": "other"}, thread="other")
    await saver.aput_writes(at("1", thread="other"), [("a", "other")], "task")
    entries = await client.jetstream().key_value(bucket)
    whole = await get(saver)
    keys = [
        key
        for key in await entries.keys()
        if key.startswith(("bl", "cp", "wr")) and ".t." in key and key != EPOCH
    ]
    assert {key[:2] for key in keys} == {"bl", "cp", "wr"}
    for key in keys:
        value = (await entries.get(key)).value
        assert value
        await entries.put(key, DAMAGE[damage](value))
        async with JetStreamSaver(client, bucket=bucket) as fresh:
            calls: list[Callable[[], Awaitable[Any]]] = [
                lambda: fresh.aget_tuple(at()),
                lambda: fresh.aget_tuple(at("1")),
                lambda: listed(fresh, at()),
                lambda: fresh.acopy_thread("t", "copy"),
            ]
            for call in calls:
                with pytest.raises(CorruptDocumentError) as caught:
                    await call()
                assert caught.value.key == key
            assert await values(fresh, thread="other") == {"x": "other"}
            assert await listed(fresh, at(thread="copy")) == []
            await fresh.adelete_thread("copy")
        await entries.put(key, value)
        assert await get(saver) == whole


@pytest.mark.parametrize("damage", DAMAGE)
async def test_rotten_bytes_of_an_epoch_are_an_error_and_no_empty_thread(
    client: Client, bucket: str, saver: Saver, damage: str
) -> None:
    await put_chain(saver, numbered(3))
    await saver.aprune(["t"])
    entries = await client.jetstream().key_value(bucket)
    epoch = (await entries.get(EPOCH)).value
    assert epoch
    await entries.put(EPOCH, DAMAGE[damage](epoch))
    async with JetStreamSaver(client, bucket=bucket) as fresh:
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: fresh.aget_tuple(at()),
            lambda: fresh.aprune(["t"]),
            lambda: put(fresh, "9", parent="000002"),
        ]
        for call in calls:
            with pytest.raises(CorruptDocumentError) as caught:
                await call()
            assert caught.value.key == EPOCH
        assert await values(fresh, "000002") == {"n": 2}
        await fresh.adelete_thread("t")
        await put(fresh, "1", {"x": "new"})
        assert await values(saver) == {"x": "new"}


CALLS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "put": lambda s: put(s, "2", {"x": 2}, parent="1"),
    "put elsewhere": lambda s: put(s, "1", {"x": "x" * 9000}, thread="new"),
    "writes": lambda s: s.aput_writes(at("1"), [("a", 2)], "other"),
    "get": lambda s: s.aget_tuple(at()),
    "get by id": lambda s: s.aget_tuple(at("1")),
    "get of nothing": lambda s: s.aget_tuple(at(thread="unknown")),
    "list": lambda s: listed(s, at()),
    "list all": lambda s: listed(s),
    "delete": lambda s: s.adelete_thread("t"),
    "runs": lambda s: s.adelete_for_runs(["r"]),
    "copy": lambda s: s.acopy_thread("t", "copy"),
    "prune": lambda s: s.aprune(["t"]),
    "history": lambda s: s.aget_delta_channel_history(config=at(), channels=["x"]),
}


@pytest.mark.parametrize("face", ["asynchronous", "blocking"])
async def test_a_bucket_that_is_gone_is_no_empty_one(
    client: Client, nats_url: str, bucket: str, face: str
) -> None:
    opened: Any = JetStreamSaver.from_conn_string(nats_url, bucket=bucket)
    async with Blocking(opened) if face == "blocking" else opened as saver:
        await put(saver, "1", {"x": 1}, run_id="r")
        await client.jetstream().delete_stream(f"KV_{bucket}")
        for name, call in CALLS.items():
            with pytest.raises(BucketNotFoundError):
                await call(saver)
            streams = [info.config.name for info in await client.jsm().streams_info()]
            assert f"KV_{bucket}" not in streams, name


# -- cost ------------------------------------------------------------------------------


async def test_three_hundred_reads_leave_nothing_behind(
    client: Client, bucket: str, saver: Saver
) -> None:
    await put_chain(saver, numbered(5))
    await saver.aput_writes(at("000004"), [("a", 1)], "task")

    async def read() -> None:
        for n in range(50):
            assert id_of(await get(saver)) == "000004"
            assert len(await listed(saver, at())) == 5
            assert await saver.aget_tuple(at(f"{n}")) is None

    await read()
    tasks, subscriptions = len(asyncio.all_tasks()), len(client._subs)
    for _ in range(2):
        await read()
    await until(lambda: len(asyncio.all_tasks()) == tasks)
    assert len(client._subs) == subscriptions
    info = await client.jetstream().stream_info(f"KV_{bucket}")
    assert info.state.consumer_count == 0


async def test_a_small_thread_among_a_hundred_thousand_keys_is_found_at_once(
    client: Client, bucket: str, saver: Saver
) -> None:
    await put_chain(saver, numbered(5))
    names = [
        *(f"cp.default.default.thread{n % 5000}.-.{n:06}" for n in range(60_000)),
        *(f"wr.default.default.t{n}.-.000001.task" for n in range(30_000)),
        *(f"foreign.{n}" for n in range(10_000)),
    ]
    for n, name in enumerate(names):
        await client.publish(f"$KV.{bucket}.{name}", b"not ours")
        if n % 5000 == 0:
            await client.flush()
    async with asyncio.timeout(PATIENCE):
        while True:
            info = await client.jetstream().stream_info(f"KV_{bucket}")
            if info.state.messages > len(names):
                break
            await asyncio.sleep(0.05)

    async with JetStreamSaver(client, bucket=bucket) as fresh:
        await fresh.setup()
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "list": lambda: listed(fresh, at()),
            "limit": lambda: listed(fresh, at(), limit=1),
            "filter": lambda: listed(fresh, at(), filter={"step": 3}),
            "latest": lambda: get(fresh),
            "by id": lambda: get(fresh, "000002"),
            "nothing": lambda: fresh.aget_tuple(at(thread="unknown")),
            "put": lambda: put(fresh, "9", {"x": 9}, parent="000004"),
            "writes": lambda: fresh.aput_writes(at("9"), [("a", 1)], "task"),
            "copy": lambda: fresh.acopy_thread("t", "copy"),
            "prune": lambda: fresh.aprune(["copy"]),
            "delete": lambda: fresh.adelete_thread("copy"),
        }
        for name, call in calls.items():
            start, heard = time.monotonic(), client.stats["in_bytes"]
            await call()
            assert time.monotonic() - start < 4, name
            # The names of all keys are four megabytes.
            assert client.stats["in_bytes"] - heard < 30_000, name
        assert await ids(fresh, at()) == ["9", *numbered(5)[::-1]]
