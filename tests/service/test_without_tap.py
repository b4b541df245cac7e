"""Where no tap can be set, as on web sockets, messages take nats-py's own way."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client
from tests.patience import PATIENCE, until
from tests.service.stores import Gated

from jskv_saver import DocumentService, RemoteDocumentStore
from jskv_saver.errors import DocumentNotFoundError, StoreUnavailableError


@pytest.fixture(autouse=True)
def no_tap(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("listener", "requests"):
        monkeypatch.setattr(f"jskv_saver._nats.{module}.tap", lambda *_: None)


async def test_small_and_large_answers_and_faults(
    stored: Gated, remote: RemoteDocumentStore
) -> None:
    bodies = {f"{n:02}": b"x" * 900_000 for n in range(6)}
    for id, body in bodies.items():
        await stored.put("owner", "notes", id, {"b": body})
    page = await remote.find("owner", "notes")
    assert {each.id: each.data["b"] for each in page.items} == bodies
    document = await remote.put("owner", "notes", "00", {"b": None})
    assert await remote.get("owner", "notes", "00") == document
    with pytest.raises(DocumentNotFoundError) as caught:
        await remote.get("owner", "notes", "nope")
    assert caught.value.id == "nope"


async def test_none_is_lost_when_it_stops(
    client: Client, nats_url: str, stored: Gated
) -> None:
    service = DocumentService(stored, client)
    await service.start()
    async with RemoteDocumentStore.from_conn_string(
        nats_url, timeout=PATIENCE
    ) as store:
        await store.collections("owner")
        stored.gate.clear()
        puts = [
            asyncio.ensure_future(store.put("owner", "notes", f"{n}", {}))
            for n in range(100)
        ]
        await until(lambda: len(stored.begun) == 36)
        stopping = asyncio.ensure_future(service.stop())
        await asyncio.sleep(0)
        stored.gate.set()
        await stopping
        await asyncio.gather(*puts)
        with pytest.raises(StoreUnavailableError, match="nobody listens"):
            await store.collections("owner")
    assert len(await stored.ids("owner", "notes")) == 100
