"""What a store says, a remote store in front of it says in the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.service.stores import Gated

from jskv_saver import (
    ANY,
    CollectionSpec,
    DocumentService,
    DocumentStore,
    FieldSpec,
    JetStreamDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.errors import JskvError

Call = Callable[[DocumentStore], Awaitable[Any]]
SPEC = CollectionSpec(
    "people",
    (FieldSpec("email", "string", unique=True), FieldSpec("age", "int")),
    (("age", "email"),),
)
FAILING: list[Call] = [
    lambda s: s.get("owner", "people", "nope"),
    lambda s: s.get("owner", "people", ("a", "é*>")),
    lambda s: s.get("owner", "gone", "a"),
    lambda s: s.drop_collection("owner", "gone"),
    lambda s: s.find("owner", "gone"),
    lambda s: s.delete("owner", ["people", "gone"], "a", subtree=True),
    lambda s: s.put("owner", "people", "a", {}, if_version=999_999),
    lambda s: s.put("owner", "people", "new", {}, if_version=7),
    lambda s: s.put("owner", "people", ("t", "x"), {}, if_latest=("t", 999_999)),
    lambda s: s.delete("owner", "people", "nope", if_version=0),
    lambda s: s.put("owner", "people", "b", {"email": "a@x"}),
    lambda s: s.put("owner", "people", "b", {"email": 7}),
    lambda s: s.put("owner", "people", "b", {"email": {"deep": [object()]}}),
    lambda s: s.put("owner", "people", "b", {"x": "\ud800"}),
    lambda s: s.put("owner", "people", "", {}, if_version=1, if_latest=("a", 1)),
    lambda s: s.put("", "people", "a", {}),
    lambda s: s.put("owner", "ix", "a", {}),
    lambda s: s.put_many("owner", [("people", "c", {"email": "a@x"}, None)]),
    lambda s: s.put_many("owner", [("people", "c", {}, "x")]),  # type: ignore[list-item]
    lambda s: s.get_many("owner", [("gone", (ANY,))]),
    lambda s: s.find("owner", "people", [("age", "like", 1)]),  # type: ignore[list-item]
    lambda s: s.find("owner", "people", [("age", "lt", [1])]),
    lambda s: s.find("owner", "people", limit=0),
    lambda s: s.find("owner", "people", cursor="x"),
    lambda s: s.ids("owner", "gone"),
    lambda s: s.delete_many("owner", "people", [("a", "in", range(501))]),
    lambda s: s.ensure_collection(
        "owner", CollectionSpec("people", (FieldSpec("age", "string"),))
    ),
    lambda s: s.ensure_collection(
        "owner", CollectionSpec("people", (FieldSpec("x", "int", unique=True),))
    ),
    lambda s: s.ensure_collection("owner", CollectionSpec("cp")),
]


@pytest.fixture(params=["memory", "jetstream"])
async def local(
    request: pytest.FixtureRequest, nats_url: str, bucket: str
) -> AsyncIterator[DocumentStore]:
    store: Any = Gated()
    if request.param == "jetstream":
        store = JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)
    async with store:
        await store.ensure_collection("owner", SPEC)
        for id in ("a", ("t", "1"), ("t", "2")):
            data = {"email": f"{id[0]}@x", "x": 1} if id == "a" else {"x": 1}
            await store.put("owner", "people", id, data)
        yield store


async def test_every_error_is_told_in_the_same_words(
    nats_url: str, local: DocumentStore
) -> None:
    async with (
        DocumentService(local, nats_url),
        RemoteDocumentStore.from_conn_string(nats_url) as remote,
    ):
        for number, call in enumerate(FAILING):
            told = []
            for store in (local, remote):
                with pytest.raises(JskvError) as caught:
                    await call(store)
                told.append(
                    (type(caught.value), str(caught.value), caught.value.details)
                )
            assert told[0] == told[1], number
        assert len(await local.ids("owner", "people")) == 3
