"""This saver against its own floor: one request of the same bytes to the server."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import nats
from nats.aio.client import Client
from nats.js.api import RawStreamMsg
from scripts.bench.chain import Chain, at
from scripts.bench.run import Bench

from jskv_saver import JetStreamSaver

STEPS = 300
BLOCK = 10
RAW = "raw request"


async def floor(bench: Bench) -> AsyncGenerator[None, None]:
    """A small put, a call for writes, a read by id, each beside the bare request."""
    if bench.name != "jskv":
        return
    raw = await _Raw.connect(bench.place.address["url"])
    try:
        chain = Chain(bench.saver, "floor")
        for step in range(bench.size(STEPS, 3)):
            await _step(bench, chain, raw, warm=step > 0)
            if step % BLOCK == BLOCK - 1:
                yield
    finally:
        await raw.client.close()


async def _step(bench: Bench, chain: Chain, raw: _Raw, *, warm: bool) -> None:
    """Each call, then what it sent once more; the first opens the thread."""
    stream = f"KV_{bench.place.address['bucket']}"
    chain.prepare({"n": chain.steps, "text": bench.texts.text(200)})
    before = time.perf_counter()
    await chain.put()
    put = time.perf_counter()
    message = await raw.last(stream)
    spent = [(("small aput", put - before), await raw.store(message))]
    before = time.perf_counter()
    await chain.write(0, "a small write")
    wrote = time.perf_counter()
    message = await raw.last(stream)
    spent.append((("aput_writes", wrote - before), await raw.store(message)))
    before = time.perf_counter()
    found = await bench.saver.aget_tuple(at("floor", chain.id))
    read = time.perf_counter()
    spent.append((("read by id", read - before), await raw.get(stream, message)))
    bench.check_tuple(found, chain.values, "a checkpoint by id")
    if warm:
        for (line, ours), theirs in spent:
            bench.record(line, ours * 1000)
            bench.results.record(line, RAW, theirs * 1000)


@dataclass
class _Raw:
    """Bare requests of a client of one's own, to a bucket with the same settings."""

    client: Client
    _bucket: str = "floor_raw"
    _sent: int = field(default=0)

    @classmethod
    async def connect(cls, url: str) -> _Raw:
        raw = cls(await nats.connect(url))
        async with JetStreamSaver.from_conn_string(url, bucket=raw._bucket) as saver:
            await saver.setup()
        return raw

    async def last(self, stream: str) -> RawStreamMsg:
        """What was stored last."""
        context = self.client.jetstream()
        info = await context.stream_info(stream)
        return await context.get_msg(stream, info.state.last_seq)

    async def store(self, message: RawStreamMsg) -> float:
        """Seconds to store the same bytes, under a key as long, fenced as well."""
        assert message.subject is not None
        self._sent += 1
        key = message.subject.split(".", 2)[2]
        head = f"$KV.{self._bucket}.{self._sent:06}."
        subject = head + key[max(0, len(head) + len(key) - len(message.subject)) :]
        subject = subject.replace("..", ".x")
        headers = dict(message.headers or {})
        if "Nats-Expected-Last-Subject-Sequence" in headers:
            headers["Nats-Expected-Last-Subject-Sequence"] = "0"
        if "Nats-Expected-Last-Subject-Sequence-Subject" in headers:
            headers["Nats-Expected-Last-Subject-Sequence-Subject"] = subject
        before = time.perf_counter()
        answer = await self.client.request(
            subject, message.data or b"", timeout=5, headers=headers
        )
        spent = time.perf_counter() - before
        assert b'"seq"' in answer.data, answer.data
        return spent

    async def get(self, stream: str, message: RawStreamMsg) -> float:
        """Seconds of one direct get."""
        subject = f"$JS.API.DIRECT.GET.{stream}.{message.subject}"
        before = time.perf_counter()
        answer = await self.client.request(subject, b"", timeout=5)
        spent = time.perf_counter() - before
        assert answer.data == message.data
        return spent
