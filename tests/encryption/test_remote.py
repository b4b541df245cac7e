"""Encryption from end to end: the service and what is behind it see no field."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.checkpoint.conformance import asynchronous, conform
from tests.checkpoint.saving import OpenSaver
from tests.encryption.keys import NEW
from tests.encryption.stored import documents, everything, fill

from jskv_saver import (
    DocumentCheckpointSaver,
    DocumentService,
    Encryption,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.errors import EncryptionError


@pytest.fixture
async def behind(nats_url: str) -> AsyncIterator[MemoryDocumentStore]:
    """The store behind a service."""
    store = MemoryDocumentStore()
    async with DocumentService(store, nats_url):
        yield store


@pytest.fixture
def open_saver(nats_url: str, behind: MemoryDocumentStore) -> OpenSaver:
    def open_(**options: Any) -> DocumentCheckpointSaver:
        remote = RemoteDocumentStore.from_conn_string(nats_url)
        options = {"encryption": Encryption(NEW)} | options
        return DocumentCheckpointSaver(remote, close_store=True, **options)

    return open_


async def test_all_81_tests_pass_over_the_service(open_saver: OpenSaver) -> None:
    await conform(asynchronous(open_saver))


async def test_the_service_sees_names_only(
    open_saver: OpenSaver, behind: MemoryDocumentStore
) -> None:
    async with open_saver() as saver:
        await fill(saver)
        expected = await everything(saver)
    fields = {name for data in (await documents(behind)).values() for name in data}
    assert fields == {"sealed"}
    async with DocumentCheckpointSaver(behind, encryption=Encryption(NEW)) as near:
        assert await everything(near) == expected
    async with open_saver(encryption=None) as stranger:
        with pytest.raises(EncryptionError, match="no key was given"):
            await everything(stranger)
