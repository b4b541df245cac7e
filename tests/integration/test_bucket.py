"""What a bucket does with a real server: revisions, batches, sizes, settings."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from jskv_saver import LocalServer
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Entry, Put
from jskv_saver.errors import (
    BucketNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    StorageFullError,
    StoreClosedError,
    UnsuitableBucketError,
    VersionConflictError,
)

MIB = 1024 * 1024
HOSTILE = [
    "",
    ".",
    "..",
    "a.b",
    "*",
    ">",
    "a b",
    "a\r\nPUB x 1\r\ny",
    "a\x00b",
    "é|:中",
    "-",
    "/",
    "=",
    "==",
    "$KV",
    "\U0001f600",
    "x" * 5000,
    "x" * 4999 + "y",
]


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


@pytest.fixture
async def kv(client: Client, bucket: str) -> AsyncIterator[Bucket]:
    kv = Bucket(client, bucket)
    yield kv
    await kv.close()
    await client.jetstream().delete_stream(f"KV_{bucket}")


async def config_of(client: Client, bucket: str) -> dict[str, Any]:
    answer = await client.request(f"$JS.API.STREAM.INFO.KV_{bucket}", timeout=5)
    config: dict[str, Any] = json.loads(answer.data)["config"]
    return config


async def make_stream(client: Client, bucket: str, **settings: Any) -> dict[str, Any]:
    config = {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        **settings,
    }
    answer = await client.request(
        f"$JS.API.STREAM.CREATE.KV_{bucket}", json.dumps(config).encode(), timeout=5
    )
    result: dict[str, Any] = json.loads(answer.data)
    assert "error" not in result, result
    return result


async def gone(kv: Bucket, key: str) -> None:
    """Wait until the key has expired."""
    for _ in range(50):
        if await kv.get(key) is None:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it does not expire")


class TestEntries:
    async def test_put_and_get(self, kv: Bucket) -> None:
        assert await kv.get("a.b") is None
        revision = await kv.put("a.b", b"x")
        assert await kv.get("a.b") == Entry("a.b", b"x", revision)
        assert await kv.get_from_leader("a.b") == Entry("a.b", b"x", revision)
        assert await kv.put("a.b", b"") > revision
        entry = await kv.get("a.b")
        assert entry is not None
        assert (entry.value, entry.marker) == (b"", False)

    async def test_compare_and_set(self, kv: Bucket) -> None:
        first = await kv.put("a", b"1", expected=0)
        for expected in (0, first + 1):
            with pytest.raises(VersionConflictError) as caught:
                await kv.put("a", b"2", expected=expected)
            assert caught.value.details == {"expected": expected, "actual": first}
        second = await kv.put("a", b"2", expected=first)
        assert await kv.get("a") == Entry("a", b"2", second)

    async def test_ten_creators_have_one_winner(self, kv: Bucket) -> None:
        results = await asyncio.gather(
            *(kv.put("a", b"%d" % n, expected=0) for n in range(10)),
            return_exceptions=True,
        )
        won = [n for n, result in enumerate(results) if isinstance(result, int)]
        assert len(won) == 1
        assert sum(isinstance(r, VersionConflictError) for r in results) == 9
        entry = await kv.get("a")
        assert entry is not None
        assert entry.value == b"%d" % won[0]

    async def test_fence(self, kv: Bucket) -> None:
        first = await kv.put("t.1", b"", expected=0, expected_filter="t.*")
        with pytest.raises(VersionConflictError):
            await kv.put("t.2", b"", expected=0, expected_filter="t.*")
        second = await kv.put("t.2", b"", expected=first, expected_filter="t.*")
        await kv.put("other", b"")
        await kv.put("t.3", b"", expected=second, expected_filter="t.*")
        assert await kv.names(["t.*"]) == ["t.1", "t.2", "t.3"]

    async def test_last(self, kv: Bucket) -> None:
        assert await kv.last("a.>") is None
        await kv.put("a.2", b"2")
        revision = await kv.put("a.1", b"1")
        await kv.put("b", b"")
        assert await kv.last("a.>") == Entry("a.1", b"1", revision)
        assert await kv.last("a.2") == await kv.get("a.2")

    async def test_ttl(self, kv: Bucket) -> None:
        await kv.put("a", b"x", ttl=0.2)
        assert await kv.get("a") is not None
        await gone(kv, "a")
        # No marker stays: it can be created again.
        await kv.put("a", b"x", expected=0)

    @pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
    async def test_a_ttl_is_positive(self, kv: Bucket, ttl: float) -> None:
        with pytest.raises(InvalidRequestError):
            await kv.put("a", b"x", ttl=ttl)

    async def test_hostile_texts_stay_apart(self, kv: Bucket) -> None:
        paths = [(text,) for text in HOSTILE] + [("a", "b"), ("a.b", ""), ("", "")]
        written = {}
        for path in paths:
            key = keys.document_key("ns", "cp", path)
            value = repr(path).encode()
            written[key] = Entry(key, value, await kv.put(key, value, expected=0))
        assert len(written) == len(paths)
        entries = await kv.get_many(list(written))
        assert {entry.key: entry for entry in entries} == written
        for key, entry in written.items():
            assert await kv.get(key) == entry
            assert await kv.last(key) == entry
        assert await kv.names(["cp.ns.>"]) == sorted(written)
        gone = keys.document_key("ns", "cp", ("*",))
        assert await kv.purge(gone) == 1
        assert await kv.names(["cp.ns.>"]) == sorted(written.keys() - {gone})

    @pytest.mark.parametrize(
        "key", ["", ".", "a..b", ".a", "a.", "*", "a.*", ">", "a.>", "a b", "a\n", "é"]
    )
    async def test_illegal_keys_are_refused(self, kv: Bucket, key: str) -> None:
        for call in (kv.put(key, b""), kv.get(key), kv.delete(key, 1)):
            with pytest.raises(InvalidRequestError):
                await call

    @pytest.mark.parametrize(
        "filter", ["", ">", "*", "*.>", "*.*", "a.>.b", "a*", "a\n"]
    )
    async def test_filters_that_meet_too_much(self, kv: Bucket, filter: str) -> None:
        await kv.put("a", b"")
        with pytest.raises(InvalidRequestError):
            await kv.purge(filter)
        with pytest.raises(InvalidRequestError):
            await kv.names([filter])
        assert await kv.get("a") is not None

    async def test_a_key_that_is_too_long_is_refused(self, kv: Bucket) -> None:
        await kv.open()
        fits = ".".join(["x" * 99] * 39)
        assert len(fits) == keys.KEY_LIMIT - 1
        revision = await kv.put(fits, b"v", expected=0, expected_filter=fits)
        assert await kv.get(fits) == Entry(fits, b"v", revision)
        assert await kv.last(fits) == Entry(fits, b"v", revision)
        await kv.put_many([Put(fits, b"v"), Put(fits, b"w")])
        with pytest.raises(DocumentTooLargeError) as caught:
            await kv.put(fits + ".xx", b"v")
        assert caught.value.size == keys.KEY_LIMIT + 2
        assert caught.value.limit == keys.KEY_LIMIT
        assert await kv.get(fits) is not None


class TestManyReads:
    async def test_get_many(self, kv: Bucket) -> None:
        assert await kv.get_many([]) == []
        assert await kv.get_many(["none", "x.*"]) == []
        revisions = await kv.put_many([Put(f"a.{n}", b"%d" % n) for n in range(5)])
        expected = [Entry(f"a.{n}", b"%d" % n, revisions[n]) for n in range(5)]
        assert await kv.get_many(["a.*"]) == expected
        assert await kv.get_many(["a.3", "a.*", "none", "a.3"]) == expected
        assert await kv.get_many(["a.4", "a.0"]) == [expected[0], expected[4]]

    async def test_more_than_the_server_gives_at_once(self, kv: Bucket) -> None:
        names = [f"m.{n:05}" for n in range(2500)]
        await kv.put_many([Put(name, name.encode()) for name in names], exact=False)
        for filters in (["m.*"], names, [*names[:10], "m.*", "none.*"]):
            entries = await kv.get_many(filters)
            assert [entry.key for entry in entries] == names
            assert all(entry.value == entry.key.encode() for entry in entries)
        assert await kv.names(["m.*"]) == names
        assert await kv.names(["m.*", "m.>", "none.*"]) == names
        assert await kv.purge("m.>") == 2500
        assert await kv.names(["m.>"]) == []

    async def test_more_bytes_than_a_connection_bears(self, kv: Bucket) -> None:
        writes = [Put(f"b.{n}", bytes([n]) * 900_000) for n in range(80)]
        await kv.put_many(writes, exact=False)
        entries = await kv.get_many(["b.*"])
        assert [(e.key, e.value) for e in entries] == [(w.key, w.value) for w in writes]

    async def test_entries_that_are_replaced_between_two_pages(
        self, kv: Bucket
    ) -> None:
        writes = [Put(f"r.{n}", bytes(900_000)) for n in range(15)]
        await kv.put_many(writes, exact=False)
        stop = False

        async def replace() -> None:
            while not stop:
                for write in writes:
                    await kv.put(write.key, write.value)

        replacing = asyncio.create_task(replace())
        for _ in range(5):
            assert len(await kv.get_many(["r.*"])) == 15
        stop = True
        await replacing

    async def test_many_readers_at_once(self, kv: Bucket) -> None:
        await kv.put_many(
            [Put(f"c.{n}", bytes(200_000)) for n in range(10)], exact=False
        )
        lists = await asyncio.gather(*(kv.get_many(["c.*"]) for _ in range(40)))
        assert all(len(entries) == 10 for entries in lists)

    async def test_a_list_is_complete_beside_writers(self, kv: Bucket) -> None:
        await kv.put_many([Put(f"d.{n}", b"") for n in range(40)], exact=False)

        async def write() -> None:
            for n in range(300):
                await kv.put(f"e.{n % 7}", b"x")

        writer = asyncio.create_task(write())
        while not writer.done():
            assert len(await kv.get_many(["d.*"])) == 40
            assert len(await kv.names(["d.*"])) == 40
        await writer


class TestMarkers:
    async def test_deleted_by_a_stock_tool(self, client: Client, kv: Bucket) -> None:
        await kv.put_many([Put("a.1", b"x"), Put("a.2", b"y"), Put("a.3", b"z")])
        stock = await client.jetstream().key_value(kv.name)
        await stock.delete("a.1")
        await stock.purge("a.2")
        for key in ("a.1", "a.2"):
            assert await kv.get(key) is None
            assert await kv.get_from_leader(key) is None
            last = await kv.last(key)
            assert last is not None
            assert last.marker
        assert [entry.key for entry in await kv.get_many(["a.*"])] == ["a.3"]
        marker = await kv.last("a.1")
        assert marker is not None
        with pytest.raises(VersionConflictError):
            await kv.put("a.1", b"x", expected=0)
        await kv.put("a.1", b"x", expected=marker.revision)

    async def test_expired_where_limits_leave_markers(
        self, client: Client, bucket: str
    ) -> None:
        await make_stream(
            client,
            bucket,
            allow_msg_ttl=True,
            subject_delete_marker_ttl=60_000_000_000,
        )
        kv = Bucket(client, bucket)
        await kv.put("a.1", b"x", ttl=1)
        await kv.put("a.2", b"x")
        await gone(kv, "a.1")
        assert [entry.key for entry in await kv.get_many(["a.*"])] == ["a.2"]
        last = await kv.last("a.1")
        assert last is not None
        assert last.marker

    async def test_delete(self, kv: Bucket) -> None:
        revision = await kv.put("a", b"x")
        await kv.put("a.b", b"y")
        with pytest.raises(VersionConflictError):
            await kv.delete("a", revision + 5)
        assert await kv.get("a") is not None
        await kv.delete("a", revision)
        assert await kv.get("a") is None
        assert await kv.last("a") is None
        assert await kv.names(["a", "a.>"]) == ["a.b"]
        with pytest.raises(VersionConflictError):
            await kv.delete("a", revision)
        await kv.put("a", b"z", expected=0)

    async def test_nothing_is_left_after_many_deletes(
        self, client: Client, kv: Bucket
    ) -> None:
        for n in range(100):
            await kv.delete(f"k.{n}", await kv.put(f"k.{n}", b"x"))
        info = await client.jetstream().stream_info(f"KV_{kv.name}")
        assert info.state.messages == 0
        assert info.state.consumer_count == 0

    async def test_purge(self, kv: Bucket) -> None:
        revisions = await kv.put_many(
            [Put(key, b"") for key in ("t.1", "t.2", "t.2.x", "t2.1", "u.1")]
        )
        assert await kv.purge("t.*", below=revisions[1]) == 1
        assert await kv.purge("t.2", below=revisions[1]) == 0
        assert await kv.purge("t.2", below=0) == 0
        assert await kv.names(["t.>", "t2.>", "u.>"]) == ["t.2", "t.2.x", "t2.1", "u.1"]
        assert await kv.purge("t.>") == 2
        assert await kv.names(["t.>", "t2.>", "u.>"]) == ["t2.1", "u.1"]
        assert await kv.purge("none.>") == 0


class TestManyWrites:
    async def test_revisions_are_exact(self, kv: Bucket) -> None:
        await kv.put("x", b"")
        revisions = await kv.put_many([Put(f"a.{n}", b"%d" % n) for n in range(4)])
        assert revisions == [
            entry.revision for entry in await kv.get_many([f"a.{n}" for n in range(4)])
        ]
        last_only = await kv.put_many([Put("b.1", b""), Put("b.2", b"")], exact=False)
        assert last_only == [0, revisions[-1] + 2] or last_only[0] > 0
        assert await kv.put_many([]) == []
        assert len(await kv.put_many([Put("c", b"")], exact=False)) == 1

    async def test_a_key_twice(self, kv: Bucket) -> None:
        revisions = await kv.put_many([Put("a", b"1"), Put("a", b"2"), Put("b", b"3")])
        assert revisions == sorted(set(revisions))
        assert await kv.get("a") == Entry("a", b"2", revisions[1])

    @pytest.mark.parametrize("failing", range(4))
    @pytest.mark.parametrize("relaxed", [True, False])
    async def test_it_stops_at_the_first_failure(
        self, kv: Bucket, failing: int, relaxed: bool
    ) -> None:
        await kv.put("taken", b"")
        writes = [Put(f"a.{n}", b"x") for n in range(4)]
        writes[failing] = Put("taken", b"x", 0)
        with pytest.raises(VersionConflictError) as caught:
            await kv.put_many(writes, relaxed=relaxed)
        assert caught.value.expected == 0
        assert await kv.names(["a.*"]) == [f"a.{n}" for n in range(failing)]

    async def test_a_condition_sees_the_writes_before_it(self, kv: Bucket) -> None:
        with pytest.raises(VersionConflictError):
            await kv.put_many([Put("a.1", b""), Put("a.2", b"", 0, "a.*")])
        await kv.put_many([Put("b.1", b""), Put("c.2", b"", 0, "c.*")])

    async def test_concurrent_batches(self, kv: Bucket) -> None:
        async def batch(n: int) -> list[int]:
            return await kv.put_many(
                [Put(f"g.{n}.{m}", b"%d" % n) for m in range(5)] + [Put("shared", b"")]
            )

        results = await asyncio.gather(*map(batch, range(50)))
        entries = {entry.key: entry.revision for entry in await kv.get_many(["g.>"])}
        assert len(entries) == 250
        for n, revisions in enumerate(results):
            assert revisions == sorted(set(revisions))
            assert revisions[:5] == [entries[f"g.{n}.{m}"] for m in range(5)]

    async def test_a_revision_that_is_gone_fits_no_condition(self, kv: Bucket) -> None:
        stop = False

        async def disturb() -> None:
            while not stop:
                await kv.put("a", b"theirs")

        disturbing = asyncio.create_task(disturb())
        for _ in range(100):
            (mine, _) = await kv.put_many([Put("a", b"mine"), Put("b", b"")])
            entry = await kv.get("a")
            assert entry is not None
            assert entry.value == b"mine" or entry.revision > mine
        stop = True
        await disturbing

    async def test_20_megabytes(self, kv: Bucket) -> None:
        await kv.open()
        size = kv.max_value("big.00")
        writes = [Put(f"big.{n:02}", bytes([n]) * size) for n in range(20)]
        writes.append(Put("big.record", b"record", 0))
        await kv.put_many(writes, exact=False)
        entries = await kv.get_many(["big.*"])
        assert [entry.value for entry in entries] == [write.value for write in writes]

    async def test_atomic(self, kv: Bucket) -> None:
        await kv.open()
        if not kv.atomic:
            with pytest.raises(UnsuitableBucketError):
                await kv.put_atomic([Put("a", b"")])
            assert await kv.get("a") is None
            return
        revisions = await kv.put_atomic([Put(f"a.{n}", b"x", 0) for n in range(5)])
        assert [entry.revision for entry in await kv.get_many(["a.*"])] == revisions
        with pytest.raises(VersionConflictError):
            await kv.put_atomic([Put("b.1", b""), Put("a.1", b"", 0), Put("b.2", b"")])
        assert await kv.names(["b.*"]) == []
        for count in (0, 1001):
            with pytest.raises(InvalidRequestError):
                await kv.put_atomic([Put("a", b"")] * count)

    async def test_many_atomic_batches_at_once(self, kv: Bucket) -> None:
        await kv.open()
        if kv.atomic:
            batches = (
                kv.put_atomic([Put(f"h.{n}.{m}", b"x") for m in range(3)])
                for n in range(100)
            )
            await asyncio.gather(*batches)
            assert len(await kv.names(["h.>"])) == 300


class TestSizes:
    @pytest.mark.parametrize(
        "excess", [-4096, -2000, -200, -100, -50, -13, -12, -1, 0, 1, 512]
    )
    async def test_around_the_greatest_payload(self, kv: Bucket, excess: int) -> None:
        value = bytes(MIB + excess)
        writes = [
            kv.put("a", value),
            kv.put("b", value, expected=0),
            kv.put("c", value, expected=0, expected_filter="c.>"),
            kv.put("d", value, ttl=60),
            kv.put_many([Put("e", b""), Put("f", value, 0)]),
        ]
        for key, write in zip("abcdf", writes, strict=True):
            (result,) = await asyncio.gather(write, return_exceptions=True)
            entry = await kv.get(key)
            if isinstance(result, DocumentTooLargeError):
                assert result.size is not None
                assert result.size > MIB == result.limit
                assert entry is None
            else:
                assert entry is not None
                assert entry.value == value
                assert excess <= 0
        assert kv.client.is_connected
        assert kv.client.stats["reconnects"] == 0

    async def test_what_fits_for_certain(self, kv: Bucket) -> None:
        key = "k." + "x" * 300
        assert kv.max_value(key) > MIB - 4096
        await kv.open()
        value = bytes(kv.max_value(key))
        await kv.put(key, value, expected=0, expected_filter=key, ttl=100)

    async def test_a_bucket_with_a_limit_of_its_own(
        self, client: Client, bucket: str
    ) -> None:
        kv = Bucket(client, bucket, BucketOptions(max_value_size=2000))
        await kv.open()
        assert kv.max_value("a") < 2000
        await kv.put("a", bytes(kv.max_value("a")), expected=0)
        with pytest.raises(DocumentTooLargeError) as caught:
            await kv.put("a", bytes(2001))
        assert caught.value.details == {"size": 2001, "limit": 2000}

    async def test_a_full_bucket_reads_and_deletes(
        self, client: Client, bucket: str
    ) -> None:
        kv = Bucket(client, bucket, BucketOptions(max_bytes=100_000))
        results = await asyncio.gather(
            *(kv.put(f"a.{n:03}", bytes(1000)) for n in range(200)),
            return_exceptions=True,
        )
        stored = sum(isinstance(result, int) for result in results)
        assert 50 < stored < 100
        assert sum(isinstance(r, StorageFullError) for r in results) == 200 - stored
        with pytest.raises(StorageFullError):
            await kv.put_many([Put("b.1", bytes(5000)), Put("b.2", b"")])
        assert len(await kv.get_many(["a.*"])) == stored
        assert await kv.names(["b.*"]) == []
        entry = await kv.get("a.000")
        assert entry is not None
        assert await kv.purge("a.001") == 1
        assert await kv.purge("a.>") == stored - 1
        await kv.put("b", bytes(5000))


class TestBinding:
    async def test_configuration(self, client: Client, bucket: str) -> None:
        options = BucketOptions(
            description="text", max_bytes=10**9, metadata={"owner": "me"}
        )
        await Bucket(client, bucket, options).open()
        config = await config_of(client, bucket)
        expected = {
            "name": f"KV_{bucket}",
            "description": "text",
            "subjects": [f"$KV.{bucket}.>"],
            "max_msgs_per_subject": 1,
            "max_bytes": 10**9,
            "discard": "new",
            "storage": "file",
            "num_replicas": 1,
            "duplicate_window": 120_000_000_000,
            "compression": "none",
            "allow_direct": True,
            "deny_delete": True,
            "deny_purge": False,
            "allow_rollup_hdrs": True,
            "allow_msg_ttl": True,
        }
        assert {name: config.get(name) for name in expected} == expected
        assert config["metadata"]["owner"] == "me"
        stock = await client.jetstream().key_value(bucket)
        await stock.put("k", b"v")
        assert (await stock.get("k")).value == b"v"
        assert await stock.keys() == ["k"]

    async def test_an_existing_bucket_is_never_changed(
        self, client: Client, bucket: str
    ) -> None:
        await Bucket(client, bucket).open()
        before = await config_of(client, bucket)
        options = BucketOptions(description="other", max_bytes=5, storage="memory")
        other = Bucket(client, bucket, options)
        await other.open()
        await other.open()
        assert await config_of(client, bucket) == before

    @pytest.mark.parametrize("direct", [True, False, None])
    @pytest.mark.parametrize("history", [1, 5])
    async def test_a_bucket_made_with_nats_py(
        self, client: Client, bucket: str, history: int, direct: bool | None
    ) -> None:
        await client.jetstream().create_key_value(
            bucket=bucket, history=history, direct=direct
        )
        kv = Bucket(client, bucket)
        revision = 0
        for n in range(3):
            revision = await kv.put("a.1", b"%d" % n)
        assert await kv.get("a.1") == Entry("a.1", b"2", revision)
        assert await kv.last("a.*") == Entry("a.1", b"2", revision)
        await kv.put_many([Put("a.2", b""), Put("a.3", b"", 0)])
        found = [entry.key for entry in await kv.get_many(["a.*", "a.1", "none"])]
        assert found == ["a.1", "a.2", "a.3"]
        await kv.delete("a.1", revision)
        assert await kv.get("a.1") is None
        assert await kv.names(["a.*"]) == ["a.2", "a.3"]
        assert [entry.key for entry in await kv.get_many(["a.*"])] == ["a.2", "a.3"]
        stock = await client.jetstream().key_value(bucket)
        await stock.delete("a.2")
        assert await kv.get("a.2") is None
        assert [entry.key for entry in await kv.get_many(["a.*"])] == ["a.3"]
        if history > 1:
            with pytest.raises(UnsuitableBucketError) as caught:
                await kv.put("b", b"", ttl=5)
            assert caught.value.setting == "max_msgs_per_subject"

    async def test_a_bucket_without_ttl(self, client: Client, bucket: str) -> None:
        await make_stream(client, bucket)
        kv = Bucket(client, bucket)
        with pytest.raises(UnsuitableBucketError) as caught:
            await kv.put("b", b"", ttl=5)
        assert caught.value.details == {"bucket": bucket, "setting": "allow_msg_ttl"}
        await kv.delete("a", await kv.put("a", b""))
        assert await kv.names(["a", "b"]) == []

    @pytest.mark.parametrize(
        ("setting", "settings"),
        [
            ("max_age", {"max_age": 10**12}),
            ("deny_purge", {"deny_purge": True, "allow_rollup_hdrs": False}),
            ("retention", {"retention": "interest"}),
            ("no_ack", {"no_ack": True}),
            ("discard", {"discard": "old", "max_bytes": 10**6}),
            ("discard", {"discard": "old", "max_msgs": 10**6}),
            ("discard_new_per_subject", {"discard_new_per_subject": True}),
            ("subjects", {"subjects": ["$KV.other-bucket.>"]}),
            ("subject_transform", {"subject_transform": {"src": ">", "dest": "$KV.>"}}),
        ],
    )
    async def test_a_setting_that_does_not_fit(
        self, client: Client, bucket: str, setting: str, settings: dict[str, Any]
    ) -> None:
        await make_stream(client, bucket, **settings)
        kv = Bucket(client, bucket)
        for _ in range(2):
            with pytest.raises(UnsuitableBucketError) as caught:
                await kv.get("a")
            assert caught.value.details == {"bucket": bucket, "setting": setting}
        await client.jetstream().delete_stream(f"KV_{bucket}")

    async def test_a_mirror_does_not_fit(self, client: Client, bucket: str) -> None:
        await Bucket(client, bucket).open()
        config = {"name": f"KV_{bucket}-m", "mirror": {"name": f"KV_{bucket}"}}
        await client.request(
            f"$JS.API.STREAM.CREATE.KV_{bucket}-m", json.dumps(config).encode()
        )
        with pytest.raises(UnsuitableBucketError, match="mirror"):
            await Bucket(client, f"{bucket}-m").open()

    async def test_a_sealed_bucket_does_not_fit(
        self, client: Client, bucket: str
    ) -> None:
        kv = Bucket(client, bucket)
        await kv.put("a", b"x")
        config = await config_of(client, bucket) | {"sealed": True}
        config.pop("metadata")
        subject = f"$JS.API.STREAM.UPDATE.KV_{bucket}"
        await client.request(subject, json.dumps(config).encode())
        with pytest.raises(UnsuitableBucketError, match="sealed"):
            await Bucket(client, bucket).open()
        with pytest.raises(UnsuitableBucketError) as caught:
            await kv.put("a", b"y")
        assert caught.value.setting == "sealed"

    async def test_a_bucket_that_is_gone(self, client: Client, bucket: str) -> None:
        kv = Bucket(client, bucket)
        await kv.put("a", b"x")
        await client.jetstream().delete_stream(f"KV_{bucket}")
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: kv.put("a", b"x"),
            lambda: kv.put_many([Put("a", b""), Put("b", b"")]),
            lambda: kv.get("a"),
            lambda: kv.get_from_leader("a"),
            lambda: kv.last("a.*"),
            lambda: kv.get_many(["a", "b.*"]),
            lambda: kv.names(["a"]),
            lambda: kv.purge("a"),
            lambda: kv.delete("a", 1),
        ]
        for call in calls:
            with pytest.raises(BucketNotFoundError) as caught:
                await call()
            assert caught.value.bucket == bucket

    async def test_fast_batches_taken_away(self, client: Client, bucket: str) -> None:
        kv = Bucket(client, bucket)
        await kv.open()
        if not kv.fast:
            return
        config = await config_of(client, bucket)
        config.pop("metadata")
        await client.request(
            f"$JS.API.STREAM.UPDATE.KV_{bucket}",
            json.dumps(config | {"allow_batched": False}).encode(),
        )
        await kv.put_many([Put("a.1", b"1"), Put("a.2", b"2"), Put("a.3", b"3")])
        assert await kv.names(["a.*"]) == ["a.1", "a.2", "a.3"]

    @pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "é", "a/b"])
    def test_illegal_names(self, name: str) -> None:
        with pytest.raises(InvalidRequestError):
            Bucket(None, name)

    async def test_ten_first_uses_make_one_bucket(
        self, client: Client, bucket: str
    ) -> None:
        buckets = [Bucket(client, bucket) for _ in range(10)]
        await asyncio.gather(*(kv.put(f"a.{n}", b"") for n, kv in enumerate(buckets)))
        assert len(await buckets[0].names(["a.*"])) == 10

    def test_processes_race_to_make_it(self, nats_url: str, bucket: str) -> None:
        program = (
            "import asyncio, sys\n"
            "from jskv_saver.adapters.jetstream.bucket import Bucket\n"
            "async def main():\n"
            "    kv = Bucket(sys.argv[1], sys.argv[2])\n"
            "    sys.stdin.readline()\n"
            "    await kv.put('a.' + sys.argv[3], b'x')\n"
            "    await kv.close()\n"
            "asyncio.run(main())\n"
        )
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, nats_url, bucket, str(n)],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(4)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            _, errors = process.communicate(timeout=30)
            assert process.returncode == 0, errors


class TestLife:
    async def test_a_callers_client_stays_open(
        self, client: Client, bucket: str
    ) -> None:
        kv = Bucket(client, bucket)
        await kv.put("a", b"x")
        subscriptions = len(client._subs)
        await kv.close()
        await kv.close()
        assert client.is_connected
        assert len(client._subs) == subscriptions - 1
        with pytest.raises(StoreClosedError):
            await kv.get("a")
        with pytest.raises(StoreClosedError):
            await kv.put("a", b"x")

    async def test_an_own_connection_is_closed(
        self, nats_url: str, bucket: str
    ) -> None:
        before = len(asyncio.all_tasks())
        kv = Bucket(nats_url, bucket, role="tester")
        await kv.put("a", b"x")
        client = kv.client
        assert " tester@" in str(client.options["name"])
        await kv.close()
        assert client.is_closed
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == before

    async def test_close_without_use(self, nats_url: str, bucket: str) -> None:
        kv = Bucket(nats_url, bucket)
        await kv.close()
        with pytest.raises(StoreClosedError):
            await kv.open()

    async def test_nothing_is_left_on_the_server(
        self, client: Client, kv: Bucket
    ) -> None:
        for n in range(100):
            await kv.put(f"a.{n}", b"")
            await kv.get_many(["a.*"])
            await kv.names(["a.*"])
        info = await client.jetstream().stream_info(f"KV_{kv.name}")
        assert info.state.consumer_count == 0
        tasks = len(asyncio.all_tasks())
        await asyncio.gather(*(kv.get(f"a.{n}") for n in range(100)))
        assert len(asyncio.all_tasks()) == tasks

    async def test_a_cancelled_call_leaves_the_bucket_usable(self, kv: Bucket) -> None:
        await kv.open()
        tasks = [asyncio.create_task(kv.put(f"a.{n}", b"x")) for n in range(60)]
        for n, task in enumerate(tasks):
            if n % 3 == 0:
                await asyncio.sleep(0)
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert any(isinstance(result, asyncio.CancelledError) for result in results)
        await kv.put("b", b"x")
        entries = await kv.get_many(["a.*"])
        assert all(entry.value == b"x" for entry in entries)


async def test_replicated(cluster: list[LocalServer], bucket: str) -> None:
    options = BucketOptions(replicas=3)
    writer = Bucket(cluster[0].url, bucket, options)
    reader = Bucket(cluster[1].url, bucket)
    try:
        await writer.open()
        await reader.open()
        assert reader.replicated
        for n in range(200):
            revision = await writer.put(f"a.{n:03}", b"%d" % n, expected=0)
            expected = Entry(f"a.{n:03}", b"%d" % n, revision)
            assert await reader.get_from_leader(expected.key) == expected
            assert await reader.last("a.*") == expected
        assert len(await reader.names(["a.*"])) == 200
        revisions = await writer.put_many([Put(f"b.{n}", b"x") for n in range(5)])
        for n, revision in enumerate(revisions):
            entry = await reader.get_from_leader(f"b.{n}")
            assert entry == Entry(f"b.{n}", b"x", revision)
        await writer.delete("a.000", (await writer.last("a.000")).revision)  # type: ignore[union-attr]
        assert await reader.get_from_leader("a.000") is None
    finally:
        await writer.close()
        await reader.close()
