"""Servers that take messages of up to 64 KB, 1 MB and 8 MB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.conftest import BINARY
from tests.limits.lines import Line, line

from jskv_saver import LocalServer


@pytest.fixture(scope="session", params=[64, 1024, 8192], ids=lambda kb: f"{kb}KiB")
def limited_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server with a `max_payload` of its own."""
    config = f"max_payload: {request.param * 1024}"
    with LocalServer(binary=BINARY, sync_interval="2m", config=config) as server:
        yield server.url
        server.kill()


@pytest.fixture
async def limited(limited_url: str, bucket: str) -> AsyncIterator[Line]:
    async with line(limited_url, bucket) as opened:
        yield opened


@pytest.fixture
async def stock(nats_url: str, bucket: str) -> AsyncIterator[Line]:
    """On a server with the usual `max_payload`."""
    async with line(nats_url, bucket) as opened:
        yield opened
