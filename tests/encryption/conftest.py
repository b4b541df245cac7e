"""Savers on each store, with encryption unless told otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver
from tests.encryption.keys import NEW

from jskv_saver import (
    DocumentCheckpointSaver,
    Encryption,
    JetStreamDocumentStore,
    MemoryDocumentStore,
)


@pytest.fixture(params=["memory", "jetstream"])
def open_saver(request: pytest.FixtureRequest) -> OpenSaver:
    """Makes savers on one storage, each on a connection and with keys of its own."""
    if request.param == "memory":
        shared = MemoryDocumentStore()

        def open_memory(**options: Any) -> DocumentCheckpointSaver:
            return DocumentCheckpointSaver(shared, **_encrypted(options))

        return open_memory
    url: str = request.getfixturevalue("nats_url")
    bucket: str = request.getfixturevalue("bucket")

    def open_jetstream(**options: Any) -> DocumentCheckpointSaver:
        store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
        return DocumentCheckpointSaver(store, close_store=True, **_encrypted(options))

    return open_jetstream


def _encrypted(options: dict[str, Any]) -> dict[str, Any]:
    return {"encryption": Encryption(NEW)} | options


@pytest.fixture
async def saver(open_saver: OpenSaver) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver that lives on the test's loop."""
    async with open_saver() as opened:
        yield opened
