"""One text of tests, one store of each kind.

A kind is a function from the test's request to an `Open`: each call of that opens a
further handle on the same storage, as another process would.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import pytest
from tests.patience import PATIENCE

from jskv_saver import (
    CollectionSpec,
    DocumentService,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.port import DocumentStore

Open: TypeAlias = Callable[[], AbstractAsyncContextManager[DocumentStore]]


def _memory(request: pytest.FixtureRequest) -> Open:
    store = MemoryDocumentStore()

    @asynccontextmanager
    async def open_() -> AsyncIterator[DocumentStore]:
        yield store

    return open_


def _jetstream(request: pytest.FixtureRequest) -> Open:
    return _at(request.getfixturevalue("nats_url"), request.getfixturevalue("bucket"))


def _plain(request: pytest.FixtureRequest) -> Open:
    """A bucket made elsewhere, without batches."""
    url = request.getfixturevalue("nats_url")
    return _at(url, request.getfixturevalue("plain_bucket"))


def _docker(request: pytest.FixtureRequest) -> Open:
    url = request.getfixturevalue("official_image_url")
    return _at(url, request.getfixturevalue("bucket"))


def _at(url: str, bucket: str) -> Open:

    @asynccontextmanager
    async def open_() -> AsyncIterator[DocumentStore]:
        from jskv_saver.adapters.jetstream.store import JetStreamDocumentStore

        async with JetStreamDocumentStore.from_conn_string(url, bucket=bucket) as store:
            yield store

    return open_


def _remote_memory(request: pytest.FixtureRequest) -> Open:
    """Each handle with a service of its own, all in front of one store."""
    shared = MemoryDocumentStore()

    @asynccontextmanager
    async def storage() -> AsyncIterator[DocumentStore]:
        yield shared

    return _served(request.getfixturevalue("nats_url"), storage)


def _remote_jetstream(request: pytest.FixtureRequest) -> Open:
    url = request.getfixturevalue("nats_url")
    return _served(url, _at(url, request.getfixturevalue("bucket")))


def _served(url: str, storage: Open) -> Open:

    @asynccontextmanager
    async def open_() -> AsyncIterator[DocumentStore]:
        async with (
            storage() as stored,
            DocumentService(stored, url),
            RemoteDocumentStore.from_conn_string(url, timeout=PATIENCE) as store,
        ):
            yield store

    return open_


KINDS = {
    "memory": _memory,
    "jetstream": _jetstream,
    "plain": _plain,
    "remote-memory": _remote_memory,
    "remote-jetstream": _remote_jetstream,
    "docker": _docker,
}


@pytest.fixture(scope="session")
def official_image_url() -> Iterator[str]:
    """The address of a nats-server of the official image, in a container."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    container = (
        DockerContainer("nats:latest")
        .with_command("--jetstream")
        .with_exposed_ports(4222)
        .waiting_for(LogMessageWaitStrategy("Server is ready"))
    )
    with container:
        host, port = container.get_container_host_ip(), container.get_exposed_port(4222)
        yield f"nats://{host}:{port}"


@pytest.fixture(
    params=[
        "memory",
        "jetstream",
        "plain",
        "remote-memory",
        "remote-jetstream",
        pytest.param("docker", marks=pytest.mark.docker),
    ]
)
def open_store(request: pytest.FixtureRequest) -> Open:
    return KINDS[request.param](request)


@pytest.fixture
async def store(open_store: Open) -> AsyncIterator[DocumentStore]:
    async with open_store() as opened:
        yield opened


@pytest.fixture
async def second(
    open_store: Open, store: DocumentStore
) -> AsyncIterator[DocumentStore]:
    """Another handle on the same storage, opened after the first."""
    async with open_store() as opened:
        yield opened


@pytest.fixture
async def docs(store: DocumentStore) -> BoundDocuments:
    """The documents of `owner`, who has the empty collections `notes` and `tags`."""
    bound = BoundDocuments(store, "owner")
    await bound.ensure_collection(CollectionSpec("notes"))
    await bound.ensure_collection(CollectionSpec("tags"))
    return bound
