"""Savers on each store, asynchronous and blocking.

The kinds that `tests/checkpoint` has are `memory` and `jetstream`; a test that is
taken over from there runs on the others alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.checkpoint.conftest import other, saver
from tests.checkpoint.saving import OpenSaver
from tests.faults.blocking import Blocking

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    MemoryDocumentStore,
)

__all__ = ["kind", "open_saver", "other", "saver"]


@pytest.fixture(params=["memory", "jetstream", "plain"])
def kind(request: pytest.FixtureRequest) -> str:
    """Store and face: `plain` is a bucket that nats-py made, without batches."""
    kind: str = request.param
    return kind


@pytest.fixture
def open_saver(kind: str, request: pytest.FixtureRequest) -> OpenSaver:
    """Makes savers on one storage, each on a connection of its own."""
    store_kind, _, face = kind.partition(" ")
    if store_kind == "memory":
        shared = MemoryDocumentStore()
    else:
        url: str = request.getfixturevalue("nats_url")
        plain = store_kind == "plain"
        bucket: str = request.getfixturevalue("plain_bucket" if plain else "bucket")

    def open_(**options: Any) -> Any:
        if store_kind == "memory":
            saver = DocumentCheckpointSaver(shared, **options)
        else:
            store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
            saver = DocumentCheckpointSaver(store, close_store=True, **options)
        return Blocking(saver) if face else saver

    return open_
