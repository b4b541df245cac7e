"""What each release has written, this one reads."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoint.saving import at, get, put
from tests.golden.bucket import dump, restore
from tests.golden.content import HOME, NAMESPACE, THREADS, read, read_documents
from tests.golden.make import KINDS

from jskv_saver import JetStreamDocumentStore, JetStreamSaver

RELEASES = sorted(
    path.name for path in HOME.iterdir() if (path / "threads.json").exists()
)


def _stored(release: str, kind: str) -> tuple[list[dict[str, Any]], Any]:
    home: Path = HOME / release
    lines = lzma.decompress((home / f"{kind}.jsonl.xz").read_bytes()).decode()
    rows = [json.loads(line) for line in lines.splitlines()]
    name = "documents" if kind == "documents" else "threads"
    return rows, json.loads((home / f"{name}.json").read_text())


def test_there_are_golden_files() -> None:
    assert RELEASES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", RELEASES)
async def test_threads_are_read_as_they_were_written(
    nats_url: str, bucket: str, release: str, kind: str
) -> None:
    rows, expected = _stored(release, kind)
    options = {"bucket": bucket, "namespace": NAMESPACE, **KINDS[kind]}
    async with JetStreamSaver.from_conn_string(nats_url, **options) as saver:
        await restore(nats_url, bucket, rows)
        assert [
            (r["seq"], r["key"], r["data"]) for r in await dump(nats_url, bucket)
        ] == [(r["seq"], r["key"], r["data"]) for r in rows]
        assert await read(saver) == expected
        report = await saver.averify(settle=0)
        assert report.findings == ()
    # And gone on with, pruned, and deleted to the last key.
    async with JetStreamSaver.from_conn_string(nats_url, **options) as saver:
        for thread in THREADS:
            latest = await get(saver, thread=thread)
            id = latest.checkpoint["id"]
            await put(saver, f"{id}-on", {"n": "new"}, parent=id, thread=thread)
            state = (await get(saver, thread=thread)).checkpoint["channel_values"]
            assert state == {"n": "new"}
        await saver.aprune(THREADS)
        for thread in THREADS:
            await saver.adelete_thread(thread)
            assert await saver.aget_tuple(at(thread=thread)) is None
    assert [
        row["key"]
        for row in await dump(nats_url, bucket)
        if "KV-Operation" not in _headers(row)
    ] == []


@pytest.mark.parametrize("release", RELEASES)
async def test_documents_are_read_as_they_were_written(
    nats_url: str, bucket: str, release: str
) -> None:
    rows, expected = _stored(release, "documents")
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as store:
        await store.collections(NAMESPACE)
        await restore(nats_url, bucket, rows)
        assert await read_documents(store) == expected


def _headers(row: dict[str, Any]) -> str:
    return base64.b64decode(row["hdrs"]).decode()
