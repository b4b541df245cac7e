"""A bucket as a file: each message's key, revision, headers and bytes; and back.

A line of JSON for each message: `seq`, `key`, and in base64 `hdrs` and `data`, as the
server gives a stored message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import nats
from nats.aio.client import Client

FILLER = "zz"
"""A key that takes the revisions which are no message's any more."""


async def dump(url: str, bucket: str) -> list[dict[str, Any]]:
    """All messages, oldest first."""
    client = await nats.connect(url)
    try:
        state = (await client.jetstream().stream_info(f"KV_{bucket}")).state
        rows: list[dict[str, Any]] = []
        for seq in range(state.first_seq, state.last_seq + 1):
            answer = json.loads(
                (
                    await client.request(
                        f"$JS.API.STREAM.MSG.GET.KV_{bucket}",
                        json.dumps({"seq": seq}).encode(),
                    )
                ).data
            )
            message = answer.get("message")
            if message is not None:
                rows.append(
                    {
                        "seq": message["seq"],
                        "key": message["subject"].removeprefix(f"$KV.{bucket}."),
                        "hdrs": message.get("hdrs", ""),
                        "data": message.get("data", ""),
                    }
                )
        return rows
    finally:
        await client.close()


async def restore(url: str, bucket: str, rows: Sequence[dict[str, Any]]) -> None:
    """Put messages into an empty bucket, each with the revision that it had.

    Revisions matter: an epoch names the dead with theirs.
    """
    client = await nats.connect(url)
    try:
        for row in rows:
            assert await _publish(client, bucket, row) == row["seq"], row["key"]
        await client.jetstream().purge_stream(
            f"KV_{bucket}", subject=f"$KV.{bucket}.{FILLER}"
        )
    finally:
        await client.close()


async def _publish(client: Client, bucket: str, row: dict[str, Any]) -> int:
    jetstream = client.jetstream()
    last = (await jetstream.stream_info(f"KV_{bucket}")).state.last_seq
    for _ in range(last + 1, row["seq"]):
        await jetstream.publish(f"$KV.{bucket}.{FILLER}", b"")
    ack = await jetstream.publish(
        f"$KV.{bucket}.{row['key']}", base64.b64decode(row["data"])
    )
    return ack.seq
