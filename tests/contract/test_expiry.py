"""Documents that a store removes in its own time, where it can."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from nats.aio.client import Client
from tests.contract.conftest import KINDS, Open
from tests.patience import PATIENCE

from jskv_saver import JetStreamDocumentStore
from jskv_saver.document.port import DocumentStore, ExpiresDocuments
from jskv_saver.errors import (
    DocumentNotFoundError,
    InvalidRequestError,
    UnsuitableBucketError,
    VersionConflictError,
)

ID = ("agent", "t", "holder")


@pytest.fixture(params=["memory", "jetstream", "remote-memory", "remote-jetstream"])
def open_store(request: pytest.FixtureRequest) -> Open:
    return KINDS[request.param](request)


@pytest.fixture
def expiring(store: DocumentStore) -> ExpiresDocuments:
    assert isinstance(store, ExpiresDocuments)
    return store


async def until_gone(store: DocumentStore, id: Any = ID) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await store.get("owner", "ls", id)
            except DocumentNotFoundError:
                return
            await asyncio.sleep(0.02)


async def test_what_expires_is_gone_and_may_be_created_again(
    store: DocumentStore, expiring: ExpiresDocuments
) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    put = await expiring.put_expiring("owner", "ls", ID, {"n": 1}, ttl=1, if_version=0)
    assert (await store.get("owner", "ls", ID)).data == {"n": 1}
    with pytest.raises(VersionConflictError):
        await expiring.put_expiring("owner", "ls", ID, {"n": 2}, ttl=1, if_version=0)
    # Each put has a time of its own, or none.
    stays = await expiring.put_expiring("owner", "ls", ("a", "b"), {}, ttl=1)
    await store.put("owner", "ls", ("a", "b"), {}, if_version=stays.version)
    longer = await expiring.put_expiring("owner", "ls", ("a", "c"), {}, ttl=1)
    await expiring.put_expiring(
        "owner", "ls", ("a", "c"), {}, ttl=PATIENCE, if_version=longer.version
    )
    await until_gone(store)
    assert loop.time() - begin >= 1
    assert list(await store.ids("owner", "ls")) == [("a", "b"), ("a", "c")]
    assert await store.get_many("owner", [("ls", ID)]) == {}
    with pytest.raises(VersionConflictError):
        await expiring.put_expiring("owner", "ls", ID, {}, ttl=1, if_version=1)
    again = await expiring.put_expiring("owner", "ls", ID, {}, ttl=1.5, if_version=0)
    assert again.version > put.version


@pytest.mark.parametrize("ttl", [0, 0.999, -1, math.inf, math.nan, "1", None, True])
async def test_a_time_that_is_none_is_refused(
    store: DocumentStore, expiring: ExpiresDocuments, ttl: Any
) -> None:
    with pytest.raises(InvalidRequestError, match="ttl must be a number of seconds"):
        await expiring.put_expiring("owner", "ls", ID, {}, ttl=ttl)
    assert list(await store.ids("owner", "ls")) == []


async def test_documents_of_users_do_not_expire(expiring: ExpiresDocuments) -> None:
    with pytest.raises(InvalidRequestError, match="do not expire"):
        await expiring.put_expiring("owner", "notes", ID, {}, ttl=1)


async def test_a_bucket_where_nothing_expires_is_named(
    client: Client, bucket: str
) -> None:
    await client.jetstream().add_stream(
        name=f"KV_{bucket}",
        subjects=[f"$KV.{bucket}.>"],
        max_msgs_per_subject=1,
        discard="new",
        allow_direct=True,
    )
    async with JetStreamDocumentStore(client, bucket=bucket) as store:
        with pytest.raises(UnsuitableBucketError, match="allow_msg_ttl") as caught:
            await store.put_expiring("owner", "ls", ID, {}, ttl=1)
        assert caught.value.setting == "allow_msg_ttl"
        assert list(await store.ids("owner", "ls")) == []
