"""Savers on each store whose documents expire."""

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


@pytest.fixture(params=["memory-encrypted", "jetstream"])
def open_saver(request: pytest.FixtureRequest) -> OpenSaver:
    """Makes savers on one storage, each on a connection of its own."""
    if request.param == "memory-encrypted":
        shared, keys = MemoryDocumentStore(), Encryption(NEW)
        return lambda **options: DocumentCheckpointSaver(
            shared, encryption=keys, **options
        )
    url: str = request.getfixturevalue("nats_url")
    bucket: str = request.getfixturevalue("bucket")

    def open_jetstream(**options: Any) -> DocumentCheckpointSaver:
        store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
        return DocumentCheckpointSaver(store, close_store=True, **options)

    return open_jetstream


@pytest.fixture
async def saver(open_saver: OpenSaver) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver that lives on the test's loop."""
    async with open_saver() as opened:
        yield opened


@pytest.fixture
async def other(open_saver: OpenSaver) -> AsyncIterator[DocumentCheckpointSaver]:
    """A second saver on the same storage."""
    async with open_saver() as opened:
        yield opened
