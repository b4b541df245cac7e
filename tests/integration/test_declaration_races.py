"""Writes that began under a declaration which is another one when they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.stores import (
    PEOPLE,
    Killed,
    MortalBucket,
    check_people,
    die_in_process,
    hint_names,
    store_over,
)
from tests.soak import SOAK

from jskv_saver import CollectionSpec, FieldSpec, JetStreamDocumentStore
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import (
    CollectionNotFoundError,
    IncompatibleDeclarationError,
    UniqueViolationError,
    VersionConflictError,
)

PLAIN = CollectionSpec("people")
CITIES = CollectionSpec("people", (FieldSpec("city", "string", indexed=True),))
EMAILS = CollectionSpec("people", (FieldSpec("email", "string", unique=True),))
SPECS = {"indexed": CITIES, "unique": EMAILS, "all": PEOPLE}
BEFORE = {"plain": PLAIN, "indexed": CITIES}
CHANGES = [
    ("plain", "indexed"),
    ("plain", "unique"),
    ("indexed", "unique"),
    ("indexed", "all"),
]
ADA = {"email": "e1", "city": "Ulm"}


class SlowBucket(Bucket):
    """A bucket whose process stops before the message that counts.

    That is a document, after all that announces it, or the removal of one.

    Attributes:
        stopped: It has.
        held: What it has not sent yet.
        go_on: It may.
        dead: It dies instead.
    """

    def __init__(self, url: str, bucket: str) -> None:
        super().__init__(url, bucket)
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()
        self.dead = False
        self.held: Put | tuple[str, int | None] | None = None

    async def _wait(self, held: Put | tuple[str, int | None]) -> None:
        self.held = held
        self.stopped.set()
        await self.go_on.wait()
        if self.dead:
            raise Killed

    async def put_many(self, writes: Sequence[Put], **options: Any) -> list[int]:
        if self.stopped.is_set():
            return await super().put_many(writes, **options)
        await super().put_many(writes[:-1], **options)
        await self._wait(writes[-1])
        return await super().put_many(writes[-1:], **options)

    async def purge(self, filter: str, *, below: int | None = None) -> int:
        if not self.stopped.is_set():
            await self._wait((filter, below))
        return await super().purge(filter, below=below)


@pytest.fixture
async def docs(store: JetStreamDocumentStore) -> BoundDocuments:
    return store.bind("owner")


@pytest.fixture
async def slow(
    store: JetStreamDocumentStore, nats_url: str, bucket: str
) -> AsyncIterator[SlowBucket]:
    slow = SlowBucket(nats_url, bucket)
    yield slow
    await slow.close()


Call = Callable[[BoundDocuments, int], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "create": lambda docs, _: docs.put("people", "new", ADA),
    "create only": lambda docs, _: docs.put("people", "new", ADA, if_version=0),
    "replace": lambda docs, _: docs.put("people", "old", ADA),
    "replace a version": lambda docs, version: docs.put(
        "people", "old", ADA, if_version=version
    ),
    "fenced": lambda docs, version: docs.put(
        "people", ("deep", "new"), ADA, if_latest=("deep", 0)
    ),
    "delete": lambda docs, _: docs.delete("people", "old"),
}


async def _stop(slow: SlowBucket, docs: BoundDocuments, name: str) -> asyncio.Task[Any]:
    old = await docs.put("people", "old", {"email": "e0", "city": "Bonn"})
    behind = store_over(slow).bind("owner")
    task = asyncio.ensure_future(CALLS[name](behind, old.version))
    await slow.stopped.wait()
    return task


async def _kill(slow: SlowBucket, task: asyncio.Task[Any]) -> None:
    slow.dead = True
    slow.go_on.set()
    with pytest.raises(Killed):
        await task


async def _use(docs: BoundDocuments, *, unique: bool) -> None:
    everyone = await check_people(docs)
    for number in range(3):
        await docs.put("people", ("try", str(number)), {"email": f"free {number}"})
    for document in everyone.values():
        if unique:
            with pytest.raises(UniqueViolationError):
                await docs.put("people", "twice", {"email": document.data["email"]})
        changed = {**document.data, "city": "Kiel"}
        await docs.put("people", document.id, changed, if_version=document.version)
    await check_people(docs)


@pytest.mark.parametrize(("before", "spec"), CHANGES)
@pytest.mark.parametrize("name", CALLS)
async def test_a_slow_write_finds_out_and_is_made_again(
    docs: BoundDocuments, slow: SlowBucket, name: str, spec: str, before: str
) -> None:
    await docs.ensure_collection(BEFORE[before])
    task = await _stop(slow, docs, name)
    await docs.ensure_collection(SPECS[spec])
    slow.go_on.set()
    # The version that it was to replace may have been written again.
    with suppress(VersionConflictError):
        await task
    everyone = await check_people(docs)
    if name in ("create", "create only", "replace", "fenced"):
        assert ADA in [document.data for document in everyone.values()]
    if name == "delete":
        assert everyone == {}
    await _use(docs, unique=spec != "indexed")


@pytest.mark.parametrize(("before", "spec"), CHANGES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("meanwhile", ["nothing", "written and deleted"])
async def test_what_a_dead_writer_has_sent_does_nothing_when_it_arrives(
    docs: BoundDocuments,
    slow: SlowBucket,
    store: JetStreamDocumentStore,
    name: str,
    spec: str,
    before: str,
    meanwhile: str,
) -> None:
    await docs.ensure_collection(BEFORE[before])
    task = await _stop(slow, docs, name)
    await docs.ensure_collection(SPECS[spec])
    if meanwhile == "written and deleted":
        for id in ("old", "new", ("deep", "new")):
            await docs.put("people", id, {"email": f"of {id}", "city": "Kiel"})
            await docs.delete("people", id)
    there = await check_people(docs)
    await _kill(slow, task)
    held = slow.held
    if isinstance(held, Put):
        with pytest.raises(VersionConflictError):
            await store._bucket.put_many([held])
    else:
        assert held is not None
        assert await store._bucket.purge(held[0], below=held[1]) == 0
    assert await check_people(docs) == there
    await _use(docs, unique=spec != "indexed")


@pytest.mark.parametrize("name", ["create", "replace", "fenced"])
async def test_a_dropped_collection_gets_no_late_document(
    docs: BoundDocuments, slow: SlowBucket, store: JetStreamDocumentStore, name: str
) -> None:
    await docs.ensure_collection(PLAIN)
    task = await _stop(slow, docs, name)
    await docs.drop_collection("people")
    held = slow.held
    assert isinstance(held, Put)
    for spec in (PLAIN, PEOPLE):
        with pytest.raises(VersionConflictError):
            await store._bucket.put_many([held])
        await docs.ensure_collection(spec)
        assert await docs.count("people") == 0
    slow.go_on.set()
    await task
    assert await docs.count("people") == 1
    await _use(docs, unique=True)


async def test_a_slow_write_to_a_dropped_collection_says_so(
    docs: BoundDocuments, slow: SlowBucket
) -> None:
    await docs.ensure_collection(PLAIN)
    task = await _stop(slow, docs, "create")
    await docs.drop_collection("people")
    slow.go_on.set()
    with pytest.raises(CollectionNotFoundError):
        await task


async def test_a_barred_document_is_created_replaced_and_deleted_as_ever(
    docs: BoundDocuments, slow: SlowBucket
) -> None:
    await docs.ensure_collection(PLAIN)
    task = await _stop(slow, docs, "create")
    await docs.ensure_collection(CITIES)
    for _ in range(2):
        with pytest.raises(VersionConflictError):
            await docs.put("people", "new", ADA, if_version=1)
        new = await docs.put("people", "new", ADA, if_version=0)
        with pytest.raises(VersionConflictError):
            await docs.put("people", "new", ADA, if_version=0)
        new = await docs.put("people", "new", ADA, if_version=new.version)
        await docs.delete("people", "new", if_version=new.version)
        assert await docs.ids("people") == ["old"]
        await docs.ensure_collection(PEOPLE)
    await _kill(slow, task)


@pytest.mark.parametrize("purged", [False, True])
async def test_documents_written_under_a_declaration_taken_back_are_indexed_later(
    store: JetStreamDocumentStore, docs: BoundDocuments, *, purged: bool
) -> None:
    await docs.ensure_collection(PLAIN)
    await docs.put("people", "1", {"email": "e1"})
    backfill = store._declarations._backfill

    async def meanwhile(namespace: str, catalog: Any) -> None:
        await docs.put("people", "x", {"email": "e5", "city": "Ulm"})
        await backfill(namespace, catalog)
        # As a program would that knows of no declaration.
        entry = await store._bucket.get("people./owner.d.x")
        assert entry is not None
        await store._bucket.put("people./owner.d.bad", entry.value)

    store._declarations._backfill = meanwhile  # type: ignore[method-assign]
    with pytest.raises(IncompatibleDeclarationError):
        await docs.ensure_collection(PEOPLE)
    store._declarations._backfill = backfill  # type: ignore[method-assign]
    await docs.delete("people", "bad")
    if purged:
        # The document goes on naming them.
        await store._bucket.purge(keys.index_filter("owner", "people"))
    await docs.ensure_collection(PEOPLE)
    await check_people(docs)
    with pytest.raises(UniqueViolationError):
        await docs.put("people", "y", {"email": "e5"})


async def test_cancelled_puts_leave_a_declaration_made_meanwhile_right(
    store: JetStreamDocumentStore, nats_url: str, bucket: str
) -> None:
    """The caller gives up at any moment; the server has what was sent."""
    stored = 0
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as other:
        turns = 100 if SOAK else 5
        for turn in range(50 * turns):
            # On a busy machine more are given up.
            if turn >= turns and stored:
                break
            docs = store.bind(f"owner-{turn}")
            await docs.ensure_collection(PLAIN)

            async def put(
                number: int, owner: str = docs.namespace, patience: int = turn + 1
            ) -> None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.002 * number * patience):
                        await other.put(
                            owner, "people", str(number), {"email": f"e{number}"}
                        )

            puts = [asyncio.create_task(put(number)) for number in range(40)]
            await docs.ensure_collection(EMAILS)
            await asyncio.gather(*puts)
            await asyncio.gather(*other._puts._under_way, return_exceptions=True)
            stored += len(await check_people(docs))
            for number in range(40):
                email = {"email": f"e{number}"}
                with suppress(UniqueViolationError):
                    await docs.put("people", ("again", str(number)), email)
            await check_people(docs)
    assert stored > 0


@pytest.mark.parametrize("spec", [CITIES, PEOPLE])
async def test_a_read_removes_the_hints_that_a_dead_writer_has_left(
    store: JetStreamDocumentStore,
    docs: BoundDocuments,
    nats_url: str,
    bucket: str,
    spec: CollectionSpec,
) -> None:
    await docs.ensure_collection(spec)
    await docs.put("people", "1", {"city": "Bonn"})
    await docs.put("people", "other", {"city": "Kiel"})
    (right,) = [
        hint for hint in await hint_names(store, "owner", "people") if ".1." in hint
    ]
    for id in ("1", "new"):
        # It dies right before the document.
        lives = 1 if spec is PEOPLE else 2
        mortal = store_over(MortalBucket(nats_url, bucket, lives, die_in_process))
        with pytest.raises(Killed):
            await mortal.put("owner", "people", id, {"city": "Ulm"})
        await mortal._bucket.close()
    assert len(await hint_names(store, "owner", "people")) == 4
    # From here on neither of the two can still arrive.
    if spec is PEOPLE:
        await docs.put("people", "other", {"city": "Kiel"})
    else:
        await docs.ensure_collection(
            CollectionSpec("people", (FieldSpec("age", "int"),))
        )
    assert (await docs.find("people", [("city", "eq", "Ulm")])).items == ()
    hints = await hint_names(store, "owner", "people")
    assert len(hints) == 2
    assert right in hints
    await check_people(docs)


async def test_a_read_leaves_the_hints_of_a_writer_who_is_under_way(
    store: JetStreamDocumentStore, docs: BoundDocuments, slow: SlowBucket
) -> None:
    await docs.ensure_collection(CITIES)
    task = await _stop(slow, docs, "create")
    for _ in range(3):
        assert (await docs.find("people", [("city", "eq", "Ulm")])).items == ()
    slow.go_on.set()
    await task
    assert len((await docs.find("people", [("city", "eq", "Ulm")])).items) == 1
