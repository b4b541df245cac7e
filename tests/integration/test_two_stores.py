"""Two stores on one bucket, each with a connection of its own, and many writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

import pytest
from tests.integration.stores import (
    PEOPLE,
    check_people,
    hint_names,
)

from jskv_saver import (
    CollectionSpec,
    FieldSpec,
    JetStreamDocumentStore,
)
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import (
    CollectionNotFoundError,
    InvalidRequestError,
    UniqueViolationError,
    VersionConflictError,
)

OWNER = "owner"
WRITERS = 16

Stores = Sequence[JetStreamDocumentStore]


@pytest.fixture
async def stores(nats_url: str, bucket: str) -> AsyncIterator[Stores]:
    async with (
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as first,
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as second,
    ):
        yield first, second


async def _won(calls: Sequence[Awaitable[Any]], *losses: type[Exception]) -> int:
    """How many of the calls succeeded; the others failed as they may."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, losses):
            raise outcome
    return sum(not isinstance(outcome, BaseException) for outcome in outcomes)


@pytest.mark.parametrize("spec", [CollectionSpec("people"), PEOPLE])
async def test_one_of_many_wins_each_version(
    stores: Stores, spec: CollectionSpec
) -> None:
    await stores[0].ensure_collection(OWNER, spec)
    version = 0
    for turn in range(10):
        won = await _won(
            [
                stores[writer % 2].put(
                    OWNER,
                    "people",
                    "1",
                    {"email": f"{turn}-{writer}", "city": "Ulm"},
                    if_version=version,
                )
                for writer in range(WRITERS)
            ],
            VersionConflictError,
        )
        assert won == 1
        version = (await stores[turn % 2].get(OWNER, "people", "1")).version
    won = await _won(
        [
            stores[writer % 2].delete(OWNER, "people", "1", if_version=version)
            for writer in range(WRITERS)
        ],
        VersionConflictError,
    )
    assert won == 1
    assert await hint_names(stores[0], OWNER, "people") == []


async def test_one_of_many_wins_a_reserved_version(stores: Stores) -> None:
    for turn in range(10):
        won = await _won(
            [
                stores[writer % 2].put(
                    OWNER, "cp", ("a", "t", str(turn), str(writer)), {}, if_latest=fence
                )
                for writer in range(WRITERS)
                for fence in [(("a", "t", str(turn)), 0)]
            ],
            VersionConflictError,
        )
        assert won == 1
        (id,) = await stores[0].ids(OWNER, "cp", within=("a", "t", str(turn)))
        document = await stores[0].get(OWNER, "cp", id)
        won = await _won(
            [
                stores[writer % 2].delete(OWNER, "cp", id, if_version=document.version)
                for writer in range(WRITERS)
            ],
            VersionConflictError,
        )
        assert won == 1


async def test_what_one_declares_the_other_enforces_at_once(stores: Stores) -> None:
    one, other = stores
    with pytest.raises(CollectionNotFoundError):
        await other.put(OWNER, "people", "1", {})
    await one.ensure_collection(OWNER, CollectionSpec("people"))
    await other.put(OWNER, "people", "1", {"email": "e", "city": "Ulm"})
    await one.ensure_collection(OWNER, PEOPLE)
    with pytest.raises(UniqueViolationError):
        await other.put(OWNER, "people", "2", {"email": "e"})
    with pytest.raises(InvalidRequestError):
        await other.put(OWNER, "people", "2", {"email": 1})
    await other.put(OWNER, "people", "2", {"email": "f", "city": "Ulm"})
    page = await one.find(OWNER, "people", [("city", "eq", "Ulm")])
    assert [document.id for document in page.items] == ["1", "2"]
    await other.drop_collection(OWNER, "people")
    with pytest.raises(CollectionNotFoundError):
        await one.find(OWNER, "people", [("city", "eq", "Ulm")])
    await other.ensure_collection(OWNER, CollectionSpec("people"))
    await one.put(OWNER, "people", "1", {"email": 1})
    assert await other.count(OWNER, "people") == 1


@pytest.mark.parametrize("fields", [("email",), ("team", "seat")])
async def test_one_of_sixteen_gets_a_unique_value(
    stores: Stores, fields: tuple[str, ...]
) -> None:
    await stores[0].ensure_collection(OWNER, PEOPLE)
    for turn in range(10):
        value = {name: 1 if name == "seat" else f"v{turn}" for name in fields}
        won = await _won(
            [
                stores[writer % 2].put(
                    OWNER, "people", f"{turn}-{writer}", {**value, "city": "Ulm"}
                )
                for writer in range(WRITERS)
            ],
            UniqueViolationError,
        )
        assert won == 1
    everyone = await check_people(stores[1].bind(OWNER))
    assert len(everyone) == 10
    hints = await hint_names(stores[0], OWNER, "people")
    assert len(hints) == 20


async def test_a_read_of_many_megabytes_misses_no_document_that_is_written_again(
    stores: Stores,
) -> None:
    """It takes several answers, and what is written between two is on neither."""
    reads = [("bl", ("a", str(number))) for number in range(12)]
    parts = {"part": bytes(700_000)}
    for name, id in reads:
        await stores[0].put(OWNER, name, id, parts)
    reading = True

    async def write() -> None:
        while reading:
            for name, id in reads:
                await stores[1].put(OWNER, name, id, parts)

    writing = asyncio.create_task(write())
    for _ in range(30):
        assert len(await stores[0].get_many(OWNER, reads)) == len(reads)
    reading = False
    await writing


async def test_deleting_a_thread_meets_no_document_of_a_user(stores: Stores) -> None:
    store = stores[0]
    thread = ("agent", "thread")
    names = ("people", "d", "c", "agent", "/owner")
    for owner in (OWNER, "/owner", "d", "people", "agent"):
        for name in names:
            await store.ensure_collection(
                owner, CollectionSpec(name, (FieldSpec("agent", "json", indexed=True),))
            )
            for id in ((*thread, "x"), (*thread, "x", "y"), (OWNER, *thread, "x")):
                await store.put(owner, name, id, {"agent": "thread"})
    for name in RESERVED_COLLECTIONS:
        await store.put(OWNER, name, (*thread, "x"), {})
    await store.delete(OWNER, RESERVED_COLLECTIONS, thread, subtree=True)
    for name in RESERVED_COLLECTIONS:
        assert await store.ids(OWNER, name) == []
    for owner in (OWNER, "/owner", "d", "people", "agent"):
        for name in names:
            assert await store.count(owner, name) == 3
            assert await store.count(owner, name, [("agent", "eq", "thread")]) == 3
