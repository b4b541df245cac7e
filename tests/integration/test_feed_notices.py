"""What a feed and other readers see of the notices that threads were deleted."""

from __future__ import annotations

import asyncio

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from tests.integration.following import READS, write
from tests.patience import PATIENCE

from jskv_saver import ANY, JetStreamDocumentStore, JetStreamSaver


async def test_the_removal_of_a_thread_is_no_key_to_anybody(
    store: JetStreamDocumentStore, client: Client, bucket: str, nats_url: str
) -> None:
    long = "x" * 2000
    saver = JetStreamSaver(store)
    for thread in ("t", long):
        await store.put("default", "th", ("default", thread, ""), {})
    changes = store.changes(None, [], removals=[("default", ANY)])
    await changes.open()
    for thread in ("t", long):
        await saver.adelete_thread(thread)
    async with asyncio.timeout(PATIENCE):
        found = [await changes.next() for _ in range(2)]
    assert [change.id for change in found] == [("default", "t"), ("default", long)]
    assert {(c.namespace, c.collection, c.document) for c in found} == {
        ("default", "", None)
    }

    stream = await client.jetstream().stream_info(f"KV_{bucket}")
    assert stream.state.messages == 2
    kv = await client.jetstream().key_value(bucket)
    with pytest.raises(nats.js.errors.NoKeysError):
        await kv.keys()
    name = f"$KV.{bucket}.th./default.default.t"
    marker = await client.jetstream().get_last_msg(f"KV_{bucket}", name)
    assert marker.headers == {"KV-Operation": "PURGE", "Nats-TTL": "60s"}
    with pytest.raises(nats.js.errors.KeyNotFoundError):
        await kv.get("th./default.default.t")
    assert await store.namespaces() == []
    assert await store.ids("default", "th") == []
    assert await store.count("default", "th") == 0
    assert (await store.find("default", "th")).items == ()
    newest = ("@version", "desc")
    assert not (await store.find("default", "th", order_by=newest, limit=1)).items  # type: ignore[arg-type]
    assert not await store.get_many("default", [("th", ("default", ANY, ANY))])
    await store.put("default", "th", ("default", "t", ""), {}, if_version=0)
    await changes.close()


async def test_a_bucket_without_expiry_gets_no_marker(
    nats_url: str, bucket: str, client: Client
) -> None:
    jetstream = client.jetstream()
    await jetstream.add_stream(
        StreamConfig(
            name=f"KV_{bucket}",
            subjects=[f"$KV.{bucket}.>"],
            max_msgs_per_subject=1,
            allow_rollup_hdrs=True,
            allow_direct=True,
        )
    )
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        await saver.store.put("default", "th", ("default", "t", ""), {})
        await saver.adelete_thread("t")
    assert (await jetstream.stream_info(f"KV_{bucket}")).state.messages == 0


async def test_other_programs_keys_do_not_end_it(
    store: JetStreamDocumentStore, client: Client, bucket: str
) -> None:
    everything = store.changes(None, READS, removals=[(ANY, ANY)])
    await everything.open()
    kv = await client.jetstream().key_value(bucket)
    for key in ("ls.n.a.x", "ls.=Z.a.x", "th.a.b.c", "th./=Z.a.b", "th./n.a.b"):
        await kv.put(key, b"?")
        await kv.delete(key)
    await write(store, [7])
    assert [c.version for c in [await everything.next()] if c.document is None]
    found = []
    async with asyncio.timeout(PATIENCE):
        while True:
            change = await everything.next()
            if change.document is not None:
                break
            found.append((change.collection, change.id))
    assert change.document.data == {"n": 7}
    assert set(found) <= {("ls", ("a", "x")), ("", ("a", "b")), ("th", ("b", "c"))}
    await everything.close()
