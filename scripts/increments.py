"""Prints what increments cost: bytes, runs and time, on three kinds of value.

And what is stored of a thread whose steps make such a value: with UUIDs as ids, where
records bring their few new bytes themselves, and with other ids, where they do not.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ormsgpack
from langgraph.checkpoint.base import Checkpoint

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.increments import Fresh, Run, plan
from jskv_saver.document.model import Document, ReadKey, Reads, Write

Step = Callable[[list[dict[str, str]]], list[dict[str, str]]]
STEPS = 450


def main() -> None:
    """Print one line for each kind."""
    rng = random.Random(1)

    def message() -> dict[str, str]:
        return {"id": rng.randbytes(8).hex(), "content": rng.randbytes(300).hex()}

    def grow(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*messages, message()]

    def window(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*messages, message()][-40:]

    def edit(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        edited = list(messages) or [message() for _ in range(40)]
        edited[rng.randrange(len(edited))] = message()
        return edited

    for name, step in (("growing", grow), ("window of 40", window), ("edited", edit)):
        print(f"{name:14}{measure(step)}")
        for how, make in (("brought", uuid_of), ("apart", text_of)):
            print(f"  {how:12}{asyncio.run(stored(step, make))}")


def uuid_of(number: int) -> str:
    """An id of a checkpoint whose record may bring a part."""
    return f"00000000-0000-0000-0000-{number:012}"


def text_of(number: int) -> str:
    """An id of a checkpoint whose record brings none."""
    return f"{number:012}"


class Counting(MemoryDocumentStore):
    """Counts what is stored, and what is read."""

    messages = size = read = bytes_read = 0

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        """As the store, counted."""
        writes = list(writes)
        self.messages += len(writes)
        self.size += sum(_size(data) for _, _, data, _ in writes)
        return await super().put_many(namespace, writes, exact=exact)

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        """As the store, counted."""
        found = await super().get_many(namespace, reads)
        self.read += len(found)
        self.bytes_read += sum(_size(each.data) for each in found.values())
        return found


def _size(data: Mapping[str, Any]) -> int:
    return sum(len(field) for field in data.values())


async def stored(step: Step, id_of: Callable[[int], str]) -> str:
    """Store a checkpoint for each of `STEPS` steps, then read the latest."""
    store = Counting()
    messages: list[dict[str, str]] = []
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    latest = config
    async with DocumentCheckpointSaver(store) as saver:
        for number in range(STEPS):
            messages = step(messages)
            version = {"messages": number + 1}
            made = Checkpoint(
                v=4,
                id=id_of(number),
                ts="2026-01-01T00:00:00+00:00",
                channel_values={"messages": messages},
                channel_versions=dict(version),
                versions_seen={},
                updated_channels=["messages"],
            )
            meta: Any = {"source": "loop", "step": number}
            latest = await saver.aput(latest, made, meta, dict(version))
        written = store.messages, store.size
        store.read = store.bytes_read = 0
        async with DocumentCheckpointSaver(store) as reader:
            found = await reader.aget_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages
    return (
        f"{written[0] / STEPS:.2f} messages a put, {written[1]:>9,} B; the latest is "
        f"read from {store.read} documents of {store.bytes_read:,} B"
    )


def measure(step: Step) -> str:
    """Follow a value through `STEPS` steps."""
    messages: list[dict[str, str]] = []
    old, runs = b"", list[Run]()
    distinct: set[bytes] = set()
    whole = stored = most = 0
    spent = 0.0
    for number in range(STEPS):
        messages = step(messages)
        distinct |= {ormsgpack.packb(message) for message in messages}
        new = ormsgpack.packb(messages)
        started = time.perf_counter()
        pieces = plan(old, runs, new)
        spent += time.perf_counter() - started
        old, runs, fresh = new, [], 0
        for piece in pieces:
            if isinstance(piece, Fresh):
                length = piece.end - piece.start
                runs.append(Run(number.to_bytes(8, "big"), fresh, length))
                fresh += length
            else:
                runs.append(piece)
        whole += len(new)
        stored += fresh
        most = max(most, len(runs))
    size = sum(map(len, distinct))
    return (
        f"distinct {size:>9,} B, stored {stored:>9,} B ({stored / size:.1f}x), "
        f"whole each step {whole:>11,} B, at most {most} runs, "
        f"{spent / STEPS * 1e6:.0f} us a step"
    )


if __name__ == "__main__":
    main()
