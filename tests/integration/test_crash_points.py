"""A writer dies between any two of its messages: what remains answers as it should."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.integration.stores import (
    PEOPLE,
    SCENARIOS,
    Killed,
    MortalBucket,
    check_people,
    die_in_process,
    every_key,
    settle_in,
    store_over,
)
from tests.soak import SOAK

from jskv_saver import CollectionSpec, FieldSpec, JetStreamDocumentStore
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import (
    CollectionNotFoundError,
    IncompatibleDeclarationError,
    UniqueViolationError,
)

MOST = 40
"""More messages than any call sends."""


async def _killed(
    nats_url: str,
    bucket: str,
    lives: int,
    call: Callable[[JetStreamDocumentStore], Awaitable[Any]],
) -> bool:
    """Make a call that dies after so many messages; whether it came to that."""
    mortal = store_over(MortalBucket(nats_url, bucket, lives, die_in_process))
    try:
        with suppress(UniqueViolationError):
            await call(mortal)
    except Killed:
        return True
    finally:
        await mortal.close()
    return False


async def _use(docs: BoundDocuments) -> None:
    """The collection works as if nothing had been."""
    # A removal that its dead writer announced is finished by the next writer.
    await docs.put("people", "next", {"city": "Bonn"})
    everyone = await check_people(docs)
    for number in range(8):
        email = f"e{number}"
        free = all(each.data.get("email") != email for each in everyone.values())
        put = docs.put("people", ("try", email), {"email": email, "city": "Ulm"})
        if free:
            await put
        else:
            with pytest.raises(UniqueViolationError):
                await put
    everyone = await check_people(docs)
    for id in everyone:
        await docs.delete("people", id)
    assert await check_people(docs) == {}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_dead_writer_leaves_answers_right(
    store: JetStreamDocumentStore, nats_url: str, bucket: str, name: str
) -> None:
    outcomes = set()
    # Where each document's removal is like the next one's, not each message of all.
    for lives in range(0, MOST, 3 if "many" in name or "subtree" in name else 1):
        docs = store.bind(f"owner-{lives}")
        await settle_in(docs)
        before = await check_people(docs)
        died = await _killed(
            nats_url,
            bucket,
            lives,
            lambda mortal, docs=docs: SCENARIOS[name](mortal.bind(docs.namespace)),  # type: ignore[misc]
        )
        after = await check_people(docs)
        changed = {
            id: after.get(id)
            for id in before.keys() | after.keys()
            if before.get(id) != after.get(id)
        }
        outcomes.add(len(changed))
        await _use(docs)
        if not died:
            break
    assert not died
    # All or nothing, of each document.
    most = {"delete many": 3, "delete subtree": 2}.get(name, 1)
    assert outcomes <= set(range(most + 1))


async def test_a_process_killed_for_real_leaves_answers_right(
    store: JetStreamDocumentStore, nats_url: str, bucket: str
) -> None:
    script = str(Path(__file__).parent / "stores.py")
    for lives in range(MOST):
        docs = store.bind(f"owner-{lives}")
        await settle_in(docs)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            script,
            nats_url,
            bucket,
            docs.namespace,
            "update",
            str(lives),
        )
        code = await child.wait()
        await _use(docs)
        if code == 0:
            break
        assert code == -9
    assert code == 0
    assert lives > 4


EXTENSIONS = {
    "indexed": CollectionSpec("people", (FieldSpec("city", "string", indexed=True),)),
    "unique": CollectionSpec("people", (FieldSpec("email", "string", unique=True),)),
    "all": PEOPLE,
}


@pytest.mark.parametrize("extension", EXTENSIONS)
async def test_a_dead_declarer_leaves_a_declaration_that_can_be_finished(
    store: JetStreamDocumentStore, nats_url: str, bucket: str, extension: str
) -> None:
    # The more fields, the more messages that are like one another.
    for lives in range(0, MOST, 1 if SOAK or extension == "indexed" else 2):
        docs = store.bind(f"owner-{lives}")
        await docs.ensure_collection(CollectionSpec("people"))
        for number in range(3):
            await docs.put(
                "people", str(number), {"email": f"e{number}", "city": "Ulm"}
            )
        died = await _killed(
            nats_url,
            bucket,
            lives,
            lambda mortal, docs=docs: mortal.ensure_collection(  # type: ignore[misc]
                docs.namespace, EXTENSIONS[extension]
            ),
        )
        await check_people(docs)
        await docs.put("people", "4", {"email": "e4", "city": "Bonn"})
        await docs.put("people", "1", {"email": "e1", "city": "Kiel"})
        await check_people(docs)
        await docs.ensure_collection(PEOPLE)
        await _use(docs)
        if not died:
            break
    assert not died


async def test_a_dead_declarer_does_not_stand_in_the_way_of_what_it_cannot_have(
    store: JetStreamDocumentStore, nats_url: str, bucket: str
) -> None:
    """It dies while building; then a document comes that breaks the declaration."""
    docs = store.bind("owner")
    await docs.ensure_collection(CollectionSpec("people"))
    await docs.put("people", "1", {"email": "same"})

    async def declare(mortal: JetStreamDocumentStore) -> None:
        await mortal.ensure_collection("owner", PEOPLE)

    assert await _killed(nats_url, bucket, 1, declare)
    # Such a one may have been on its way when the declaration came.
    body = await store._bucket.get("people./owner.d.1")
    assert body is not None
    await store._bucket.put("people./owner.d.2", body.value)
    with pytest.raises(IncompatibleDeclarationError):
        await docs.ensure_collection(PEOPLE)
    await docs.put("people", "3", {"email": "same"})
    assert await docs.count("people", [("email", "eq", "same")]) == 3


async def test_a_dead_dropper_leaves_nothing_to_the_next_collection(
    store: JetStreamDocumentStore, nats_url: str, bucket: str
) -> None:
    for lives in range(MOST):
        docs = store.bind(f"owner-{lives}")
        await settle_in(docs)
        died = await _killed(
            nats_url,
            bucket,
            lives,
            lambda mortal, docs=docs: mortal.drop_collection(docs.namespace, "people"),  # type: ignore[misc]
        )
        if lives == 0:
            assert await docs.collections() == ["people"]
            await docs.drop_collection("people")
        assert await docs.collections() == []
        with pytest.raises(CollectionNotFoundError):
            await docs.get("people", "1")
        with pytest.raises(CollectionNotFoundError):
            await docs.drop_collection("people")
        await docs.ensure_collection(PEOPLE)
        assert await check_people(docs) == {}
        await docs.put("people", "1", {"email": "e1"})
        await _use(docs)
        await docs.drop_collection("people")
        assert await every_key(store, docs.namespace, "people") == []
        if not died:
            break
    assert not died
