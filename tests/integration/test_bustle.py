"""Many writers of few documents through two stores: constraints and indexes hold."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.stores import (
    PEOPLE,
    TASKS,
    check_people,
    every_key,
    hint_names,
)
from tests.soak import SOAK

from jskv_saver import (
    CollectionSpec,
    FieldSpec,
    JetStreamDocumentStore,
    LocalServer,
)
from jskv_saver.errors import (
    CollectionNotFoundError,
    DocumentNotFoundError,
    IncompatibleDeclarationError,
    UniqueViolationError,
    VersionConflictError,
)

OWNER = "owner"
WRITERS = 16
SECONDS = 10.0 if SOAK else 1.5
"""Of writing beside each other: as long at least."""

Stores = Sequence[JetStreamDocumentStore]


@pytest.fixture
async def stores(nats_url: str, bucket: str) -> AsyncIterator[Stores]:
    async with (
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as first,
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as second,
    ):
        yield first, second


class Bustle:
    """Random writes of few ids and values from both stores, for a while.

    Args:
        stores: The stores.
        values: Of how many values a unique one is.

    Attributes:
        lasts: Whether it goes on beyond its time.
        taken: How often each version was replaced or removed by someone who named it.
    """

    def __init__(self, stores: Stores, values: int = 5) -> None:
        self.stores = stores
        self.values = values
        self.lasts: Callable[[], bool] = lambda: False
        self.taken: Counter[tuple[str, int]] = Counter()
        self.done: Counter[str] = Counter()

    async def run(self, *beside: Callable[[], Awaitable[None]]) -> None:
        """Write, and run the others again and again meanwhile."""
        self._end = time.monotonic() + SECONDS
        async with asyncio.timeout(50):
            await asyncio.gather(
                *(self._write(seed) for seed in range(WRITERS)),
                *(self._repeat(each) for each in beside),
            )

    def _goes_on(self) -> bool:
        return time.monotonic() < self._end or self.lasts()

    async def _repeat(self, call: Callable[[], Awaitable[None]]) -> None:
        while self._goes_on():
            await call()

    async def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        store = self.stores[seed % 2]
        while self._goes_on():
            try:
                self.done[await self._one(store, chance)] += 1
            except (
                UniqueViolationError,
                VersionConflictError,
                DocumentNotFoundError,
                CollectionNotFoundError,
            ) as error:
                self.done[type(error).__name__] += 1

    async def _one(self, store: JetStreamDocumentStore, chance: random.Random) -> str:
        id = str(chance.randrange(6))
        data = {
            "email": f"e{chance.randrange(self.values)}",
            "city": chance.choice(["Bonn", "Kiel", "Ulm"]),
            "team": chance.choice(["a", None]),
            "seat": chance.randrange(self.values),
        }
        match chance.randrange(6):
            case 0 | 1:
                await store.put(OWNER, "people", id, data)
                return "put"
            case 2:
                await store.put(OWNER, "people", id, data, if_version=0)
                return "create"
            case 3:
                await store.delete(OWNER, "people", id)
                return "delete"
        version = (await store.get(OWNER, "people", id)).version
        if chance.random() < 0.5:
            await store.put(OWNER, "people", id, data, if_version=version)
        else:
            await store.delete(OWNER, "people", id, if_version=version)
        self.taken[id, version] += 1
        return "compare"


async def test_updates_inserts_and_deletes_never_break_a_constraint(
    stores: Stores,
) -> None:
    await stores[0].ensure_collection(OWNER, PEOPLE)
    every_id = [("people", str(number)) for number in range(6)]

    async def look() -> None:
        # One snapshot of all documents.
        found = (await stores[1].get_many(OWNER, every_id)).values()
        emails = [document.data["email"] for document in found]
        assert len(emails) == len(set(emails))
        seats = [d.data["seat"] for d in found if d.data["team"] == "a"]
        assert len(seats) == len(set(seats))
        await asyncio.sleep(0.002)

    async def query() -> None:
        page = await stores[0].find(OWNER, "people", [("city", "eq", "Ulm")])
        assert all(document.data["city"] == "Ulm" for document in page.items)
        await asyncio.sleep(0.002)

    bustle = Bustle(stores)
    kinds = {"put", "create", "delete", "compare"}
    bustle.lasts = lambda: not kinds <= bustle.done.keys()
    await bustle.run(look, query)
    assert max(bustle.taken.values()) == 1
    await _check_people_and_hints(stores)


async def test_an_index_without_constraints_stays_exact_under_the_same(
    stores: Stores,
) -> None:
    spec = CollectionSpec(
        "people",
        tuple(FieldSpec(name, "json", indexed=True) for name in ("email", "city")),
    )
    await stores[0].ensure_collection(OWNER, spec)
    bustle = Bustle(stores)
    await bustle.run()
    assert max(bustle.taken.values()) == 1
    documents = {d.id: d async for d in stores[1].iterate(OWNER, "people")}
    for city in ("Bonn", "Kiel", "Ulm"):
        page = await stores[0].find(OWNER, "people", [("city", "eq", city)])
        assert {d.id for d in page.items} == {
            id for id, d in documents.items() if d.data["city"] == city
        }
    assert len(await hint_names(stores[0], OWNER, "people")) == 2 * len(documents)


async def _check_people_and_hints(stores: Stores) -> None:
    everyone = await check_people(stores[1].bind(OWNER))
    expected = sum(
        2 + (document.data["team"] is not None) for document in everyone.values()
    )
    # Nobody died, so there is no hint too many.
    assert len(await hint_names(stores[0], OWNER, "people")) == expected


@pytest.mark.parametrize("turn", range(3))
async def test_declaring_beside_writers_keeps_every_promise(
    stores: Stores, turn: int
) -> None:
    await stores[0].ensure_collection(OWNER, CollectionSpec("people"))
    declared = 0

    async def declare() -> None:
        nonlocal declared
        await asyncio.sleep(random.random() * 0.2)
        with suppress(IncompatibleDeclarationError):
            await stores[0].ensure_collection(OWNER, PEOPLE)
            declared += 1

    # So many values that documents often allow the declaration, and often do not.
    bustle = Bustle(stores, values=30)
    bustle.lasts = lambda: not declared
    await bustle.run(declare)
    everyone = await check_people(stores[1].bind(OWNER))
    expected = sum(2 + (d.data["team"] is not None) for d in everyone.values())
    assert len(await hint_names(stores[0], OWNER, "people")) >= expected
    await stores[0].put(OWNER, "people", "x", {"email": "x"})
    with pytest.raises(UniqueViolationError):
        await stores[1].put(OWNER, "people", "y", {"email": "x"})


async def test_dropping_beside_writers_leaves_nothing_behind(stores: Stores) -> None:
    await stores[0].ensure_collection(OWNER, PEOPLE)

    async def drop() -> None:
        await asyncio.sleep(0.01)
        await stores[0].drop_collection(OWNER, "people")
        assert await stores[0].collections(OWNER) == []
        await stores[1].ensure_collection(OWNER, PEOPLE)

    bustle = Bustle(stores)
    await bustle.run(drop)
    await check_people(stores[0].bind(OWNER))
    await stores[0].drop_collection(OWNER, "people")
    assert await every_key(stores[0], OWNER, "people") == []


async def test_an_index_never_misses_or_invents_a_document_that_flips(
    stores: Stores,
) -> None:
    writer, reader = stores
    await writer.ensure_collection(OWNER, TASKS)
    for number in range(20):
        await writer.put(OWNER, "tasks", f"still-{number:02}", {"state": 5, "n": 0})
    for id in ("flip-0", "flip-1"):
        await writer.put(OWNER, "tasks", id, {"state": 1})
    reading = 4

    async def flip(id: str) -> None:
        state = 1
        while reading:
            state = 3 - state
            await writer.put(OWNER, "tasks", id, {"state": state})

    async def rewrite() -> None:
        number = 0
        while reading:
            number += 1
            id = f"still-{number % 20:02}"
            await writer.put(OWNER, "tasks", id, {"state": 5, "n": number})

    async def find(*where: Any) -> list[Any]:
        page = await reader.find(OWNER, "tasks", where)
        return [(document.id, document.data["state"]) for document in page.items]

    async def read() -> None:
        nonlocal reading
        for _ in range(1000 if SOAK else 40):
            for state in (1, 2):
                found = await find(("state", "eq", state))
                assert all(have == state for _, have in found)
            for where in (
                [("state", "in", [1, 2])],
                [("state", "lt", 5)],
                [("state", "gte", 1), ("state", "lt", 3)],
            ):
                ids = [id for id, _ in await find(*where)]
                assert ids == ["flip-0", "flip-1"], where
            assert len(await find(("state", "eq", 5))) == 20
        reading -= 1

    readers = [read() for _ in range(reading)]
    await asyncio.gather(flip("flip-0"), flip("flip-1"), rewrite(), *readers)
    assert len(await hint_names(writer, OWNER, "tasks")) == 22


async def test_a_cluster_answers_alike(cluster: Sequence[LocalServer]) -> None:
    options: dict[str, Any] = {"bucket": "replicated", "replicas": 3}
    async with (
        JetStreamDocumentStore.from_conn_string(cluster[0].url, **options) as first,
        JetStreamDocumentStore.from_conn_string(cluster[1].url, **options) as second,
    ):
        stores = first, second
        await first.ensure_collection(OWNER, PEOPLE)
        for number in range(50):
            put = await first.put(OWNER, "cp", ("a", str(number)), {"n": number})
            assert await second.get(OWNER, "cp", ("a", str(number))) == put
            put = await first.put(OWNER, "people", "x", {"email": f"e{number}"})
            assert await second.get(OWNER, "people", "x") == put
        await first.delete(OWNER, "people", "x")
        bustle = Bustle(stores)
        await bustle.run()
        assert max(bustle.taken.values(), default=0) <= 1
        await _check_people_and_hints(stores)
