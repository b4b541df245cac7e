"""What the tests of a bucket share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from nats.aio.client import Client
from tests.patience import PATIENCE

from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Put

Call = Callable[[Bucket], Coroutine[Any, Any, Any]]
READS: dict[str, Call] = {
    "get": lambda kv: kv.get("a"),
    "last": lambda kv: kv.last("a.*"),
    "get_many": lambda kv: kv.get_many(["a", "b.*"]),
    "names": lambda kv: kv.names(["a.*"]),
}
WRITES: dict[str, Call] = {
    "put": lambda kv: kv.put("a", b"x"),
    "put_many": lambda kv: kv.put_many([Put("a", b"x"), Put("b", b"x")]),
    "purge": lambda kv: kv.purge("a"),
    "delete": lambda kv: kv.delete("a", 1),
}
CALLS = READS | WRITES
FAST = BucketOptions(timeout=0.6)
"""Of calls that end in vain; others are made patiently."""
SLOW = BucketOptions(timeout=PATIENCE)
"""Of calls that end at once."""


async def ignore(error: Exception) -> None:
    """An error callback that says nothing."""


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
    for _ in range(600):
        if await kv.get(key) is None:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it does not expire")
