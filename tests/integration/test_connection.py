"""What a connection says when there is no server, no login, no TLS or no JetStream."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.conftest import BINARY
from tests.patience import PATIENCE, at_once

from jskv_saver import JetStreamDocumentStore, LocalServer
from jskv_saver._nats.connection import Connection
from jskv_saver._server_process import free_port
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreUnavailableError,
)

TLS = Path(__file__).parent / "tls"
CERTIFICATE = TLS / "cert.pem"
CONFIG = f'tls {{ cert_file: "{CERTIFICATE}", key_file: "{TLS / "key.pem"}" }}'


async def failure(url: str, **options: Any) -> JskvError:
    with pytest.raises(JskvError) as caught:
        async with JetStreamDocumentStore.from_conn_string(url, **options):
            pass
    return caught.value


@pytest.fixture(params=["", "allow_non_tls: true"], ids=["required", "available"])
def tls_server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    config = f"{CONFIG}\n{request.param}"
    with LocalServer(binary=BINARY, sync_interval="2m", config=config) as server:
        yield server


@asynccontextmanager
async def listener(info: dict[str, Any]) -> AsyncIterator[tuple[int, bytearray]]:
    """A server that says what it is, and keeps what it hears."""
    heard = bytearray()
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        while piece := await reader.read(4096):
            heard.extend(piece)
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard
        await ended.wait()


# -- TLS -----------------------------------------------------------------------------


async def test_a_server_without_tls_is_refused_at_once(own_server: LocalServer) -> None:
    url = own_server.url.replace("nats://", "tls://")
    with at_once():
        error = await failure(url, timeout=PATIENCE)
    assert type(error) is InvalidRequestError
    assert f"tls://127.0.0.1:{own_server.port} offers no TLS" in str(error)
    assert "nothing was sent to it" in str(error)
    assert url.partition("@")[0].removeprefix("tls://") not in str(error)


@pytest.mark.parametrize("how", ["address", "option", "one of several", "first"])
async def test_no_login_travels_in_the_clear(how: str) -> None:
    async with listener({"auth_required": True, "max_payload": 1000}) as (port, heard):
        here = f"127.0.0.1:{port}"
        context = ssl.create_default_context()
        variants: dict[str, tuple[str, dict[str, Any]]] = {
            "address": (f"tls://secret@{here}", {}),
            "option": (f"nats://secret@{here}", {"tls": context}),
            "one of several": (f"nats://secret@{here},tls://secret@{here}", {}),
            "first": (f"tls://secret@{here}", {"tls_handshake_first": True}),
        }
        url, options = variants[how]
        error = await failure(url, timeout=0.5, **options)
    # With the handshake first nats-py waits, and has no reason to give.
    assert how == "first" or "TLS" in str(error)
    assert b"secret" not in heard
    assert b"CONNECT" not in heard


async def test_tls_is_used_where_it_is_asked_for(tls_server: LocalServer) -> None:
    url = tls_server.url.replace("nats://", "tls://")
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    connection = Connection(url, {"tls": context})
    try:
        client: Any = await connection.client(asyncio.get_running_loop().time() + 5)
        writer = client._transport._io_writer
        assert writer.get_extra_info("ssl_object").version().startswith("TLS")
    finally:
        await connection.close()


async def test_a_certificate_that_is_not_known_is_refused(
    tls_server: LocalServer,
) -> None:
    error = await failure(tls_server.url.replace("nats://", "tls://"), timeout=0.5)
    assert type(error) is StoreUnavailableError
    assert f"no TLS with the server at tls://127.0.0.1:{tls_server.port}" in str(error)
    assert "CERTIFICATE_VERIFY_FAILED" in str(error)
    assert "NATS_CA" in str(error)


async def test_the_ca_of_the_environment_is_enough(
    tls_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_CA", str(CERTIFICATE))
    async with JetStreamDocumentStore.from_conn_string(tls_server.url) as store:
        assert await store.collections("x") == []


# -- no server, no login, no JetStream -----------------------------------------------


async def test_without_a_server_it_says_how_to_start_one() -> None:
    port = free_port("127.0.0.1")
    error = await failure(f"nats://secret@127.0.0.1:{port}", timeout=0.3)
    assert type(error) is StoreUnavailableError
    assert str(error).startswith(f"no NATS server at nats://127.0.0.1:{port} ")
    assert "`nats-server -js`" in str(error)
    assert "LocalServer" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ("", "asks for a login, and none was given"),
        ("wrong@", "refused the credentials"),
        ("me:wrong@", "refused the credentials"),
    ],
)
async def test_a_login_that_is_missing_or_wrong(
    own_server: LocalServer, login: str, said: str
) -> None:
    error = await failure(f"nats://{login}127.0.0.1:{own_server.port}")
    assert type(error) is PermissionDeniedError
    assert f"the server at nats://127.0.0.1:{own_server.port} {said}" in str(error)
    assert "wrong" not in str(error)


async def test_a_login_given_as_option_is_a_login(own_server: LocalServer) -> None:
    error = await failure(f"nats://127.0.0.1:{own_server.port}", token="wrong")
    assert "refused the credentials" in str(error)


async def test_without_jetstream_it_says_what_to_do() -> None:
    with LocalServer(binary=BINARY, config="jetstream: false") as server:
        error = await failure(server.url)
        assert type(error) is StoreUnavailableError
        assert f"no JetStream at nats://127.0.0.1:{server.port}" in str(error)
        assert "with -js" in str(error)
        client = await nats.connect(server.url)
        with pytest.raises(StoreUnavailableError, match=f"127.0.0.1:{server.port}"):
            await JetStreamDocumentStore(client).setup()
        await client.close()


async def test_replicas_need_a_cluster(nats_url: str, bucket: str) -> None:
    error = await failure(nats_url, bucket=bucket, replicas=3)
    assert type(error) is InvalidRequestError
    assert "several replicas" in str(error)
    assert "no cluster" in str(error)
