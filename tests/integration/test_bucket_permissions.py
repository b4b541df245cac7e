"""A bucket whose user may not do everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from tests.integration.buckets import SLOW, WRITES, ignore
from tests.patience import PATIENCE, at_once

from jskv_saver import LocalServer
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.errors import PermissionDeniedError

PERMISSIONS = """
authorization {
  users = [
    {user: admin, password: pw}
    {user: limited, password: pw, permissions: {
      publish: {deny: ["$KV.secret.>", "$KV.*.no.>", "$KV.*.UPPER",
                       "$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.PURGE.>",
                       "$JS.API.INFO"]}
    }}
    {user: reader, password: pw, permissions: {
      publish: ["$JS.API.STREAM.INFO.>", "$JS.API.DIRECT.GET.>"]
    }}
    {user: deaf, password: pw, permissions: {subscribe: "_INBOX_deaf.>"}}
    {user: blind, password: pw, permissions: {publish: {deny: "$JS.>"}}}
  ]
}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalServer]:
    """A server whose users may not do everything."""
    with LocalServer(
        user="admin", password="pw", sync_interval="2m", config=PERMISSIONS
    ) as server:
        yield server


def as_user(server: LocalServer, user: str) -> str:
    return f"nats://{user}:pw@127.0.0.1:{server.port}"


@pytest.fixture(params=["own", "given"])
async def source(
    request: pytest.FixtureRequest, guarded: LocalServer
) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
    """Of a user: an address, or a connected client."""
    clients: list[Client] = []

    async def make(user: str) -> Any:
        url = as_user(guarded, user)
        if request.param == "own":
            return url
        clients.append(await nats.connect(url, error_cb=ignore))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


Source = Callable[[str], Awaitable[Any]]


class TestPermissions:
    async def test_a_key_that_is_refused(self, source: Source, bucket: str) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        kv = Bucket(await source("limited"), bucket, SLOW)
        await kv.put("yes", b"x")
        with at_once():
            for _ in range(2):
                with pytest.raises(PermissionDeniedError) as caught:
                    await kv.put("no.1", b"x")
                assert caught.value.subject == f"$KV.{bucket}.no.1"
            # nats-py tells the subject in lower case.
            with pytest.raises(PermissionDeniedError) as caught:
                await kv.put("UPPER", b"x")
            assert caught.value.subject == f"$KV.{bucket}.UPPER"
            with pytest.raises(PermissionDeniedError):
                await kv.purge("yes")
        assert await kv.get("yes") is not None
        assert await admin.names(["no.>"]) == []
        await kv.close()
        await admin.close()

    @pytest.mark.parametrize("failing", range(3))
    async def test_a_batch_with_a_key_that_is_refused(
        self, source: Source, bucket: str, failing: int
    ) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        kv = Bucket(await source("limited"), bucket)
        writes = [Put(f"a.{n}", b"x") for n in range(3)]
        writes[failing] = Put("no.1", b"x")
        await kv.open()
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.put_many(writes)
        assert caught.value.subject == f"$KV.{bucket}.no.1"
        # The refusal of the last one overtakes the others.
        async with asyncio.timeout(PATIENCE):
            while len(names := await admin.names(["a.*"])) < failing:
                pass
        assert names == [f"a.{n}" for n in range(failing)]
        await kv.close()
        await admin.close()

    async def test_a_reader(self, source: Source, bucket: str) -> None:
        admin = Bucket(await source("admin"), bucket)
        await admin.put("a", b"x")
        kv = Bucket(await source("reader"), bucket)
        assert await kv.get("a") is not None
        assert len(await kv.get_many(["a"])) == 1
        assert await kv.names(["a"]) == ["a"]
        assert await kv.last("a") is not None
        for call in WRITES.values():
            with pytest.raises(PermissionDeniedError):
                await call(kv)
        await kv.close()
        await admin.close()

    async def test_a_bucket_that_may_not_be_made(
        self, source: Source, bucket: str
    ) -> None:
        kv = Bucket(await source("limited"), bucket)
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.put("a", b"x")
        assert caught.value.subject == f"$JS.API.STREAM.CREATE.KV_{bucket}"
        admin = Bucket(await source("admin"), bucket)
        await admin.open()
        # It is there now, and no rights of an administrator are needed.
        await kv.put("a", b"x")
        await kv.close()
        await admin.close()

    async def test_no_right_to_ask(self, source: Source, bucket: str) -> None:
        kv = Bucket(await source("blind"), bucket)
        with pytest.raises(PermissionDeniedError) as caught:
            await kv.get("a")
        assert caught.value.subject == f"$JS.API.STREAM.INFO.KV_{bucket}"
        await kv.close()

    async def test_no_right_to_hear_an_answer(
        self, source: Source, guarded: LocalServer, bucket: str
    ) -> None:
        kv = Bucket(await source("deaf"), bucket, SLOW)
        with at_once():
            for _ in range(2):
                with pytest.raises(PermissionDeniedError, match="_INBOX"):
                    await kv.get("a")
        await kv.close()
        prefix = {"inbox_prefix": "_INBOX_deaf"}
        kv = Bucket(as_user(guarded, "deaf"), bucket, connect=prefix)
        await kv.put_many([Put("a", b"x"), Put("b", b"y")])
        assert len(await kv.get_many(["a", "b"])) == 2
        await kv.close()

    @pytest.mark.parametrize("login", ["admin:wrong", "nobody:pw", ""])
    async def test_wrong_credentials(
        self, guarded: LocalServer, bucket: str, login: str
    ) -> None:
        at = f"{login}@" if login else ""
        kv = Bucket(f"nats://{at}127.0.0.1:{guarded.port}", bucket, SLOW)
        with at_once(), pytest.raises(PermissionDeniedError):
            await kv.open()
        await kv.close()

    async def test_environment(
        self, guarded: LocalServer, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NATS_URL", f"nats://127.0.0.1:{guarded.port}")
        monkeypatch.setenv("NATS_USER", "admin")
        monkeypatch.setenv("NATS_PASSWORD", "pw")
        kv = Bucket(bucket=bucket)
        await kv.put("a", b"x")
        await kv.close()
        wrong = Bucket(None, bucket, connect={"user": "admin", "password": "wrong"})
        with pytest.raises(PermissionDeniedError):
            await wrong.open()
        await wrong.close()
