"""What `nats stream backup` and `restore` send, on a bucket with threads."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from langgraph.types import Command
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.documents.given import builder, config
from tests.patience import PATIENCE

from jskv_saver import JetStreamSaver


async def asked(client: Client, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """An answer of the JetStream API."""
    answer = await client.request(
        f"$JS.API.STREAM.{subject}", json.dumps(body).encode()
    )
    found: dict[str, Any] = json.loads(answer.data)
    assert "error" not in found, found
    return found


async def backup(client: Client, stream: str) -> tuple[dict[str, Any], list[bytes]]:
    """The settings and state of a stream, and its messages in chunks."""
    inbox = client.new_inbox()
    chunks: list[bytes] = []
    ended = asyncio.Event()

    async def take(message: Msg) -> None:
        if not message.data:
            ended.set()
            return
        chunks.append(message.data)
        await message.respond(b"")

    await client.subscribe(inbox, cb=take)
    request = {"deliver_subject": inbox, "no_consumers": True, "jsck": True}
    described = await asked(client, f"SNAPSHOT.{stream}", request)
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
    return {key: described[key] for key in ("config", "state")}, chunks


async def restore(client: Client, saved: tuple[dict[str, Any], list[bytes]]) -> None:
    described, chunks = saved
    name = described["config"]["name"]
    where = (await asked(client, f"RESTORE.{name}", described))["deliver_subject"]
    for chunk in chunks:
        await client.request(where, chunk, timeout=PATIENCE)
    answer = json.loads((await client.request(where, b"", timeout=PATIENCE)).data)
    assert "error" not in answer, answer


async def test_a_bucket_that_is_restored_goes_on_where_it_was(
    nats_url: str, client: Client, bucket: str
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"amount": 89}, config)
        before = [found async for found in saver.alist(config)]
        saved = await backup(client, f"KV_{bucket}")
        await graph.ainvoke(Command(resume="approved"), config)

    await client.jetstream().delete_stream(f"KV_{bucket}")
    await restore(client, saved)

    async with JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, create=False
    ) as saver:
        assert [found async for found in saver.alist(config)] == before
        assert not (await saver.averify(settle=0)).findings
        graph = builder.compile(checkpointer=saver)
        assert (await graph.aget_state(config)).next == ("ask",)
        state = await graph.ainvoke(Command(resume="refused"), config)
        assert state["paid"] == 0
