"""Stores for the tests of this folder: what they share, and a bucket that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from jskv_saver import CollectionSpec, Document, FieldSpec, JetStreamDocumentStore
from jskv_saver._portal import Portal
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.document.bound import BoundDocuments

PEOPLE = CollectionSpec(
    "people",
    (
        FieldSpec("email", "string", unique=True),
        FieldSpec("city", "string", indexed=True),
        FieldSpec("team", "string"),
        FieldSpec("seat", "int"),
    ),
    (("team", "seat"),),
)
TASKS = CollectionSpec("tasks", (FieldSpec("state", "int", indexed=True),))


class Killed(BaseException):
    """The process is dead, as far as the server can see."""


class MortalBucket(Bucket):
    """A bucket whose process dies instead of sending its next write.

    Args:
        url: Of the server.
        bucket: Its name.
        lives: How many writes it sends.
        die: What happens then; after it nothing is sent.
    """

    def __init__(
        self, url: str, bucket: str, lives: int, die: Callable[[], None]
    ) -> None:
        super().__init__(url, bucket)
        self.lives = lives
        self._die = die

    def _spend(self, wanted: int) -> int:
        """How many of these writes are still sent."""
        sent = min(wanted, self.lives)
        self.lives -= sent
        return sent

    async def put(self, key: str, value: bytes, **conditions: Any) -> int:
        if not self._spend(1):
            self._die()
        return await super().put(key, value, **conditions)

    async def put_many(self, writes: Sequence[Put], **options: Any) -> list[int]:
        sent = self._spend(len(writes))
        if sent < len(writes):
            await super().put_many(writes[:sent], **options)
            self._die()
        return await super().put_many(writes, **options)

    async def purge(self, filter: str, *, below: int | None = None) -> int:
        if not self._spend(1):
            self._die()
        return await super().purge(filter, below=below)


def store_over(bucket: Bucket) -> JetStreamDocumentStore:
    """A store on this loop over any bucket."""
    store = JetStreamDocumentStore.__new__(JetStreamDocumentStore)
    store._assemble(bucket, Portal(asyncio.get_running_loop()), 5.0)
    return store


def die_in_process() -> None:
    raise Killed


def die_for_real() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def check_people(docs: BoundDocuments) -> dict[Any, Document]:
    """Every answer about people agrees with the documents; returns them."""
    everyone = {document.id: document async for document in docs.iterate("people")}
    assert await docs.ids("people") == list(everyone)
    assert await docs.count("people") == len(everyone)
    for field in ("email", "city", "team", "seat"):
        for value in {document.data.get(field) for document in everyone.values()}:
            await _check(docs, "people", everyone, (field, "eq", value))
    emails = [d.data["email"] for d in everyone.values() if d.data.get("email")]
    assert len(emails) == len(set(emails)), emails
    seats = [
        (d.data["team"], d.data["seat"])
        for d in everyone.values()
        if d.data.get("team") is not None and d.data.get("seat") is not None
    ]
    assert len(seats) == len(set(seats)), seats
    for city in ("Bonn", "Kiel", "Ulm"):
        await _check(docs, "people", everyone, ("city", "eq", city))
        await _check(docs, "people", everyone, ("city", "lt", city))
        await _check(docs, "people", everyone, ("city", "gte", city))
    await _check(docs, "people", everyone, ("city", "in", ["Bonn", "Ulm"]))
    for number in range(8):
        await _check(docs, "people", everyone, ("email", "eq", f"e{number}"))
    return everyone


async def _check(
    docs: BoundDocuments, name: str, everyone: dict[Any, Document], predicate: Any
) -> None:
    field, operator, value = predicate
    tests: dict[str, Callable[[Any], bool]] = {
        "eq": lambda have: have == value,
        "in": lambda have: have in value,
        "lt": lambda have: have is not None and have < value,
        "gte": lambda have: have is not None and have >= value,
    }
    expected = [
        id
        for id, document in everyone.items()
        if field in document.data and tests[operator](document.data[field])
    ]
    page = await docs.find(name, [predicate], limit=1000)
    assert [document.id for document in page.items] == expected, predicate
    assert await docs.count(name, [predicate]) == len(expected)


async def hint_names(store: JetStreamDocumentStore, owner: str, name: str) -> list[str]:
    """The index keys of a collection."""
    return await store._bucket.names([keys.index_filter(owner, name)])


async def every_key(store: JetStreamDocumentStore, owner: str, name: str) -> list[str]:
    """All keys that belong to a declared collection."""
    return await store._bucket.names(
        [keys.index_filter(owner, name), keys.collection_filter(owner, name)]
    )


Scenario = Callable[[BoundDocuments], Awaitable[Any]]

SCENARIOS: dict[str, Scenario] = {
    "insert": lambda docs: docs.put(
        "people", "new", {"email": "e7", "city": "Ulm", "team": "z", "seat": 1}
    ),
    "update": lambda docs: docs.put(
        "people", "1", {"email": "e6", "city": "Kiel", "team": "z", "seat": 2}
    ),
    "half an update": lambda docs: docs.put(
        "people", "1", {"email": "e1", "city": "Kiel"}
    ),
    "delete": lambda docs: docs.delete("people", "1"),
    "delete many": lambda docs: docs.delete_many("people", [("city", "eq", "Bonn")]),
    "delete subtree": lambda docs: docs.delete("people", "deep", subtree=True),
    "refused": lambda docs: docs.put("people", "9", {"email": "e1", "city": "Ulm"}),
}
"""Calls on the people that `settle_in` puts there."""


async def settle_in(docs: BoundDocuments) -> None:
    """Three people, and two below a prefix."""
    await docs.ensure_collection(PEOPLE)
    for number in range(3):
        await docs.put("people", str(number), _person(number))
    for number in (3, 4):
        await docs.put("people", ("deep", str(number)), _person(number))


def _person(number: int) -> dict[str, Any]:
    return {
        "email": f"e{number}",
        "city": ["Bonn", "Kiel"][number % 2],
        "team": "a",
        "seat": number,
    }


async def _child(url: str, bucket: str, owner: str, name: str, lives: str) -> None:
    store = store_over(MortalBucket(url, bucket, int(lives), die_for_real))
    await SCENARIOS[name](store.bind(owner))
    await store.close()


if __name__ == "__main__":
    asyncio.run(_child(*sys.argv[1:]))
