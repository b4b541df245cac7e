"""Listings: newest id first, filtered, bounded, beside writers."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest
from tests.checkpoint.saving import (
    at,
    get,
    id_of,
    ids,
    listed,
    numbered,
    parent_of,
    put,
    put_chain,
)
from tests.patience import PATIENCE, until
from tests.shown import shown

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import InvalidRequestError


async def test_the_greatest_id_comes_first_whatever_arrived_last(
    saver: DocumentCheckpointSaver,
) -> None:
    for id in "52917":
        await put(saver, id, {"x": id})

    found = await listed(saver, at())

    assert [id_of(f) for f in found] == ["9", "7", "5", "2", "1"]
    assert [f.checkpoint["channel_values"]["x"] for f in found] == list("97521")


async def test_each_row_is_what_get_gives(saver: DocumentCheckpointSaver) -> None:
    parent = None
    for n, id in enumerate(numbered(20)):
        state = {"keep": "k" * 700, "grow": ["v" * 90] * n, "small": n}
        await put(saver, id, state, parent=parent, step=n, v=4 if n % 2 else 2)
        await saver.aput_writes(at(id), [("a", n), ("b", [n])], f"task {n}", "~2")
        await saver.aput_writes(at(id), [("a", n)], "other", "~1")
        parent = id

    rows = await listed(saver, at())

    assert len(rows) == 20
    for row in rows:
        assert row == await get(saver, id_of(row))


async def test_all_threads_and_namespaces_newest_id_first(
    saver: DocumentCheckpointSaver,
) -> None:
    places = [("t1", ""), ("t2", "c:1"), ("t1", "c:1"), ("t3", "")]
    for n, (thread, ns) in enumerate(places * 3):
        await put(saver, f"{n:02}", thread=thread, ns=ns)

    assert await ids(saver) == [f"{n:02}" for n in reversed(range(12))]
    assert await ids(saver, None, limit=5) == ["11", "10", "09", "08", "07"]
    assert await ids(saver, None, before=at("03")) == ["02", "01", "00"]
    assert await ids(saver, at(thread="t1", ns=None)) == [
        "10",
        "08",
        "06",
        "04",
        "02",
        "00",
    ]
    assert await ids(saver, at(thread="t1", ns="")) == ["08", "04", "00"]


async def test_a_checkpoint_id_in_the_config_selects_it(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, numbered(3))
    await put_chain(saver, numbered(3), ns="c:1")

    assert await ids(saver, at("000001")) == ["000001"]
    assert await ids(saver, at("000001", ns=None)) == ["000001"] * 2
    assert await ids(saver, at("000009")) == []


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 4, 5, 6, 1000])
async def test_the_limit_counts_what_is_given(
    saver: DocumentCheckpointSaver, limit: int | None
) -> None:
    await put_chain(saver, numbered(5))

    assert await ids(saver, at(), limit=limit) == numbered(5)[::-1][:limit]


@pytest.mark.parametrize("limit", [-1, -100, 1.5, "1"])
async def test_a_limit_that_is_none_is_refused(
    saver: DocumentCheckpointSaver, limit: Any
) -> None:
    await put(saver, "1")

    with pytest.raises(InvalidRequestError, match="limit"):
        await listed(saver, at(), limit=limit)


async def test_the_limit_counts_matches_only(saver: DocumentCheckpointSaver) -> None:
    await put_chain(saver, numbered(20))

    assert await ids(saver, at(), filter={"step": 3}, limit=1) == ["000003"]
    assert await ids(saver, at(), filter={"step": 3}, limit=5) == ["000003"]
    assert await ids(saver, at(), filter={"source": "loop"}, limit=2) == [
        "000019",
        "000018",
    ]
    assert await ids(saver, at(), filter={}, limit=1) == ["000019"]


async def test_before_is_a_bound_and_need_not_exist(
    saver: DocumentCheckpointSaver,
) -> None:
    for id in "135":
        await put(saver, id, ns="sub:1")

    async def before(id: str, **options: Any) -> list[str]:
        return await ids(saver, at(ns="sub:1"), before=at(id, ns="other"), **options)

    assert await before("4") == ["3", "1"]
    assert await before("4", limit=1) == ["3"]
    assert await before("3") == ["1"]
    assert await before("1") == []
    assert await before("9") == ["5", "3", "1"]
    assert await ids(saver, at(ns="sub:1"), before=at()) == ["5", "3", "1"]


METADATA: dict[str, dict[str, Any]] = {
    "nested": {"m": {"a": 1, "b": [1, {"c": 2}]}},
    "dotted": {"a.b": 1},
    "path": {"a": {"b": 1}},
    "int": {"x": 1},
    "text": {"x": "1"},
    "true": {"x": True},
    "false": {"x": False},
    "null": {"x": None},
    "zero": {"x": 0},
    "empty": {"x": ""},
    "big": {"x": 2**53},
    "bigger": {"x": 2**53 + 1},
    "float": {"x": 2.5},
    "list": {"x": [1, 2]},
    "user": {"user": "u 1", "x": "*"},
}


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        ({"m": {"b": [1, {"c": 2}], "a": 1}}, {"nested"}),
        ({"m": {"a": 1}}, set()),
        ({"m": {"a": True, "b": [1, {"c": 2}]}}, set()),
        ({"a.b": 1}, {"dotted"}),
        ({"a": {"b": 1}}, {"path"}),
        ({"x": 1}, {"int"}),
        ({"x": 1.0}, {"int"}),
        ({"x": "1"}, {"text"}),
        ({"x": True}, {"true"}),
        ({"x": False}, {"false"}),
        ({"x": None}, {"null"}),
        ({"x": 0}, {"zero"}),
        ({"x": ""}, {"empty"}),
        ({"x": 2**53}, {"big"}),
        ({"x": float(2**53)}, {"big"}),
        ({"x": 2**53 + 1}, {"bigger"}),
        ({"x": 2.5}, {"float"}),
        ({"x": [1, 2]}, {"list"}),
        ({"x": (1, 2)}, {"list"}),
        ({"x": [2, 1]}, set()),
        ({"x": "*"}, {"user"}),
        ({"x": float("nan")}, set()),
        ({"user": "u 1", "x": "*"}, {"user"}),
        ({"user": "u 1", "x": "1"}, set()),
        ({"absent": None}, set()),
        ({"source": "loop"}, set(METADATA)),
        ({}, set(METADATA)),
    ],
    ids=shown,
)
async def test_a_filter_is_structural_equality_of_each_key(
    saver: DocumentCheckpointSaver, filter: dict[str, Any], wanted: set[str]
) -> None:
    for name, metadata in METADATA.items():
        await put(saver, name, **metadata)

    assert set(await ids(saver, at(), filter=filter)) == wanted


async def test_the_config_s_metadata_can_be_filtered_on(
    saver: DocumentCheckpointSaver,
) -> None:
    config = at(run_id="r1", user="u", __hidden="x", an_object=object())
    config["metadata"] = {"assistant_id": "a", "thread_id": "wrong", "n": 7}
    await saver.aput(config, (await _stored(saver)).checkpoint, {"step": 1}, {})

    (found,) = await listed(saver, at(), filter={"run_id": "r1"})
    assert found.metadata == {
        "step": 1,
        "run_id": "r1",
        "user": "u",
        "assistant_id": "a",
        "n": 7,
    }
    assert await ids(saver, at(), filter={"assistant_id": "a", "n": 7}) == ["1"]
    assert await ids(saver, at(), filter={"thread_id": "wrong"}) == []


async def _stored(saver: DocumentCheckpointSaver) -> Any:
    await put(saver, "1", thread="elsewhere")
    return await get(saver, thread="elsewhere")


async def test_a_large_metadata_value_can_be_filtered_on(
    saver: DocumentCheckpointSaver,
) -> None:
    for n, id in enumerate(numbered(4)):
        await put(saver, id, about={"text": "x" * 90_000 + str(n)})

    wanted = {"about": {"text": "x" * 90_000 + "2"}}
    assert await ids(saver, at(), filter=wanted) == ["000002"]


async def test_eleven_hundred_checkpoints_are_all_listed(
    saver: DocumentCheckpointSaver,
) -> None:
    names = numbered(1100)
    for start in range(0, 1100, 100):
        await asyncio.gather(
            *(
                put(saver, id, {"x": id}, parent=f"{int(id) - 1:06}", ns=ns, step=n)
                for n, id in enumerate(names[start : start + 100], start)
                for ns in (f"ns {n % 4}",)
            )
        )

    found = await listed(saver, at(ns=None))
    assert [id_of(f) for f in found] == names[::-1]
    assert all(f.checkpoint["channel_values"] == {"x": id_of(f)} for f in found)
    assert await ids(saver, at(ns=None), before=at("000004")) == numbered(4)[::-1]
    assert await ids(saver, at(ns=None), filter={"step": 2}) == ["000002"]
    assert await ids(saver, at(ns=None), limit=1050) == names[:49:-1]


async def test_a_chain_of_eleven_hundred_in_one_namespace_is_all_listed(
    saver: DocumentCheckpointSaver,
) -> None:
    names = numbered(1100)
    await put_chain(saver, names)

    found = await listed(saver, at())
    assert [id_of(f) for f in found] == names[::-1]
    assert [parent_of(f) for f in found] == [*names[-2::-1], None]
    assert await ids(saver, at(), before=at("000004")) == numbered(4)[::-1]
    assert (await get(saver)).checkpoint["channel_values"] == {"n": 1099}


async def test_a_half_read_listing_stands_in_nobody_s_way(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(300))
    listing = saver.alist(at())
    first = await anext(listing)
    async with asyncio.timeout(PATIENCE):
        await put(saver, "900000", {"x": 1}, parent="000299")
        await put(other, "900001", {"x": 2}, parent="900000")
        await saver.aput_writes(at("900001"), [("a", 1)], "task")
    rest = [id_of(found) async for found in listing]

    assert [id_of(first), *rest] == numbered(300)[::-1]


async def test_a_listing_beside_a_prune_and_a_delete_ends_well(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(600))
    listing = saver.alist(at())
    first = await anext(listing)
    await other.aprune(["t"])
    rest = [id_of(found) async for found in listing]
    assert id_of(first) == "000599"
    # What was read before the prune is still given, nothing else.
    assert rest == numbered(600)[::-1][1 : len(rest) + 1]
    assert len(rest) < 512

    listing = saver.alist(at())
    await anext(listing)
    await other.adelete_thread("t")
    assert [found async for found in listing] == []


async def test_listings_that_are_abandoned_cost_nothing(
    saver: DocumentCheckpointSaver,
) -> None:
    await put_chain(saver, numbered(30))
    tasks = len(asyncio.all_tasks())
    for _ in range(150):
        assert id_of(await anext(saver.alist(at()))) == "000029"

    async with asyncio.timeout(PATIENCE):
        await put(saver, "900000")
    await until(lambda: len(asyncio.all_tasks()) == tasks)


async def test_a_listing_beside_writers_is_always_whole(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(40), thread="quiet")
    done = asyncio.Event()

    async def write() -> None:
        for n in itertools.count():
            if done.is_set():
                return
            await put(other, f"{n:06}", {"x": n}, thread="busy")
            await other.aput_writes(at(f"{n:06}", thread="busy"), [("a", n)], "t")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        for _ in range(200):
            assert await ids(saver, at(thread="quiet")) == numbered(40)[::-1]
        done.set()


@pytest.mark.parametrize("seed", range(6))
async def test_a_short_listing_is_the_beginning_of_the_long_one(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, seed: int
) -> None:
    """Also after puts out of order, removals, and records that are gone by hand."""
    dice = random.Random(seed)
    for turn in range(12):
        for _ in range(dice.randrange(1, 8)):
            id = f"{dice.randrange(1000):04}"
            await put(dice.choice((saver, other)), id, run_id=id[-1], thread="t")
        if turn % 4 == 3:
            await other.adelete_for_runs([str(dice.randrange(10))])
        if turn == 5:
            await saver.aprune(["t"])
        if turn == 9:
            (newest, *_) = await ids(other, at())
            path = ("default", "t", "", newest)
            await other.store.delete("default", "cp", path)
        whole = await ids(dice.choice((saver, other)), at())
        assert whole == sorted(whole, reverse=True)
        for limit in (1, dice.randrange(2, 12), 12, 13):
            for each in (saver, other):
                assert await ids(each, at(), limit=limit) == whole[:limit]
