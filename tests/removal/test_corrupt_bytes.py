"""Random damage to stored bytes: an error that names the key, or the right state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from nats.aio.client import Client
from tests.checkpoint.saving import at, listed, put
from tests.soak import SOAK

from jskv_saver import JetStreamDocumentStore, JetStreamSaver
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

TRIALS = 10_000 if SOAK else 300
SEEDS = range(10 if SOAK else 2)


async def _fill(saver: JetStreamSaver) -> None:
    text = "text " * 400
    for n in range(4):
        parent = f"{n - 1}" if n else None
        text += f"{n} " * 500
        values = {"text": text, "n": n, "list": [text[:900], n]}
        await put(saver, f"{n}", values, parent=parent, run_id="run", about="m" * 900)
        writes = [("text", f"{n}"), ("list", [n, text[:2000]])]
        await saver.aput_writes(at(f"{n}"), writes, f"task {n}")
    await saver.aput_writes(at("3"), [("text", "large " * 60_000)], "large")
    await saver.aprune(["t"], keep_last=3)
    await saver.aadmit(at(), "a request")
    await saver.apin("t")


def _flip(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value))
    return value[:at] + bytes([value[at] ^ (1 << rng.randrange(8))]) + value[at + 1 :]


def _overwrite(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value))
    size = rng.randint(1, 64)
    return value[:at] + rng.randbytes(size) + value[at + size :]


def _cut(rng: random.Random, value: bytes) -> bytes:
    return value[: rng.randrange(len(value))]


def _append(rng: random.Random, value: bytes) -> bytes:
    return value + rng.randbytes(rng.randint(1, 64))


def _zeros(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value))
    size = rng.randint(1, 512)
    return value[:at] + bytes(len(value[at : at + size])) + value[at + size :]


def _swap(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value))
    return value[at:] + value[:at]


DAMAGES: list[Callable[[random.Random, bytes], bytes]] = [
    _flip,
    _overwrite,
    _cut,
    _append,
    _zeros,
    _swap,
]


@pytest.mark.timeout(60 if not SOAK else 3600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_damage_is_an_error_that_names_the_key_or_changes_nothing(
    nats_url: str, bucket: str, client: Client, seed: int
) -> None:
    rng = random.Random(seed)
    kv = Bucket(client, bucket)
    async with (
        JetStreamDocumentStore(client, bucket) as store,
        JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver,
    ):
        await _fill(saver)
        reader = JetStreamSaver(store)
        keys = await kv.names([f"{name}.>" for name in RESERVED_COLLECTIONS])
        whole = await _read(JetStreamSaver(store))
        damaged = refused = 0
        for trial in range(TRIALS // len(SEEDS)):
            key = rng.choice(keys)
            entry = await kv.get(key)
            assert entry is not None
            bad = rng.choice(DAMAGES)(rng, entry.value)
            if bad == entry.value:
                continue
            damaged += 1
            await _put(kv, key, bad)
            # One that remembers nothing, or the damage would go unnoticed.
            reader = JetStreamSaver(store)
            found = await _read_or_refused(reader)
            if isinstance(found, list):
                assert found == whole, f"trial {trial} of seed {seed}: {key}"
            else:
                refused += 1
                assert found.key == key, f"trial {trial} of seed {seed}: {found}"
            if trial % 10 == 0:
                report = await reader.averify(settle=0)
                assert any(key in finding.text for finding in report.findings)
                kinds = {finding.kind for finding in report.findings}
                assert kinds & {"corrupt", "unsupported-format"}
            await _put(kv, key, entry.value)
        assert damaged > 100
        # Of what a reader of states does not read (indexes, pins …) nothing is refused.
        assert refused > damaged / 3
        assert await _read(JetStreamSaver(store)) == whole
        assert (await reader.averify(settle=0)).ok


async def _put(kv: Bucket, key: str, value: bytes) -> None:
    """Replace what is stored, and leave it in its place in the order of records."""
    await kv.put(key, value)
    if key.startswith("cp."):
        # The latest checkpoint is what the newest message says.
        entries = sorted(await kv.get_many(["cp.>"]))
        for entry in entries:
            if entry.key > key:
                await kv.put(entry.key, entry.value)


async def _read_or_refused(
    saver: JetStreamSaver,
) -> list[Any] | CorruptDocumentError | UnsupportedFormatError:
    try:
        return await _read(saver)
    except (CorruptDocumentError, UnsupportedFormatError) as exc:
        return exc


async def _read(saver: JetStreamSaver) -> list[Any]:
    """The latest, each by its id, and all as they are listed."""
    states = [await saver.aget_tuple(at())]
    states += [await saver.aget_tuple(at(f"{n}")) for n in range(1, 4)]
    return states + await listed(saver, at(ns=None))
