"""Key and credentials files that are none are named before anything is sent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nkeys
import pytest
from nats.aio.client import RawCredentials
from tests.conftest import BINARY
from tests.isolation.operators import Operator, public_of, seed_of
from tests.patience import PATIENCE, at_once

from jskv_saver import JetStreamDocumentStore, LocalServer, RemoteDocumentStore
from jskv_saver.errors import InvalidRequestError

SEED = seed_of(nkeys.PREFIX_BYTE_USER)
CREDS = Operator().creds()
TOKEN, KEY = CREDS.split("\n\n")
USERS = f"""
authorization {{
  users = [{{user: app, password: pw}}, {{nkey: {public_of(SEED)}}}]
}}
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a server that has keys to be signed with."""
    with LocalServer(
        binary=BINARY, user="app", password="pw", sync_interval="2m", config=USERS
    ) as server:
        yield f"nats://127.0.0.1:{server.port}"


async def told(url: str, **options: Any) -> str:
    """What both stores say, at once."""
    said = set()
    for kind in (JetStreamDocumentStore, RemoteDocumentStore):
        store: Any = kind.from_conn_string(url, timeout=PATIENCE, **options)
        with at_once(), pytest.raises(InvalidRequestError) as caught:
            await store.get("owner", "cp", "a")
        await store.close()
        said.add(str(caught.value))
    (text,) = said
    return text


@pytest.mark.parametrize("option", ["user_credentials", "nkeys_seed"])
async def test_a_file_that_is_not_there(url: str, option: str, tmp_path: Path) -> None:
    path = tmp_path / "nope"
    text = await told(url, **{option: str(path)})
    assert f"{str(path)!r}" in text
    assert "No such file" in text


@pytest.mark.parametrize(
    ("content", "missing"),
    [
        ("hello\n", "BEGIN NATS USER JWT"),
        ("", "BEGIN NATS USER JWT"),
        (KEY, "BEGIN NATS USER JWT"),
        (TOKEN, "BEGIN USER NKEY SEED"),
        (TOKEN + "\n-----BEGIN USER NKEY SEED-----", "BEGIN USER NKEY SEED"),
        (CREDS.replace("\nSU", "\nSX"), "no nkey seed"),
    ],
    ids=["other", "empty", "no token", "no seed", "cut", "wrong seed"],
)
@pytest.mark.parametrize("as_text", [False, True])
async def test_a_credentials_file_that_is_none(
    url: str, content: str, missing: str, as_text: bool, tmp_path: Path
) -> None:
    path = tmp_path / "user.creds"
    path.write_text(content)
    # The client would look for the end of it for ever, on the loop of everybody.
    given = RawCredentials(content) if as_text else path
    text = await told(url, user_credentials=given)
    assert missing in text
    for line in content.splitlines():
        assert "-----" in line or line in ("", "hello") or line not in text


@pytest.mark.parametrize(
    "content", ["", "hello", SEED.decode()[:-3]], ids=["empty", "other", "cut"]
)
async def test_a_seed_that_is_none(url: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "user.nk"
    path.write_text(content)
    assert "no nkey seed" in await told(url, nkeys_seed=str(path))
    text = await told(url, nkeys_seed_str=content)
    assert "no nkey seed" in text
    assert not content or content not in text


async def test_a_pair_of_files(url: str, tmp_path: Path) -> None:
    token, key = tmp_path / "user.jwt", tmp_path / "user.nk"
    token.write_text("x.y.z")
    key.write_text("hello")
    text = await told(url, user_credentials=(str(token), str(key)))
    assert f"{str(key)!r} has no nkey seed" in text
    text = await told(url, user_credentials=(str(tmp_path / "nope"), str(key)))
    assert "No such file" in text


def _nkey() -> dict[str, Any]:
    return {"nkeys_seed_str": SEED.decode()}


def _creds() -> dict[str, Any]:
    return {"user_credentials": RawCredentials(CREDS)}


@pytest.mark.parametrize("options", [_nkey, _creds])
async def test_without_the_package_that_signs(
    url: str, options: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nkeys", None)
    assert 'pip install "jskv-saver[nkeys]"' in await told(url, **options())


async def test_a_file_that_comes_later_is_found(url: str, tmp_path: Path) -> None:
    path = tmp_path / "user.nk"
    store = JetStreamDocumentStore.from_conn_string(
        url, bucket="later", nkeys_seed=str(path)
    )
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(InvalidRequestError):
            await store.put("owner", "cp", "a", {"n": 1})
        path.write_bytes(SEED)
        await store.put("owner", "cp", "a", {"n": 1})
        await store.close()
