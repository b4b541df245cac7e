"""What encryption costs: bytes and time of a step, with none, with each kind.

    python scripts/encryption_cost.py

A chat grows by a message of about 1 KB a step, beside a channel of 50 KB that does not
change. LangGraph's EncryptedSerializer draws a nonce at each dump, so that a value that
grew has no byte in common with the one before, and is stored whole; what is encrypted
below the increments stays an increment.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from nats.aio.client import Client

from jskv_saver import Encryption, JetStreamSaver, LocalServer

STEPS = 100
WORDS = (
    "the harbour was quiet and the ships lay still while somebody counted them "
    "again, once more for the books and once for the sake of counting "
).split()
KINDS = ("none", "encryption=Encryption(…)", "serde=EncryptedSerializer")


@dataclass
class Cost:
    """Of one kind: what the last steps cost, and all of them."""

    first: float
    last: float
    disk: int
    put: float
    get: float


def options(kind: str) -> dict[str, Any]:
    """How a saver of a kind is made."""
    if kind == KINDS[1]:
        return {"encryption": Encryption(Encryption.generate_key())}
    if kind == KINDS[2]:
        key = b"0123456789abcdef0123456789abcdef"
        return {"serde": EncryptedSerializer.from_pycryptodome_aes(key=key)}
    return {}


def message(n: int) -> AIMessage:
    """About 1 KB of text, different for each number."""
    text = " ".join(WORDS[(n * 7 + i * i) % len(WORDS)] for i in range(170))
    return AIMessage(text, id=f"message {n}")


async def measure(kind: str) -> Cost:
    """Put the chat, step by step, and read it once."""
    with tempfile.TemporaryDirectory() as folder:
        with LocalServer(store_dir=Path(folder), sync_interval="2m") as server:
            client = await nats.connect(server.url)
            async with JetStreamSaver(client, **options(kind)) as saver:
                sizes, put, get = await _chat(saver, client)
            await client.close()
        disk = _on_disk(Path(folder))
    tenth = STEPS // 10
    first = (sizes[tenth] - sizes[0]) / tenth
    last = (sizes[-1] - sizes[-1 - tenth]) / tenth
    return Cost(first, last, disk, put, get)


async def _chat(
    saver: JetStreamSaver, client: Client
) -> tuple[list[int], float, float]:
    sizes: list[int] = []
    config: Any = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}
    messages: list[AIMessage] = []
    took = 0.0
    for n in range(STEPS + 1):
        messages = [*messages, message(n)]
        checkpoint = empty_checkpoint()
        values = {"messages": messages, "manual": "the manual, " * 4_200}
        checkpoint["channel_values"] = dict(values)
        checkpoint["channel_versions"] = {"messages": n + 1, "manual": 1}
        new: Any = {"messages": n + 1} if n else {"messages": 1, "manual": 1}
        begin = time.perf_counter()
        config = await saver.aput(
            config, checkpoint, {"source": "loop", "step": n}, new
        )
        took += time.perf_counter() - begin
        sizes.append(await _stored(client))
    begin = time.perf_counter()
    for _ in range(20):
        found = await saver.aget_tuple({"configurable": {"thread_id": "chat"}})
        assert found is not None
        assert found.checkpoint["channel_values"] == values
    return sizes, took / (STEPS + 1), (time.perf_counter() - begin) / 20


def _on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.blk"))


async def _stored(client: Client) -> int:
    """Bytes of all messages in the bucket, before the server compresses them."""
    info = await client.jetstream().stream_info("KV_jskv")
    return int(info.state.bytes)


def main() -> None:
    """Print a table."""
    print(f"{STEPS} steps; a step adds about {len(message(1).content):,} characters\n")
    print(f"{'':28}{'bytes/step':>24}{'on disk':>12}{'put':>9}{'get':>9}")
    print(f"{'':28}{'first 10':>12}{'last 10':>12}{'(S2)':>12}{'ms':>9}{'ms':>9}")
    for kind in KINDS:
        cost = asyncio.run(measure(kind))
        print(
            f"{kind:28}{cost.first:12,.0f}{cost.last:12,.0f}{cost.disk:12,}"
            f"{cost.put * 1e3:9.2f}{cost.get * 1e3:9.2f}"
        )


if __name__ == "__main__":
    main()
