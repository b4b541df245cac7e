from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.contract.hostile import NAMES, NOT_NAMES

from jskv_saver import CollectionSpec, FieldSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import CollectionNotFoundError, InvalidRequestError


async def test_a_namespace_never_seen_has_no_collections(store: DocumentStore) -> None:
    assert list(await store.collections("never seen")) == []


async def test_collections_are_listed_sorted(store: DocumentStore) -> None:
    for name in ("b", "a", "B", "é", "a.b", "cpx"):
        await store.ensure_collection("owner", CollectionSpec(name))
    assert list(await store.collections("owner")) == [
        "B",
        "a",
        "a.b",
        "b",
        "cpx",
        "é",
    ]


async def test_ensuring_is_idempotent_and_keeps_documents(
    docs: BoundDocuments,
) -> None:
    kept = await docs.put("notes", "a", {"n": 1})
    await docs.ensure_collection(CollectionSpec("notes"))
    assert await docs.get("notes", "a") == kept
    assert list(await docs.collections()) == ["notes", "tags"]


async def test_a_collection_belongs_to_its_namespace(
    store: DocumentStore, docs: BoundDocuments
) -> None:
    await docs.put("notes", "a", {"whose": "owner"})
    with pytest.raises(CollectionNotFoundError):
        await store.get("other", "notes", "a")
    assert list(await store.collections("other")) == []
    await store.ensure_collection("other", CollectionSpec("notes"))
    assert await store.count("other", "notes") == 0
    await store.put("other", "notes", "a", {"whose": "other"})
    assert (await docs.get("notes", "a")).data == {"whose": "owner"}
    await store.drop_collection("other", "notes")
    assert (await docs.get("notes", "a")).data == {"whose": "owner"}


async def test_dropping_removes_collection_and_documents(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", ("a", "b"), {"n": 1})
    await docs.put("tags", "a", {})
    await docs.drop_collection("notes")
    assert list(await docs.collections()) == ["tags"]
    with pytest.raises(CollectionNotFoundError):
        await docs.get("notes", ("a", "b"))
    await docs.ensure_collection(CollectionSpec("notes"))
    assert await docs.count("notes") == 0
    assert list(await docs.ids("notes")) == []
    again = await docs.put("notes", ("a", "b"), {"n": 2}, if_version=0)
    assert again.version > first.version
    assert await docs.count("tags") == 1


async def test_dropping_removes_the_declaration(docs: BoundDocuments) -> None:
    spec = CollectionSpec("typed", (FieldSpec("n", "int", unique=True),))
    await docs.ensure_collection(spec)
    await docs.put("typed", "a", {"n": 1})
    await docs.drop_collection("typed")
    await docs.ensure_collection(CollectionSpec("typed"))
    await docs.put("typed", "a", {"n": "text"})
    await docs.put("typed", "b", {"n": "text"})
    assert await docs.count("typed") == 2


async def test_dropping_what_is_not_there_is_an_error(docs: BoundDocuments) -> None:
    with pytest.raises(CollectionNotFoundError) as caught:
        await docs.drop_collection("missing")
    assert caught.value.collection == "missing"
    assert caught.value.namespace == "owner"
    await docs.drop_collection("notes")
    with pytest.raises(CollectionNotFoundError):
        await docs.drop_collection("notes")


async def test_every_call_on_an_undeclared_collection_says_so(
    docs: BoundDocuments,
) -> None:
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: docs.put("missing", "a", {}),
        lambda: docs.put("missing", "a", {}, if_version=0),
        lambda: docs.put("missing", "a", {}, if_latest=("a", 0)),
        lambda: docs.get("missing", "a"),
        lambda: docs.delete("missing", "a"),
        lambda: docs.delete("missing", "a", if_version=1),
        lambda: docs.delete("missing", "a", subtree=True),
        lambda: docs.delete(["notes", "missing"], "a", subtree=True),
        lambda: docs.find("missing"),
        lambda: docs.count("missing"),
        lambda: docs.put_many([("missing", "a", {}, None)]),
        lambda: docs.get_many([("notes", "a"), ("missing", "a")]),
        lambda: docs.delete_many("missing"),
        lambda: docs.ids("missing"),
        lambda: anext(docs.iterate("missing")),
    ]
    for call in calls:
        with pytest.raises(CollectionNotFoundError) as caught:
            await call()
        assert caught.value.collection == "missing"
        assert isinstance(caught.value, LookupError)


async def test_subtree_over_a_missing_collection_removes_nothing(
    docs: BoundDocuments,
) -> None:
    await docs.put("notes", ("a", "b"), {})
    with pytest.raises(CollectionNotFoundError):
        await docs.delete(["notes", "missing"], "a", subtree=True)
    assert await docs.count("notes") == 1


@pytest.mark.parametrize("name", RESERVED_COLLECTIONS)
async def test_the_savers_collections_need_no_declaration(
    store: DocumentStore, name: str
) -> None:
    assert await store.count("fresh", name) == 0
    stored = await store.put("fresh", name, ("a", "", "b"), {"n": 1})
    assert await store.get("fresh", name, ("a", "", "b")) == stored
    assert list(await store.collections("fresh")) == []
    with pytest.raises(InvalidRequestError):
        await store.ensure_collection("fresh", CollectionSpec(name))
    with pytest.raises(InvalidRequestError):
        await store.drop_collection("fresh", name)
    assert await store.count("fresh", name) == 1
    assert await store.count("other", name) == 0


async def test_an_internal_name_is_no_collection(docs: BoundDocuments) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.ensure_collection(CollectionSpec("ix"))
    with pytest.raises(InvalidRequestError):
        await docs.put("ix", "a", {})


async def test_any_text_may_name_a_namespace_and_a_collection(
    store: DocumentStore,
) -> None:
    for name in NAMES:
        await store.ensure_collection(name, CollectionSpec("docs"))
        await store.put(name, "docs", "id", {"owner": name})
        await store.ensure_collection("owner", CollectionSpec(name))
        await store.put("owner", name, "id", {"collection": name})
    assert list(await store.collections("owner")) == sorted(NAMES)
    for name in NAMES:
        assert (await store.get(name, "docs", "id")).data == {"owner": name}
        assert (await store.get("owner", name, "id")).data == {"collection": name}
        assert list(await store.ids("owner", name)) == ["id"]
    await store.drop_collection("owner", "*")
    await store.drop_collection(">", "docs")
    assert list(await store.collections("owner")) == sorted({*NAMES} - {"*"})
    assert await store.count("*", "docs") == 1


async def test_what_is_not_a_name_is_refused(store: DocumentStore) -> None:
    for name in NOT_NAMES:
        with pytest.raises(InvalidRequestError):
            await store.ensure_collection("owner", CollectionSpec(name))
        with pytest.raises(InvalidRequestError):
            await store.drop_collection("owner", name)
        with pytest.raises(InvalidRequestError):
            await store.put("owner", name, "a", {})
        with pytest.raises(InvalidRequestError):
            await store.ensure_collection(name, CollectionSpec("docs"))
        with pytest.raises(InvalidRequestError):
            await store.collections(name)
        with pytest.raises(InvalidRequestError):
            await store.get(name, "docs", "a")
    assert list(await store.collections("owner")) == []


async def test_another_handle_sees_what_one_declared_and_dropped(
    store: DocumentStore, second: DocumentStore
) -> None:
    await store.ensure_collection("owner", CollectionSpec("notes"))
    await second.put("owner", "notes", "a", {"n": 1})
    assert (await store.get("owner", "notes", "a")).data == {"n": 1}
    await second.drop_collection("owner", "notes")
    assert list(await store.collections("owner")) == []
    with pytest.raises(CollectionNotFoundError):
        await store.put("owner", "notes", "a", {"n": 2})
    await second.ensure_collection("owner", CollectionSpec("notes"))
    assert await store.count("owner", "notes") == 0
