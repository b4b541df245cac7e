"""A mirror of a bucket, on another server, is read and never written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import nats
import pytest
from langchain_core.runnables import RunnableConfig
from nats.aio.client import Client
from tests.acceptance.graphs import approval
from tests.checkpoint.saving import at, ids, listed, put, put_chain, values
from tests.conftest import BINARY
from tests.patience import PATIENCE, patiently
from typer.testing import CliRunner

from jskv_saver import JetStreamDocumentStore, JetStreamSaver, LocalServer
from jskv_saver._server_process import free_port
from jskv_saver.cli.app import app
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    UnsuitableBucketError,
)


@contextmanager
def _linked() -> Iterator[tuple[LocalServer, LocalServer]]:
    """A hub, and a leaf node with a JetStream domain of its own."""
    port = free_port("127.0.0.1")
    hub_config = f"""
        jetstream {{ domain: hub }}
        leafnodes {{ listen: "127.0.0.1:{port}" }}
    """
    leaf_config = f"""
        jetstream {{ domain: leaf }}
        leafnodes {{ remotes: [ {{ url: "nats://u:p@127.0.0.1:{port}" }} ] }}
    """
    with (
        LocalServer(binary=BINARY, config=hub_config, user="u", password="p") as hub,
        LocalServer(binary=BINARY, config=leaf_config) as leaf,
    ):
        yield hub, leaf


@pytest.fixture(scope="module")
def linked() -> Iterator[tuple[LocalServer, LocalServer]]:
    with _linked() as servers:
        yield servers


@pytest.fixture
async def hub_client(
    linked: tuple[LocalServer, LocalServer],
) -> AsyncIterator[Client]:
    client = await nats.connect(linked[0].url)
    yield client
    await client.close()


async def _mirror(client: Client, bucket: str, **more: Any) -> str:
    """Mirror a bucket of the leaf on the hub, as `nats kv add --mirror` does."""
    name = f"{bucket}-mirror"
    config = {
        "name": f"KV_{name}",
        "max_msgs_per_subject": 1,
        "mirror": {
            "name": f"KV_{bucket}",
            "external": {"api": "$JS.leaf.API"},
            **more,
        },
        "mirror_direct": True,
    }
    answer = await client.request(
        f"$JS.API.STREAM.CREATE.KV_{name}", json.dumps(config).encode()
    )
    assert "error" not in json.loads(answer.data)
    return name


async def _caught_up(client: Client, name: str, last: int) -> None:
    """Wait until a mirror has a message of its origin."""
    jetstream = client.jetstream()
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await jetstream.stream_info(f"KV_{name}")).state.last_seq >= last:
                return
            await asyncio.sleep(0.01)


async def test_what_is_written_through_a_domain_lands_in_the_leaf(
    linked: tuple[LocalServer, LocalServer], bucket: str
) -> None:
    hub, leaf = linked
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    async with (
        JetStreamSaver.from_conn_string(leaf.url, bucket=bucket) as near,
        JetStreamSaver.from_conn_string(hub.url, bucket=bucket, domain="leaf") as far,
    ):
        graph = approval().compile(checkpointer=far)
        await patiently(lambda: graph.ainvoke({"log": []}, config))
        assert await listed(near, config) == await listed(far, config)
        await far.aprune(["t"])
        assert len(await listed(near, config)) == 1
        await far.adelete_thread("t")
        assert await listed(near, config) == []
    # The hub has no bucket of this name: nothing went to the near one by mistake.
    with pytest.raises(BucketNotFoundError):
        async with JetStreamSaver.from_conn_string(
            hub.url, bucket=bucket, create=False
        ):
            pass


async def test_a_mirror_on_a_hub_shows_what_the_leaf_has(
    linked: tuple[LocalServer, LocalServer], hub_client: Client, bucket: str
) -> None:
    hub, leaf = linked
    async with JetStreamSaver.from_conn_string(leaf.url, bucket=bucket) as near:
        for n in range(3):
            await put(near, f"{n}", {"n": n, "large": f"{n}" * 5000}, parent=None)
            await near.aput_writes(at(f"{n}"), [("a", n)], "task")
        rows = await listed(near, at())
        name = await _mirror(hub_client, bucket)
        last = await near.store.put("default", "th", ("default", "x", ""), {})
        await _caught_up(hub_client, name, last.version)
        async with JetStreamSaver.from_conn_string(
            hub.url, bucket=name, read_only=True
        ) as far:
            assert await listed(far, at()) == rows
            assert await values(far, "1") == {"n": 1, "large": "1" * 5000}
            assert await far.aget_tuple(at()) == rows[0]
            # It follows, without being opened again.
            await put(near, "3", {"n": 3}, parent="2")
            last = await near.store.put("default", "th", ("default", "y", ""), {})
            await _caught_up(hub_client, name, last.version)
            assert await ids(far, at()) == ["3", "2", "1", "0"]
    there = ["--server", hub.url, "--bucket", name]
    for command in (["show", "t"], ["history", "t"], ["threads"], ["replay-plan", "t"]):
        shown = await asyncio.to_thread(CliRunner().invoke, app, [*command, *there])
        assert shown.exit_code == 0, shown.output
        assert "t" in shown.stdout
    shown = await asyncio.to_thread(
        CliRunner().invoke, app, ["show", "t", "--json", *there]
    )
    found = json.loads(shown.stdout)
    assert found["id"] == "3"


CALLS: dict[str, Callable[[JetStreamSaver], Awaitable[Any]]] = {
    "put": lambda s: put(s, "9", {"n": 9}, parent="2"),
    "put elsewhere": lambda s: put(s, "9", {"n": "9" * 5000}, thread="new"),
    "writes": lambda s: s.aput_writes(at("2"), [("a", 1)], "t"),
    "delete_thread": lambda s: s.adelete_thread("t"),
    "prune": lambda s: s.aprune(["t"]),
    "copy_thread": lambda s: s.acopy_thread("t", "copy"),
    "admit": lambda s: s.aadmit(at(), "please"),
}


@pytest.mark.parametrize("call", CALLS)
async def test_what_would_write_is_refused_before_it_is_sent(
    nats_url: str, client: Client, bucket: str, call: str
) -> None:
    async with (
        JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver,
        JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, read_only=True
        ) as reader,
    ):
        await put_chain(saver, ["1", "2"])
        before = (await client.jetstream().stream_info(f"KV_{bucket}")).state
        with pytest.raises(InvalidRequestError, match="read_only=True"):
            await CALLS[call](reader)
        after = (await client.jetstream().stream_info(f"KV_{bucket}")).state
        assert (after.last_seq, after.messages) == (before.last_seq, before.messages)
        assert await ids(reader, at()) == ["2", "1"]


async def test_documents_are_read_and_not_written(nats_url: str, bucket: str) -> None:
    async with (
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as store,
        JetStreamDocumentStore.from_conn_string(
            nats_url, bucket=bucket, read_only=True
        ) as reader,
    ):
        for n in range(3):
            await store.put("shop", "rn", ("t", str(n)), {"n": n})
        # A marker of a stock tool stands before what is there, and stays there.
        client = await nats.connect(nats_url)
        kv = await client.jetstream().key_value(bucket)
        key = next(key for key in await kv.keys() if key.endswith(".2"))
        await kv.delete(key)
        await client.close()
        newest = await reader.find(
            "shop", "rn", order_by=("@version", "desc"), limit=1, within=("t",)
        )
        assert [document.data for document in newest.items] == [{"n": 1}]
        for write in (
            lambda: reader.put("shop", "rn", ("t", "9"), {}),
            lambda: reader.put_many("shop", [("rn", ("t", "9"), {}, None)]),
            lambda: reader.delete("shop", "rn", ("t", "0")),
            lambda: reader.delete("shop", "rn", ("t",), subtree=True),
        ):
            with pytest.raises(InvalidRequestError, match="read_only=True"):
                await write()
        assert (await store.get("shop", "rn", ("t", "0"))).data == {"n": 0}


async def test_nothing_is_made_for_a_reader(nats_url: str, bucket: str) -> None:
    with pytest.raises(BucketNotFoundError):
        async with JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, read_only=True
        ):
            pass


async def test_a_part_of_a_bucket_is_no_mirror(
    linked: tuple[LocalServer, LocalServer], hub_client: Client, bucket: str
) -> None:
    hub, leaf = linked
    async with JetStreamSaver.from_conn_string(leaf.url, bucket=bucket) as near:
        await put(near, "1", {"n": 1})
    name = await _mirror(hub_client, bucket, filter_subject=f"$KV.{bucket}.cp.>")
    with pytest.raises(UnsuitableBucketError, match="not the whole"):
        async with JetStreamSaver.from_conn_string(
            hub.url, bucket=name, read_only=True
        ):
            pass


async def test_what_was_purged_stays_in_a_mirror(
    linked: tuple[LocalServer, LocalServer], hub_client: Client, bucket: str
) -> None:
    """A purge is no message: it is not mirrored. docs/adr/0027 says what follows."""
    hub, leaf = linked
    async with JetStreamSaver.from_conn_string(leaf.url, bucket=bucket) as near:
        await put_chain(near, ["1", "2"])
        name = await _mirror(hub_client, bucket)
        last = await near.store.put("default", "th", ("default", "y", ""), {})
        await _caught_up(hub_client, name, last.version)
        await near.adelete_thread("t")
        assert await ids(near, at()) == []
        last = await near.store.put("default", "th", ("default", "x", ""), {})
        await _caught_up(hub_client, name, last.version)
        async with JetStreamSaver.from_conn_string(
            hub.url, bucket=name, read_only=True
        ) as far:
            assert await ids(far, at()) == ["2", "1"]
            await hub_client.request(
                f"$JS.API.STREAM.PURGE.KV_{name}",
                json.dumps({"filter": f"$KV.{bucket}.*.default.default.t.>"}).encode(),
            )
            assert await ids(far, at()) == []
