"""A server that asks its clients for a certificate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import BINARY
from tests.integration.test_connection import CERTIFICATE, TLS, failure

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import StoreUnavailableError

KEY = TLS / "key.pem"


@pytest.fixture
def strict_server() -> Iterator[LocalServer]:
    files = f'cert_file: "{CERTIFICATE}", key_file: "{KEY}", ca_file: "{CERTIFICATE}"'
    config = f"tls {{ {files}, verify: true }}"
    with LocalServer(binary=BINARY, sync_interval="2m", config=config) as server:
        yield server


async def test_the_certificate_of_the_environment_is_shown(
    strict_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_CA", str(CERTIFICATE))
    monkeypatch.setenv("NATS_CERT", str(CERTIFICATE))
    monkeypatch.setenv("NATS_KEY", str(KEY))
    async with JetStreamSaver.from_conn_string(strict_server.url) as saver:
        assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is None


async def test_without_one_there_is_no_way_in(
    strict_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_CA", str(CERTIFICATE))
    error = await failure(strict_server.url, timeout=1.0)
    assert type(error) is StoreUnavailableError
