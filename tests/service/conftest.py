"""A service over a store in memory, a remote store that asks it, a bare client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client
from tests.service.stores import Gated

from jskv_saver import CollectionSpec, DocumentService, RemoteDocumentStore


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


@pytest.fixture
async def stored() -> Gated:
    """What is behind the service; `owner` has the collection `notes`."""
    store = Gated()
    await store.ensure_collection("owner", CollectionSpec("notes"))
    return store


@pytest.fixture
async def service(nats_url: str, stored: Gated) -> AsyncIterator[DocumentService]:
    async with DocumentService(stored, nats_url) as service:
        yield service


@pytest.fixture
async def remote(
    nats_url: str, service: DocumentService
) -> AsyncIterator[RemoteDocumentStore]:
    async with RemoteDocumentStore.from_conn_string(nats_url) as store:
        yield store
