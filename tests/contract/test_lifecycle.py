from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from tests.contract.conftest import Open

from jskv_saver import ANY, CollectionSpec, DocumentStore
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import InvalidRequestError, StoreClosedError


async def test_a_store_has_the_shape_of_the_port(store: DocumentStore) -> None:
    assert isinstance(store, DocumentStore)
    assert store.limits.data > 0


async def test_a_closed_store_says_so(store: DocumentStore) -> None:
    await store.ensure_collection("owner", CollectionSpec("notes"))
    await store.close()
    await store.close()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: store.ensure_collection("owner", CollectionSpec("notes")),
        lambda: store.drop_collection("owner", "notes"),
        lambda: store.collections("owner"),
        lambda: store.put("owner", "notes", "a", {}),
        lambda: store.get("owner", "notes", "a"),
        lambda: store.delete("owner", "notes", "a"),
        lambda: store.delete("owner", "notes", (ANY,), subtree=True),
        lambda: store.find("owner", "notes"),
        lambda: store.count("owner", "notes"),
        lambda: store.put_many("owner", [("notes", "a", {}, None)]),
        lambda: store.get_many("owner", [("notes", "a")]),
        lambda: store.delete_many("owner", "notes"),
        lambda: store.ids("owner", "notes"),
        lambda: anext(store.iterate("owner", "notes")),
    ]
    for call in calls:
        with pytest.raises(StoreClosedError):
            await call()


async def test_what_one_handle_stored_another_reads(
    store: DocumentStore, second: DocumentStore
) -> None:
    await store.ensure_collection("owner", CollectionSpec("notes"))
    stored = await store.put("owner", "notes", ("a", "b"), {"n": [1, b"x"]})
    assert await second.get("owner", "notes", ("a", "b")) == stored
    assert list(await second.ids("owner", "notes")) == [("a", "b")]
    assert list(await second.collections("owner")) == ["notes"]
    changed = await second.put("owner", "notes", ("a", "b"), {"n": 2})
    assert await store.get("owner", "notes", ("a", "b")) == changed
    assert changed.created_at == stored.created_at
    assert changed.version > stored.version


async def test_storage_outlives_a_handle(open_store: Open) -> None:
    async with open_store() as first:
        await first.ensure_collection("owner", CollectionSpec("notes"))
        stored = await first.put("owner", "notes", "a", {"n": 1})
    async with open_store() as again:
        assert await again.get("owner", "notes", "a") == stored
        assert (await again.put("owner", "notes", "a", {})).version > stored.version


async def test_bound_documents_are_those_of_the_namespace(
    store: DocumentStore, docs: BoundDocuments
) -> None:
    stored = await docs.put("notes", ("t", "a"), {"n": 1})
    assert await store.get("owner", "notes", ("t", "a")) == stored
    assert docs.namespace == "owner"
    assert docs.store is store
    assert docs.limits == store.limits
    assert list(await docs.collections()) == list(await store.collections("owner"))
    other = BoundDocuments(store, "other")
    assert list(await other.collections()) == []


@pytest.mark.parametrize("namespace", ["", "a\0", "x" * 129, None, 1], ids=repr)
async def test_only_a_namespace_can_be_bound(
    store: DocumentStore, namespace: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        BoundDocuments(store, namespace)


async def test_stores_bind_themselves(store: DocumentStore) -> None:
    bound = cast(Any, store).bind("owner")
    assert isinstance(bound, BoundDocuments)
    await bound.put("cp", "a", {"n": 1})
    assert (await store.get("owner", "cp", "a")).data == {"n": 1}
