"""Verify and repair of users' collections: documents, declarations, index keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client

from jskv_saver import CollectionSpec, FieldSpec, JetStreamDocumentStore
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.declarations import Declarations
from jskv_saver.errors import CollectionNotFoundError, InvalidRequestError

OWNER = "my_app"
PLAIN = CollectionSpec("notes", (FieldSpec("state", "string", indexed=True),))
UNIQUE = CollectionSpec(
    "tickets",
    (
        FieldSpec("state", "string", indexed=True),
        FieldSpec("number", "int", unique=True),
        FieldSpec("desk", "string"),
    ),
    (("desk", "number"),),
)

Store = JetStreamDocumentStore
Damage = Callable[[Store, Bucket], Awaitable[set[tuple[str, str]]]]


@pytest.fixture
async def store(nats_url: str, bucket: str) -> AsyncIterator[Store]:
    async with Store.from_conn_string(nats_url, bucket=bucket) as opened:
        await opened.ensure_collection(OWNER, PLAIN)
        await opened.ensure_collection(OWNER, UNIQUE)
        await opened.ensure_collection("another", PLAIN)
        for n in range(5):
            data = {"state": "open", "number": n, "desk": "a"}
            await opened.put(OWNER, "tickets", ("desk", f"{n}"), data)
            await opened.put(OWNER, "notes", f"{n}", {"state": "open"})
        yield opened


@pytest.fixture
async def kv(client: Client, bucket: str) -> AsyncIterator[Bucket]:
    kv = Bucket(client, bucket)
    yield kv
    await kv.close()


async def look(store: Store) -> set[tuple[str, str]]:
    found = await store.verify(OWNER, settle=0)
    return {(each.kind, each.key) for each in found}


async def _hint(kv: Bucket, field: str, collection: str = "tickets") -> str:
    return (await kv.names([keys.index_filter(OWNER, collection, field)]))[0]


async def test_of_what_is_whole_nothing_is_found(store: Store) -> None:
    await store.put(OWNER, "tickets", ("desk", "1"), {"state": "done", "number": 7})
    await store.delete(OWNER, "notes", "2")
    await store.put(OWNER, "notes", "9", {"state": None})
    # The notice of a thread that was deleted looks like a document's key.
    await store.put(OWNER, "cp", ("d", "thread", "", "1"), {"x": 1})
    await store.delete(
        OWNER,
        ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn"),
        ("d", "thread"),
        subtree=True,
    )
    assert await store.verify(OWNER) == []
    assert await store.verify("another") == []
    assert await store.verify("nobody") == []
    assert await store.owners() == ["another", OWNER]
    for settle in (-1, "1", True):
        with pytest.raises(InvalidRequestError, match="settle"):
            await store.verify(OWNER, settle=settle)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="namespace"):
        await store.verify("")


async def _hint_gone(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    gone = [await _hint(kv, "number"), await _hint(kv, "state", "notes")]
    for hint in gone:
        await kv.purge(hint)
    return {("missing-index", hint) for hint in gone}


async def _hint_of_nothing(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    hints = [
        keys.index_key(OWNER, "notes", "state", ["3open"], ("77", "abcdef")),
        keys.index_key(OWNER, "notes", "state", ["3closed"], ("1", "abcdef")),
        keys.index_key(OWNER, "tickets", "state", ["3closed"], ("desk", "1", "abcde")),
    ]
    for hint in hints:
        await kv.put(hint, b"1")
    # Whoever put them is gone: what he has announced was put since.
    await store.put(OWNER, "tickets", ("desk", "9"), {"state": "open", "number": 9})
    await store.put(OWNER, "notes", "9", {"state": "open"})
    return {("stale-index", hint) for hint in hints}


async def _declaration_that_died(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    async def dies(*_: Any) -> None:
        raise ConnectionAbortedError

    more = CollectionSpec("notes", (FieldSpec("place", "string", indexed=True),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Declarations, "_backfill", dies)
        with pytest.raises(ConnectionAbortedError):
            await store.ensure_collection(OWNER, more)
    return {("unfinished", keys.catalog_key(OWNER, "notes"))}


async def _drop_that_died(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    async def dies(*_: Any) -> None:
        raise ConnectionAbortedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Declarations, "_sweep", dies)
        with pytest.raises(ConnectionAbortedError):
            await store.drop_collection(OWNER, "notes")
    return {("unfinished", keys.catalog_key(OWNER, "notes"))}


async def _declaration_gone(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    await kv.purge(keys.catalog_key(OWNER, "notes"))
    return {("unreachable", f"notes./{OWNER}")}


MENDED: list[Damage] = [
    _hint_gone,
    _hint_of_nothing,
    _declaration_that_died,
    _drop_that_died,
    _declaration_gone,
]


@pytest.mark.parametrize("damage", MENDED, ids=lambda each: each.__name__)
async def test_what_is_left_over_is_found_and_repaired(
    store: Store, kv: Bucket, damage: Damage
) -> None:
    expected = await damage(store, kv)
    assert await look(store) == expected
    await store.repair("another")
    assert await look(store) == expected
    await store.repair(OWNER)
    assert await store.verify(OWNER, settle=0) == []
    # Every document is found by its index again.
    for n in range(5):
        page = await store.find(OWNER, "tickets", [("number", "eq", n)])
        assert [document.id for document in page.items] == [("desk", f"{n}")]
    if damage in (_drop_that_died, _declaration_gone):
        with pytest.raises(CollectionNotFoundError):
            await store.count(OWNER, "notes")
        await store.ensure_collection(OWNER, PLAIN)
        assert await store.count(OWNER, "notes") == 0
    else:
        assert await store.count(OWNER, "notes", [("state", "eq", "open")]) >= 5
    assert await look(store) == set()


async def _damaged_document(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    key = keys.document_key(OWNER, "notes", ("1",))
    entry = await kv.get(key)
    assert entry is not None
    await kv.put(key, entry.value[:-1] + b"\0")
    return {("corrupt", key)}


async def _newer_document(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    key = keys.document_key(OWNER, "notes", ("1",))
    entry = await kv.get(key)
    assert entry is not None
    await kv.put(key, b"\x63" + entry.value[1:])
    return {("unsupported-format", key)}


async def _damaged_declaration(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    key = keys.catalog_key(OWNER, "notes")
    await kv.put(key, b"\1 nothing of the kind, whatever it may be")
    return {("corrupt", key)}


async def _two_of_one_number(store: Store, kv: Bucket) -> set[tuple[str, str]]:
    entry = await kv.get(keys.document_key(OWNER, "tickets", ("desk", "1")))
    assert entry is not None
    key = keys.document_key(OWNER, "tickets", ("desk", "10"))
    await kv.put(key, entry.value)
    await store.repair(OWNER)
    return {("duplicate", key)}


async def test_keys_of_other_programs_are_told_and_left(
    store: Store, kv: Bucket
) -> None:
    foreign = [f"ix./{OWNER}.notes.state", f"ix./{OWNER}.notes.-x-.3open.1.abc"]
    other = f"UPPER=./{OWNER}.d.x"
    for key in (*foreign, other):
        await kv.put(key, b"1")
    found = await look(store)
    assert {("foreign", key) for key in foreign} <= found
    assert ("unreachable", f"UPPER=./{OWNER}") in found
    await store.repair(OWNER)
    assert await look(store) == found


ERRORS: list[Damage] = [
    _damaged_document,
    _newer_document,
    _damaged_declaration,
    _two_of_one_number,
]


@pytest.mark.parametrize("damage", ERRORS, ids=lambda each: each.__name__)
async def test_damage_is_an_error_that_a_repair_leaves(
    store: Store, kv: Bucket, damage: Damage
) -> None:
    expected = await damage(store, kv)
    assert await look(store) == expected
    await store.repair(OWNER)
    found = await store.verify(OWNER, settle=0)
    assert {(each.kind, each.key) for each in found} == expected
    assert {each.severity for each in found} == {"error"}


async def test_beside_writers_nothing_is_found(store: Store, nats_url: str) -> None:
    stop = asyncio.Event()
    written = 0

    async def write(collection: str, name: int) -> None:
        nonlocal written
        n = 0
        while not stop.is_set():
            id = ("w", f"{name} {n % 3}")
            data = {"state": f"s{n % 5}", "number": 1000 * name + n, "desk": "w"}
            await store.put(OWNER, collection, id, data)
            n += 1
            written += 1
            if n % 4 == 0:
                await store.delete(OWNER, collection, id)

    writing = [
        asyncio.create_task(write(collection, name))
        for name, collection in enumerate(("notes", "tickets", "notes"), 1)
    ]
    try:
        while written < 150:
            assert await store.verify(OWNER, settle=0.2) == []
            await store.repair(OWNER)
    finally:
        stop.set()
        await asyncio.gather(*writing)
    await store.repair(OWNER)
    assert await store.verify(OWNER, settle=0) == []
