"""How a bucket is made, and which ones that are there are used."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from tests.integration.buckets import config_of, make_stream

from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Entry, Put
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    UnsuitableBucketError,
)


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

    async def test_a_bucket_without_ttl(self, client: Client, bucket: str) -> None:
        await make_stream(client, bucket)
        kv = Bucket(client, bucket)
        await kv.delete("a", await kv.put("a", b""))
        assert await kv.names(["a"]) == []

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
        config = await config_of(client, bucket)
        if not config.get("allow_batched"):
            return
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
