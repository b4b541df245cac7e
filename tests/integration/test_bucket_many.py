"""Many entries of a bucket at once, and large ones."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Entry, Put
from jskv_saver.errors import (
    DocumentTooLargeError,
    StorageFullError,
    VersionConflictError,
)

MIB = 1024 * 1024


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
            kv.put_many([Put("e", b""), Put("f", value, 0)]),
        ]
        for key, write in zip("abcf", writes, strict=True):
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
        await kv.put(key, value, expected=0, expected_filter=key)

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
