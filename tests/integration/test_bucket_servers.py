"""A bucket on a server that is not the one that was expected."""

from __future__ import annotations

import nats
import pytest
from tests.integration.buckets import SLOW
from tests.patience import at_once, patiently

from jskv_saver import LocalServer
from jskv_saver._server_process import free_port
from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Put
from jskv_saver.errors import StoreUnavailableError


class TestOtherServers:
    async def test_jetstream_is_off(self, bucket: str) -> None:
        with LocalServer(config="jetstream: disabled") as server:
            kv = Bucket(server.url, bucket, SLOW)
            with at_once(), pytest.raises(StoreUnavailableError, match="JetStream"):
                await kv.get("a")
            await kv.close()

    async def test_a_domain(self, bucket: str) -> None:
        """Two linked servers with a bucket of the same name each: one domain is one."""
        port = free_port("127.0.0.1")
        hub_config = f"""
            jetstream {{ domain: hub }}
            leafnodes {{ listen: "127.0.0.1:{port}" }}
        """
        with LocalServer(config=hub_config, user="u", password="p") as hub:
            leaf_config = f"""
                jetstream {{ domain: leaf }}
                leafnodes {{ remotes: [ {{ url: "nats://u:p@127.0.0.1:{port}" }} ] }}
            """
            with LocalServer(config=leaf_config) as leaf:
                await self.use_both(hub, leaf, bucket)

    async def use_both(self, hub: LocalServer, leaf: LocalServer, bucket: str) -> None:
        client = await nats.connect(leaf.url)
        there = Bucket(hub.url, bucket)
        await there.put("a", b"hub")
        near = Bucket(client, bucket)
        await near.put("a", b"leaf")
        far = Bucket(client, bucket, BucketOptions(domain="hub"))
        # Until the two are linked.
        await patiently(far.open)
        entry = await far.get("a")
        assert entry is not None
        assert entry.value == b"hub"
        await far.put("a", b"far", expected=entry.revision, expected_filter="a")
        assert await there.get("a") == await far.get("a")
        await far.put_many([Put("b.1", b"x"), Put("b.2", b"x", 0)])
        names = await far.names(["b.*"])
        assert len(names) >= 2
        assert [e.key for e in await far.get_many(["b.*"])] == names
        assert await there.names(["b.*"]) == names
        await far.delete("b.1", (await far.get_many(["b.1"]))[0].revision)
        assert await there.get("b.1") is None
        assert await far.purge("b.>") == len(names) - 1
        # The near one has seen nothing of it.
        entry = await near.get("a")
        assert entry is not None
        assert entry.value == b"leaf"
        assert await near.names(["b.*"]) == []
        absent = Bucket(client, bucket, BucketOptions(domain="none", timeout=1))
        with pytest.raises(StoreUnavailableError):
            await absent.open()
        await there.close()
        await client.close()
