"""What `nats service ls/info/stats` shows, and how several servers share the load."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.micro.service import ServiceInfo, ServicePing, ServiceStats
from tests.patience import PATIENCE, at_once, until
from tests.service.stores import Gated

from jskv_saver import (
    DocumentService,
    JetStreamDocumentStore,
    LocalServer,
    RemoteDocumentStore,
)
from jskv_saver._nats.settings import package_version
from jskv_saver.adapters.wire.endpoints import ENDPOINTS
from jskv_saver.errors import (
    BucketNotFoundError,
    DocumentNotFoundError,
    InvalidRequestError,
    StoreClosedError,
    StoreUnavailableError,
)


async def discover(client: Client, subject: str, count: int) -> list[dict[str, Any]]:
    """So many answers, as the command `nats service` collects them."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    await client.publish(subject, reply=inbox)
    answers = [await subscription.next_msg(timeout=PATIENCE) for _ in range(count)]
    await subscription.unsubscribe()
    return [json.loads(msg.data) for msg in answers]


@pytest.fixture
async def three(nats_url: str, stored: Gated) -> AsyncIterator[list[DocumentService]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                DocumentService(
                    stored, nats_url, name="docs", metadata={"bucket": "mine"}
                )
            )
            for _ in range(3)
        ]


async def test_each_server_shows_itself(
    client: Client, three: list[DocumentService]
) -> None:
    ids = {service.id for service in three}
    for subject in ("$SRV.PING", "$SRV.PING.docs"):
        pings = [
            ServicePing.from_dict(each) for each in await discover(client, subject, 3)
        ]
        assert {ping.id for ping in pings} == ids
        assert {ping.name for ping in pings} == {"docs"}
        assert {ping.version for ping in pings} == {package_version()}
    [only] = await discover(client, f"$SRV.INFO.docs.{three[0].id}", 1)
    info = ServiceInfo.from_dict(only)
    assert info.id == three[0].id
    assert info.description
    assert info.metadata == {"bucket": "mine"}
    assert {each.name: each.subject for each in info.endpoints} == {
        name: f"jskv.v1.*.{name}" for name in ENDPOINTS
    }
    assert {each.queue_group for each in info.endpoints} == {"jskv"}


async def test_the_load_is_shared_and_counted(
    client: Client, nats_url: str, three: list[DocumentService]
) -> None:
    async with RemoteDocumentStore.from_conn_string(nats_url) as store:
        await asyncio.gather(
            *(store.put("owner", "notes", str(n), {}) for n in range(300))
        )
        for _ in range(5):
            with pytest.raises(DocumentNotFoundError):
                await store.get("owner", "notes", "nope")
    stats = [
        ServiceStats.from_dict(each)
        for each in await discover(client, "$SRV.STATS.docs", 3)
    ]
    puts = [each for one in stats for each in one.endpoints if each.name == "put"]
    gets = [each for one in stats for each in one.endpoints if each.name == "get"]
    assert sum(each.num_requests for each in puts) == 300
    assert min(each.num_requests for each in puts) > 30
    assert sum(each.num_errors for each in puts) == 0
    assert all(each.processing_time > 0 for each in puts)
    assert all(
        each.average_processing_time == each.processing_time // each.num_requests
        for each in puts
    )
    assert sum(each.num_errors for each in gets) == 5
    assert {each.last_error for each in gets} <= {"", "410: DocumentNotFoundError"}


async def test_none_is_lost_when_one_of_them_stops(
    nats_url: str, stored: Gated, three: list[DocumentService]
) -> None:
    async with RemoteDocumentStore.from_conn_string(
        nats_url, timeout=PATIENCE
    ) as store:
        await store.collections("owner")
        stored.gate.clear()
        before = [
            asyncio.ensure_future(store.put("owner", "notes", f"a{n}", {}))
            for n in range(200)
        ]
        # What one caller may have.
        await until(lambda: len(stored.begun) == 3 * 36)
        stopping = asyncio.ensure_future(three[0].stop())
        after = [
            asyncio.ensure_future(store.put("owner", "notes", f"b{n}", {}))
            for n in range(200)
        ]
        # Long after the server has said that nothing more will come.
        await asyncio.sleep(0.1)
        assert not stopping.done()
        stored.gate.set()
        await stopping
        await asyncio.gather(*before, *after)
        assert len(await store.ids("owner", "notes")) == 400


async def test_none_is_lost_on_the_way_to_one_that_stops(
    nats_url: str, stored: Gated, three: list[DocumentService]
) -> None:
    ending, done = asyncio.Event(), 0

    async def work(store: RemoteDocumentStore, number: int) -> None:
        nonlocal done
        turn = 0
        while not ending.is_set():
            await store.put("owner", "notes", f"{number}-{turn}", {})
            turn += 1
            done += 1

    async with (
        DocumentService(stored, nats_url) as rest,
        RemoteDocumentStore.from_conn_string(nats_url, timeout=PATIENCE) as store,
    ):
        await store.collections("owner")
        workers = [asyncio.ensure_future(work(store, n)) for n in range(40)]
        for service in three:
            before = done
            await until(lambda before=before: done > before + 200)  # type: ignore[misc]
            await service.stop()
        ending.set()
        await asyncio.gather(*workers)
        assert len(await store.ids("owner", "notes")) == done
        assert rest.id


async def test_after_the_last_one_stopped_nobody_listens(
    nats_url: str, client: Client, stored: Gated
) -> None:
    service = DocumentService(stored, client)
    await service.start()
    async with RemoteDocumentStore.from_conn_string(nats_url) as store:
        assert await store.collections("owner") == ["notes"]
        await service.stop()
        await service.stop()
        with pytest.raises(StoreUnavailableError, match="nobody listens"):
            await store.collections("owner")
        assert client.is_connected
        with pytest.raises(nats.errors.NoRespondersError):
            await client.request("$SRV.PING", timeout=1)
        with pytest.raises(StoreClosedError):
            await service.start()


async def test_what_takes_too_long_at_the_end_is_given_up(
    nats_url: str, stored: Gated
) -> None:
    service = DocumentService(stored, nats_url, drain_timeout=0.1)
    await service.start()
    async with RemoteDocumentStore.from_conn_string(nats_url, timeout=1) as store:
        await store.collections("owner")
        stored.gate.clear()
        lost = [
            asyncio.ensure_future(store.put("owner", "notes", f"{n}", {}))
            for n in range(40)
        ]
        await until(lambda: len(stored.begun) == 36)
        await service.stop()
        # Those who waited for a place were never begun, not then either.
        assert len(stored.given_up) == len(stored.begun) == 36
        for each in lost:
            with pytest.raises(TimeoutError):
                await each


async def test_one_that_cannot_start_leaves_no_connection(nats_url: str) -> None:
    store = JetStreamDocumentStore.from_conn_string(
        nats_url, bucket="none", create=False
    )
    service = DocumentService(store, nats_url)
    with pytest.raises(BucketNotFoundError):
        await service.start()
    assert service._connection.current is None
    await store.close()


async def test_it_stops_without_its_server(
    own_server: LocalServer, stored: Gated
) -> None:
    service = DocumentService(stored, own_server.url)
    await service.start()
    await asyncio.to_thread(own_server.kill)
    with at_once():
        await service.stop()


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é"])
def test_a_name_that_cannot_be_shown_is_refused(stored: Gated, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="called"):
        DocumentService(stored, None, name=name)


@pytest.mark.parametrize("option", ["max_concurrent", "max_waiting"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_numbers_of_calls_are_above_zero(
    stored: Gated, option: str, value: Any
) -> None:
    with pytest.raises(InvalidRequestError, match=option):
        DocumentService(stored, None, **{option: value})
