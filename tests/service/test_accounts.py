"""A program in an account of its own, which imports the service for its namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jskv_saver import (
    CollectionSpec,
    DocumentService,
    LocalServer,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.errors import DocumentNotFoundError, StoreUnavailableError

ACCOUNTS = """
authorization { timeout: 5 }
accounts {
  DATA {
    users: [{user: data, password: pw}]
    exports: [
      {service: "jskv.v1.my_app.>", accounts: [MY_APP], response_type: Stream}
    ]
  }
  MY_APP {
    users: [{user: app, password: pw}]
    imports: [{service: {account: DATA, subject: "jskv.v1.my_app.>"}}]
  }
}
"""


@pytest.fixture
def divided() -> Iterator[LocalServer]:
    with LocalServer(
        user="data", password="pw", sync_interval="2m", config=ACCOUNTS
    ) as server:
        yield server


async def test_it_reaches_its_namespace_and_no_other(divided: LocalServer) -> None:
    stored = MemoryDocumentStore()
    app = f"nats://app:pw@127.0.0.1:{divided.port}"
    async with (
        DocumentService(stored, divided.url),
        RemoteDocumentStore.from_conn_string(app) as store,
    ):
        await store.ensure_collection("my_app", CollectionSpec("notes"))
        bodies = {f"{n}": b"x" * 500_000 for n in range(5)}
        for id, body in bodies.items():
            await store.put("my_app", "notes", id, {"b": body})
        # An answer of several messages.
        page = await store.find("my_app", "notes")
        assert {each.id: each.data["b"] for each in page.items} == bodies
        with pytest.raises(DocumentNotFoundError):
            await store.get("my_app", "notes", "nope")
        with pytest.raises(StoreUnavailableError, match="nobody listens"):
            await store.get("other", "cp", "a")
    assert await stored.collections("other") == []
