"""A saver on a connection that can be looked at."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import nats
from nats.aio.client import Client
from tests.checkpoint.saving import put, values

from jskv_saver import JetStreamSaver
from jskv_saver.errors import DocumentTooLargeError, InvalidRequestError


@dataclass(frozen=True)
class Line:
    """A saver, another one on the same bucket, and the first one's connection."""

    saver: JetStreamSaver
    other: JetStreamSaver
    client: Client
    bucket: str

    @property
    def max_payload(self) -> int:
        """The greatest message that the server takes."""
        return self.client.max_payload

    async def keys(self) -> set[str]:
        """All keys of the bucket; the notices of deletions are none."""
        info = await self.client.jetstream().stream_info(
            f"KV_{self.bucket}", subjects_filter=">"
        )
        notices = f"$KV.{self.bucket}.th./"
        subjects = info.state.subjects or ()
        return {subject for subject in subjects if not subject.startswith(notices)}

    async def lives(self) -> None:
        """The connection is the one of the beginning, and serves another thread."""
        assert self.client.is_connected
        assert self.client.stats["reconnects"] == 0
        await put(self.saver, "1", {"x": "alive"}, thread="another")
        assert await values(self.saver, thread="another") == {"x": "alive"}
        await self.saver.adelete_thread("another")


@asynccontextmanager
async def line(url: str, bucket: str) -> AsyncIterator[Line]:
    """Connect once, for both savers."""
    client = await nats.connect(url, allow_reconnect=False)
    async with (
        JetStreamSaver(client, bucket=bucket) as saver,
        JetStreamSaver(client, bucket=bucket) as other,
    ):
        yield Line(saver, other, client, bucket)
    await client.close()


Refusal = DocumentTooLargeError | InvalidRequestError


async def refusal(call: Awaitable[Any]) -> Refusal | None:
    """Why a call was refused; None: it was not."""
    try:
        await call
    except (DocumentTooLargeError, InvalidRequestError) as exc:
        return exc
    return None


def blob(size: int) -> bytes:
    """Bytes in which nothing is twice."""
    return random.Random(size).randbytes(size)


def text(size: int) -> str:
    """Text of so many bytes."""
    return blob(size // 2 + 1).hex()[:size]
