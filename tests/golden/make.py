"""Makes the golden files of this release: `python -m tests.golden.make VERSION`.

Once for each release: what is there is never made again, because what a release has
written is what later ones must read.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import sys
from pathlib import Path
from typing import Any

from tests.golden.bucket import dump
from tests.golden.content import (
    HOME,
    KEY,
    NAMESPACE,
    fill,
    fill_documents,
    read,
    read_documents,
)

from jskv_saver import Encryption, JetStreamDocumentStore, JetStreamSaver, LocalServer

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "encrypted": {"encryption": Encryption(KEY)},
}


async def make(home: Path) -> None:
    """Write `KIND.jsonl.xz`, a bucket, and what is read of it, `threads.json`."""
    async with LocalServer() as server:
        for kind, options in KINDS.items():
            async with JetStreamSaver.from_conn_string(
                server.url, bucket=kind, namespace=NAMESPACE, **options
            ) as saver:
                await fill(saver)
                _write_bucket(home, kind, await dump(server.url, kind))
                # Of each kind the same.
                _write(home, "threads", await read(saver))
        async with JetStreamDocumentStore.from_conn_string(
            server.url, bucket="documents"
        ) as store:
            await fill_documents(store)
            _write_bucket(home, "documents", await dump(server.url, "documents"))
            _write(home, "documents", await read_documents(store))


def _write_bucket(home: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    (home / f"{kind}.jsonl.xz").write_bytes(lzma.compress(lines.encode()))


def _write(home: Path, name: str, found: Any) -> None:
    text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)
    (home / f"{name}.json").write_text(text + "\n")


def main() -> None:
    """Make them, unless they are there."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.golden.make VERSION")
    home = HOME / sys.argv[1]
    if home.exists():
        sys.exit(f"{home} is there: what a release has written never changes")
    asyncio.run(make(home))


if __name__ == "__main__":
    main()
