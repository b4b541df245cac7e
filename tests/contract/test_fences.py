from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jskv_saver import ANY
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import InvalidRequestError, VersionConflictError


async def test_fence_0_holds_while_nothing_is_below_the_prefix(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", ("t", "a"), {"n": 1}, if_latest=("t", 0))
    with pytest.raises(VersionConflictError) as caught:
        await docs.put("notes", ("t", "b"), {"n": 2}, if_latest=("t", 0))
    assert caught.value.expected == 0
    assert caught.value.actual in (None, first.version)
    assert list(await docs.ids("notes")) == [("t", "a")]


async def test_a_fence_holds_at_the_greatest_version(docs: BoundDocuments) -> None:
    first = await docs.put("notes", ("t", "b"), {}, if_latest=("t", 0))
    second = await docs.put("notes", ("t", "a"), {}, if_latest=(("t",), first.version))
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "c"), {}, if_latest=("t", first.version))
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "c"), {}, if_latest=("t", second.version + 1))
    third = await docs.put("notes", ("t", "c"), {}, if_latest=("t", second.version))
    assert third.version > second.version > first.version


async def test_an_unfenced_put_moves_the_fence(docs: BoundDocuments) -> None:
    first = await docs.put("notes", ("t", "a"), {}, if_latest=("t", 0))
    second = await docs.put("notes", ("t", "a"), {})
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "b"), {}, if_latest=("t", first.version))
    await docs.put("notes", ("t", "b"), {}, if_latest=("t", second.version))


async def test_only_what_is_strictly_below_counts(
    store: DocumentStore, docs: BoundDocuments
) -> None:
    await docs.put("notes", "t", {})
    await docs.put("notes", ("t2", "a"), {})
    await docs.put("notes", ("", "t", "a"), {})
    await docs.put("tags", ("t", "a"), {})
    await docs.put("cp", ("t", "a"), {})
    await store.put("other", "cp", ("t", "a"), {})
    await docs.put("notes", ("t", "a"), {}, if_latest=("t", 0))
    await docs.put("wr", ("t", "a"), {}, if_latest=("t", 0))


async def test_a_fence_covers_any_depth(docs: BoundDocuments) -> None:
    deep = await docs.put("notes", ("t", "a", "b", "c"), {})
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "d"), {}, if_latest=("t", 0))
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "a", "d"), {}, if_latest=(("t", "a"), 0))
    await docs.put("notes", ("t", "a", "d"), {}, if_latest=(("t", "a"), deep.version))
    await docs.put("notes", ("t", "b", "d"), {}, if_latest=(("t", "b"), 0))


async def test_a_fence_may_be_elsewhere_than_the_document(
    docs: BoundDocuments,
) -> None:
    first = await docs.put("notes", ("t", "a"), {})
    await docs.put("notes", ("u", "a"), {}, if_latest=("t", first.version))
    await docs.put("notes", "t", {}, if_latest=("t", first.version))
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("u", "b"), {}, if_latest=("t", 0))
    assert list(await docs.ids("notes")) == ["t", ("t", "a"), ("u", "a")]


async def test_what_was_deleted_does_not_count(docs: BoundDocuments) -> None:
    first = await docs.put("notes", ("t", "a"), {})
    second = await docs.put("notes", ("t", "b"), {})
    await docs.delete("notes", ("t", "b"))
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "c"), {}, if_latest=("t", second.version))
    third = await docs.put("notes", ("t", "c"), {}, if_latest=("t", first.version))
    await docs.delete("notes", "t", subtree=True)
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "d"), {}, if_latest=("t", third.version))
    await docs.put("notes", ("t", "d"), {}, if_latest=("t", 0))
    await docs.delete_many("notes")
    await docs.put("notes", ("t", "d"), {}, if_latest=("t", 0))


async def test_deleting_an_older_one_leaves_the_fence(docs: BoundDocuments) -> None:
    await docs.put("notes", ("t", "a"), {})
    second = await docs.put("notes", ("t", "b"), {})
    await docs.delete("notes", ("t", "a"), if_version=None)
    await docs.put("notes", ("t", "c"), {}, if_latest=("t", second.version))


async def test_a_refused_fence_writes_nothing(docs: BoundDocuments) -> None:
    stored = await docs.put("notes", ("t", "a"), {"n": 1})
    with pytest.raises(VersionConflictError):
        await docs.put("notes", ("t", "a"), {"n": 2}, if_latest=("t", 0))
    assert await docs.get("notes", ("t", "a")) == stored
    await docs.put("notes", ("t", "a"), {"n": 3}, if_latest=("t", stored.version))
    assert (await docs.get("notes", ("t", "a"))).data == {"n": 3}


async def test_of_concurrent_fenced_writers_exactly_one_wins(
    store: DocumentStore, second: DocumentStore, docs: BoundDocuments
) -> None:
    fence = (("t", ""), 0)
    results = await asyncio.gather(
        *(
            handle.put("owner", "cp", ("t", "", str(n)), {}, if_latest=fence)
            for n, handle in enumerate([store, second] * 5)
        ),
        return_exceptions=True,
    )
    winners = [result for result in results if not isinstance(result, BaseException)]
    losers = [result for result in results if isinstance(result, BaseException)]
    assert [winner.id for winner in winners] == list(await docs.ids("cp"))
    assert len(losers) == 9
    assert all(isinstance(loser, VersionConflictError) for loser in losers)


async def test_hostile_prefixes_fence_only_their_own(docs: BoundDocuments) -> None:
    await docs.put("notes", ("t", "a"), {})
    for segment in ("*", ">", "", ".", "t.a", "t ", "x" * 600):
        await docs.put("notes", (segment, "a"), {}, if_latest=(segment, 0))


async def test_the_two_conditions_exclude_each_other(docs: BoundDocuments) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", ("t", "a"), {}, if_version=0, if_latest=("t", 0))
    assert await docs.count("notes") == 0


@pytest.mark.parametrize(
    "fence",
    [
        (),
        ("t",),
        ("t", 0, 0),
        "t",
        0,
        ((), 0),
        (("t", ANY), 0),
        (None, 0),
        ("t", None),
        ("t\0", 0),
    ],
    ids=repr,
)
async def test_what_is_not_a_fence_is_refused(docs: BoundDocuments, fence: Any) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.put("notes", ("t", "a"), {}, if_latest=fence)
    assert await docs.count("notes") == 0
