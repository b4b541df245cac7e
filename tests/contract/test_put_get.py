from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jskv_saver import CollectionSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    DocumentNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    VersionConflictError,
)

NOT_VERSIONS = [-1, True, False, 1.0, "1", 2**63]


async def test_a_put_replaces_the_whole_document(docs: BoundDocuments) -> None:
    await docs.put("notes", "a", {"old": 1, "both": 1})
    stored = await docs.put("notes", "a", {"new": 2, "both": 2})
    assert stored.data == {"new": 2, "both": 2}
    assert await docs.get("notes", "a") == stored
    assert await docs.count("notes") == 1


async def test_a_put_returns_what_a_get_returns(docs: BoundDocuments) -> None:
    first = await docs.put("notes", "a", {"n": 1})
    assert await docs.get("notes", "a") == first
    second = await docs.put("notes", "a", {"n": 2})
    assert await docs.get("notes", "a") == second
    found = await docs.find("notes")
    assert found.items == (second,)


async def test_the_empty_document_is_one(docs: BoundDocuments) -> None:
    await docs.put("notes", "a", {})
    assert (await docs.get("notes", "a")).data == {}


async def test_versions_grow_over_the_whole_store(
    store: DocumentStore, docs: BoundDocuments
) -> None:
    await store.ensure_collection("other", CollectionSpec("notes"))
    versions = [
        (await docs.put("notes", "a", {})).version,
        (await docs.put("notes", "b", {})).version,
        (await docs.put("tags", "a", {})).version,
        (await store.put("other", "notes", "a", {})).version,
        (await docs.put("cp", "a", {})).version,
        (await docs.put("notes", "a", {})).version,
        (await docs.put("notes", "a", {})).version,
    ]
    assert versions == sorted(set(versions))
    assert versions[0] > 0
    assert all(type(version) is int for version in versions)


async def test_a_recreated_document_has_a_greater_version(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", "a", {})
    await docs.delete("notes", "a")
    second = await docs.put("notes", "a", {}, if_version=0)
    assert second.version > first.version
    assert second.created_at >= first.created_at
    assert second.created_at == second.updated_at
    with pytest.raises(VersionConflictError):
        await docs.put("notes", "a", {}, if_version=first.version)


async def test_times_are_aware_and_in_utc(docs: BoundDocuments) -> None:
    before = datetime.now(UTC)
    stored = await docs.put("notes", "a", {})
    after = datetime.now(UTC)
    leeway = timedelta(seconds=5)
    for time in (stored.created_at, stored.updated_at):
        assert time.utcoffset() == timedelta(0)
        assert before - leeway <= time <= after + leeway


async def test_creation_time_survives_updates(docs: BoundDocuments) -> None:
    first = await docs.put("notes", "a", {"n": 1})
    assert first.created_at <= first.updated_at
    second = await docs.put("notes", "a", {"n": 2})
    third = await docs.put("notes", "a", {"n": 3}, if_version=second.version)
    assert second.created_at == third.created_at == first.created_at
    assert first.updated_at <= second.updated_at <= third.updated_at
    assert (await docs.get("notes", "a")).created_at == first.created_at


async def test_create_only_and_fenced_puts_have_their_own_time(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", ("a", "b"), {}, if_version=0)
    assert first.created_at == first.updated_at
    second = await docs.put("notes", ("a", "b"), {}, if_latest=("a", first.version))
    assert second.created_at == second.updated_at
    assert await docs.get("notes", ("a", "b")) == second


async def test_in_the_savers_collections_every_put_has_its_own_time(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("wr", "a", {"n": 1})
    assert first.created_at == first.updated_at
    for if_version in (None, first.version):
        again = await docs.put("wr", f"a{if_version}", {})
        again = await docs.put("wr", f"a{if_version}", {}, if_version=again.version)
        assert again.created_at == again.updated_at
    second = await docs.put("wr", "a", {"n": 2})
    assert second.created_at == second.updated_at
    assert await docs.get("wr", "a") == second


async def test_version_0_creates_only(docs: BoundDocuments) -> None:
    first = await docs.put("notes", "a", {"n": 1}, if_version=0)
    with pytest.raises(VersionConflictError) as caught:
        await docs.put("notes", "a", {"n": 2}, if_version=0)
    assert caught.value.expected == 0
    assert caught.value.actual in (None, first.version)
    assert await docs.get("notes", "a") == first


async def test_a_version_replaces_only_that_version(docs: BoundDocuments) -> None:
    first = await docs.put("notes", "a", {"n": 1})
    second = await docs.put("notes", "a", {"n": 2}, if_version=first.version)
    assert second.version > first.version
    for stale in (first.version, 0, second.version + 1, 2**63 - 1):
        with pytest.raises(VersionConflictError) as caught:
            await docs.put("notes", "a", {"n": 3}, if_version=stale)
        assert caught.value.expected == stale
        assert caught.value.actual in (None, second.version)
    assert await docs.get("notes", "a") == second


async def test_a_version_of_an_absent_document_is_a_conflict(
    docs: BoundDocuments,
) -> None:
    with pytest.raises(VersionConflictError) as caught:
        await docs.put("notes", "a", {}, if_version=1)
    assert caught.value.expected == 1
    assert caught.value.actual in (None, 0)
    stored = await docs.put("notes", "a", {})
    await docs.delete("notes", "a")
    with pytest.raises(VersionConflictError):
        await docs.put("notes", "a", {}, if_version=stored.version)
    assert await docs.count("notes") == 0


@pytest.mark.parametrize("version", NOT_VERSIONS, ids=repr)
async def test_what_is_not_a_version_is_refused(
    docs: BoundDocuments, version: Any
) -> None:
    stored = await docs.put("notes", "a", {"n": 1})
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", "a", {}, if_version=version)
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", "a", {}, if_latest=("a", version))
    with pytest.raises(InvalidRequestError):
        await docs.delete("notes", "a", if_version=version)
    with pytest.raises(InvalidRequestError):
        await docs.delete("notes", "a", below=version)
    if version is not False:
        with pytest.raises(InvalidRequestError):
            await docs.put_many([("notes", "a", {}, version)])
    assert await docs.get("notes", "a") == stored


async def test_of_concurrent_creators_exactly_one_wins(
    store: DocumentStore, second: DocumentStore, docs: BoundDocuments
) -> None:
    results = await asyncio.gather(
        *(
            handle.put("owner", "notes", "a", {"n": n}, if_version=0)
            for n, handle in enumerate([store, second] * 5)
        ),
        return_exceptions=True,
    )
    winners = [result for result in results if not isinstance(result, BaseException)]
    losers = [result for result in results if isinstance(result, BaseException)]
    assert [await docs.get("notes", "a")] == winners
    assert len(losers) == 9
    assert all(isinstance(loser, VersionConflictError) for loser in losers)


async def test_concurrent_compare_and_set_loses_no_update(
    store: DocumentStore, second: DocumentStore, docs: BoundDocuments
) -> None:
    await docs.put("notes", "counter", {"n": 0})

    async def increment(handle: DocumentStore) -> None:
        while True:
            seen = await handle.get("owner", "notes", "counter")
            try:
                await handle.put(
                    "owner",
                    "notes",
                    "counter",
                    {"n": seen.data["n"] + 1},
                    if_version=seen.version,
                )
            except VersionConflictError:
                continue
            return

    await asyncio.gather(*(increment(handle) for handle in [store, second] * 5))
    assert (await docs.get("notes", "counter")).data == {"n": 10}


async def test_data_goes_in_and_comes_out_as_a_copy(docs: BoundDocuments) -> None:
    given: dict[str, Any] = {"list": [1, {"deep": [2]}]}
    stored = await docs.put("notes", "a", given)
    given["list"][1]["deep"].append("changed")
    stored.data["list"].append("changed")
    (await docs.get("notes", "a")).data["list"].clear()
    (await docs.find("notes")).items[0].data.clear()
    (await docs.get_many([("notes", "a")]))["notes", "a"].data.clear()
    assert (await docs.get("notes", "a")).data == {"list": [1, {"deep": [2]}]}


async def test_data_may_change_the_moment_the_call_yields(
    docs: BoundDocuments,
) -> None:
    given = {"n": [1]}
    putting = asyncio.ensure_future(docs.put("notes", "a", given))
    await asyncio.sleep(0)
    given["n"].append(2)
    await putting
    assert (await docs.get("notes", "a")).data == {"n": [1]}


async def test_data_up_to_the_limit_is_accepted(docs: BoundDocuments) -> None:
    await docs.put("notes", "warm", {})
    blob = b"\xff" * (docs.limits.data - 32)
    await docs.put("notes", "a", {"blob": blob})
    assert (await docs.get("notes", "a")).data == {"blob": blob}


async def test_what_is_too_large_is_refused_and_harms_nothing(
    docs: BoundDocuments,
) -> None:
    stored = await docs.put("notes", "a", {"n": 1})
    blob = b"\xff" * (docs.limits.data * 4)
    for id in ("a", "b"):
        with pytest.raises(DocumentTooLargeError) as caught:
            await docs.put("notes", id, {"blob": blob})
        assert caught.value.size is not None
        assert caught.value.limit is not None
        assert caught.value.size > caught.value.limit >= docs.limits.data
    with pytest.raises(DocumentTooLargeError):
        await docs.put("notes", "b", {"blob": blob}, if_version=0)
    assert await docs.get("notes", "a") == stored
    with pytest.raises(DocumentNotFoundError):
        await docs.get("notes", "b")
