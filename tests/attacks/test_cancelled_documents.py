"""A call on documents that is cancelled at any await: done or not, indexes exact."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from tests.attacks.indexes import check_hints
from tests.attacks.stepping import cancelled_at, only
from tests.integration.stores import PEOPLE, SCENARIOS, check_people, settle_in

from jskv_saver import CollectionSpec, FieldSpec, JetStreamDocumentStore
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import CollectionNotFoundError, UniqueViolationError

Documents = dict[Any, dict[str, Any]]

EXTENDED = CollectionSpec("people", (FieldSpec("age", "int", indexed=True),))


async def _ensure(docs: BoundDocuments) -> None:
    await docs.ensure_collection(EXTENDED)


async def _drop_and_declare(docs: BoundDocuments) -> None:
    with suppress(CollectionNotFoundError):
        await docs.drop_collection("people")
    await docs.ensure_collection(PEOPLE)


async def _put_many(docs: BoundDocuments) -> None:
    one = ("people", "a", {"email": "e5", "city": "Ulm"}, None)
    await docs.put_many([one, ("people", "b", {"city": "Bonn"}, None)])


READS: dict[str, Callable[[BoundDocuments], Awaitable[Any]]] = {
    "get": lambda docs: docs.get("people", "1"),
    "get_many": lambda docs: docs.get_many([("people", "1"), ("people", "2")]),
    "find": lambda docs: docs.find("people", [("city", "eq", "Bonn")]),
    "count": lambda docs: docs.count("people", [("city", "gte", "Bonn")]),
    "ids": lambda docs: docs.ids("people"),
    "collections": lambda docs: docs.collections(),
}
WRITES: dict[str, Callable[[BoundDocuments], Awaitable[Any]]] = {
    **SCENARIOS,
    "put many": _put_many,
    "ensure_collection": _ensure,
    "drop_collection": _drop_and_declare,
}
MANY = {"delete many": 3, "delete subtree": 2, "put many": 2, "drop_collection": 5}
"""How many documents a call changes, where it is more than one."""


@pytest.fixture
async def store(nats_url: str, bucket: str) -> AsyncIterator[JetStreamDocumentStore]:
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as opened:
        yield opened


async def _call(docs: BoundDocuments, name: str) -> Any:
    with suppress(UniqueViolationError):
        return await (WRITES | READS)[name](docs)


async def _documents(docs: BoundDocuments) -> Documents:
    """All documents; what was sent before a call was cancelled may yet arrive."""
    before: Documents | None = None
    while True:
        now = {each.id: dict(each.data) async for each in docs.iterate("people")}
        if now == before:
            return now
        before = now


@pytest.mark.parametrize("late", [False, True], ids=["waiting", "answered"])
@pytest.mark.parametrize("name", [*WRITES, *READS])
async def test_a_cancelled_call_is_done_or_not_and_can_be_repeated(
    store: JetStreamDocumentStore, name: str, late: bool
) -> None:
    twin = store.bind("twin")
    await settle_in(twin)
    before = await _documents(twin)
    want = await _call(twin, name)
    after = await _documents(twin)
    # Where each document is like the next, every third step of each kind will do.
    step = 3 if name in MANY or name == "ensure_collection" else 1
    for suspension in count(int(late and step > 1), step):
        docs = store.bind(f"owner-{suspension}")
        await settle_in(docs)
        tasks = asyncio.all_tasks()
        beside = asyncio.create_task(twin.get("people", ("deep", "9")))
        cancelled = await cancelled_at(_call(docs, name), suspension, late=late)
        await asyncio.gather(beside, return_exceptions=True)
        await only(tasks)
        assert store._bucket._requests._pending == {}
        await _is_between(docs, name, before, after)
        answer = await _call(docs, name)
        if name in READS:
            assert _comparable(answer) == _comparable(want)
        assert await _documents(docs) == after
        await check_hints(store, docs.namespace, PEOPLE)
        if not cancelled:
            break
    assert suspension > 0


async def _is_between(
    docs: BoundDocuments, name: str, before: Documents, after: Documents
) -> None:
    """Each document is as before or as after, and every answer agrees."""
    if name == "drop_collection" and not await docs.collections():
        with pytest.raises(CollectionNotFoundError):
            await docs.find("people")
        return
    assert isinstance(docs.store, JetStreamDocumentStore)
    now = await _documents(docs)
    for id in before.keys() | after.keys() | now.keys():
        assert now.get(id) in (before.get(id), after.get(id))
    if name == "put many":
        assert "a" in now or "b" not in now
    changed = [id for id in before.keys() | now.keys() if before.get(id) != now.get(id)]
    assert len(changed) <= MANY.get(name, 1)
    if name in WRITES:
        await check_people(docs)
    await check_hints(docs.store, docs.namespace, PEOPLE)


def _comparable(answer: Any) -> Any:
    if hasattr(answer, "items") and isinstance(answer.items, tuple):
        return [(each.id, each.data) for each in answer.items]
    if hasattr(answer, "data"):
        return answer.id, answer.data
    if isinstance(answer, dict):
        return {id: each.data for id, each in answer.items()}
    return answer
