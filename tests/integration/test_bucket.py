"""What a bucket does with a real server: revisions, fences, markers."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client
from tests.integration.buckets import gone, make_stream
from tests.patience import until

from jskv_saver import LocalServer
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Entry, Put
from jskv_saver.errors import (
    DocumentTooLargeError,
    InvalidRequestError,
    StoreClosedError,
    VersionConflictError,
)

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
        await kv.open()
        subject = f"$KV.{bucket}.a.1"
        await client.jetstream().publish(subject, b"x", headers={"Nats-TTL": "1s"})
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
        await until(lambda: len(asyncio.all_tasks()) == before)

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
        await until(lambda: len(asyncio.all_tasks()) == tasks)

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
        first = await writer.last("a.000")
        assert first
        await writer.delete("a.000", first.revision)
        assert await reader.get_from_leader("a.000") is None
    finally:
        await writer.close()
        await reader.close()
