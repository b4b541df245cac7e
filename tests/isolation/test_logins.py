"""Each way to log in, for a store on JetStream and for one behind a service."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nkeys
import pytest
from tests.conftest import BINARY
from tests.integration.test_connection import CERTIFICATE, TLS
from tests.isolation.operators import Operator, operated, public_of, seed_of
from tests.patience import at_once

from jskv_saver import (
    DocumentService,
    JetStreamDocumentStore,
    LocalServer,
    RemoteDocumentStore,
)
from jskv_saver.errors import PermissionDeniedError, StoreUnavailableError

KNOWN = seed_of(nkeys.PREFIX_BYTE_USER)
USERS = f"""
authorization {{
  users = [{{user: app, password: pw}}, {{nkey: {public_of(KNOWN)}}}]
}}
"""
OPERATOR = Operator()
KEY = TLS / "key.pem"


async def use(url: str, bucket: str, **options: Any) -> None:
    """Put through one of the stores, get through the other, and the reverse."""
    async with (
        JetStreamDocumentStore.from_conn_string(url, bucket=bucket, **options) as near,
        DocumentService(near, url, **options),
        RemoteDocumentStore.from_conn_string(url, **options) as far,
    ):
        await near.put("owner", "cp", "near", {"n": 1})
        assert (await far.get("owner", "cp", "near")).data == {"n": 1}
        await far.put("owner", "cp", "far", {"n": 2})
        assert (await near.get("owner", "cp", "far")).data == {"n": 2}


async def refused(url: str, **options: Any) -> None:
    """Both stores are told so, and at once."""
    stores: list[Any] = [
        JetStreamDocumentStore.from_conn_string(url, **options),
        RemoteDocumentStore.from_conn_string(url, **options),
    ]
    for store in stores:
        with at_once(), pytest.raises(PermissionDeniedError):
            await store.get("owner", "cp", "a")
        await store.close()


@pytest.fixture(scope="module")
def users_server() -> Iterator[LocalServer]:
    with LocalServer(
        binary=BINARY, user="app", password="pw", sync_interval="2m", config=USERS
    ) as server:
        yield server


@pytest.fixture(scope="module")
def operated_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with operated(OPERATOR, tmp_path_factory.mktemp("operator")) as url:
        yield url


async def test_user_and_password(users_server: LocalServer, bucket: str) -> None:
    url = f"nats://127.0.0.1:{users_server.port}"
    await use(url, bucket, user="app", password="pw")
    await refused(url, user="app", password="wrong")


async def test_a_token(nats_server: LocalServer, bucket: str) -> None:
    token, _, address = nats_server.url.removeprefix("nats://").partition("@")
    await use(f"nats://{address}", bucket, token=token)
    await refused(f"nats://{address}", token="wrong")


async def test_an_nkey(users_server: LocalServer, bucket: str, tmp_path: Path) -> None:
    url = f"nats://127.0.0.1:{users_server.port}"
    await use(url, bucket, nkeys_seed_str=KNOWN.decode())
    path = tmp_path / "user.nk"
    path.write_bytes(KNOWN + b"\n")
    await use(url, bucket, nkeys_seed=str(path))
    await refused(url, nkeys_seed_str=seed_of(nkeys.PREFIX_BYTE_USER).decode())


async def test_an_nkey_of_the_environment(
    users_server: LocalServer,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "user.nk"
    path.write_bytes(KNOWN)
    monkeypatch.setenv("NATS_NKEY", str(path))
    await use(f"nats://127.0.0.1:{users_server.port}", bucket)


async def test_a_credentials_file(
    operated_url: str, bucket: str, tmp_path: Path
) -> None:
    known, stranger = tmp_path / "known.creds", tmp_path / "stranger.creds"
    known.write_text(OPERATOR.creds())
    stranger.write_text(Operator().creds())
    await use(operated_url, bucket, user_credentials=str(known))
    await refused(operated_url, user_credentials=str(stranger))


async def test_a_credentials_file_of_the_environment(
    operated_url: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "known.creds"
    path.write_text(OPERATOR.creds())
    monkeypatch.setenv("NATS_CREDS", str(path))
    await use(operated_url, bucket)


async def test_the_permissions_in_a_credentials_file_are_kept(
    operated_url: str, bucket: str, tmp_path: Path
) -> None:
    path = tmp_path / "limited.creds"
    path.write_text(OPERATOR.creds(pub={"deny": ["$KV.>"]}))
    async with JetStreamDocumentStore.from_conn_string(
        operated_url, bucket=bucket, user_credentials=str(path)
    ) as store:
        with pytest.raises(PermissionDeniedError) as caught:
            await store.put("owner", "cp", "a", {"n": 1})
    assert (caught.value.subject or "").startswith(f"$KV.{bucket}.")


async def test_a_client_certificate(bucket: str) -> None:
    files = f'cert_file: "{CERTIFICATE}", key_file: "{KEY}", ca_file: "{CERTIFICATE}"'
    config = f"tls {{ {files}, verify: true }}"
    shown = ssl.create_default_context(cafile=str(CERTIFICATE))
    shown.load_cert_chain(CERTIFICATE, KEY)
    hidden = ssl.create_default_context(cafile=str(CERTIFICATE))
    server = LocalServer(binary=BINARY, sync_interval="2m", config=config)
    async with server:
        url = server.url.replace("nats://", "tls://")
        await use(url, bucket, tls=shown)
        for kind in (JetStreamDocumentStore, RemoteDocumentStore):
            store: Any = kind.from_conn_string(url, timeout=0.4, tls=hidden)
            with pytest.raises(StoreUnavailableError):
                await store.get("owner", "cp", "a")
            await store.close()
