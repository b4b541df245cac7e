"""What a listing leaves out, and what it must not; readers that do not go on."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import math
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    checkpoint,
    get,
    id_of,
    ids,
    listed,
    meta,
    numbered,
    put,
    put_chain,
)

from jskv_saver import DocumentCheckpointSaver

Saver = DocumentCheckpointSaver

FOREIGN: list[dict[str, Any]] = [
    {"user": {"$ne": None}},
    {"user": {"$gt": ""}},
    {"$where": "1"},
    {"$or": [{"user": "u"}]},
    {"user": "u' OR '1'='1"},
    {"user') = '\"u\"' OR ('1": "1"},
    {"x' OR 1=1 --": 1},
    {"$.user": "u"},
    {"user": "*"},
    {"user": "u*"},
    {"user": "{u}"},
    {"user": "u|v"},
    {"user": "%"},
    {"user": "_"},
    {"user": ["u"]},
    {"user": {"u": 1}},
    {"us*": "u"},
    {"USER": "u"},
    {"user ": "u"},
    {"": "u"},
    {"user.name": "u"},
    {"deep": {"a": [1, {"b": 2}]}},
    {"deep": {"a": [1, {"b": True}], "c": None}},
    {"deep": {"a": [True, {"b": 2}], "c": None}},
    {"deep": {"a": [{"b": 2}, 1], "c": None}},
    {"deep": {"a": [1, {"b": 2}], "c": None, "d": None}},
    {"deep.c": None},
    {"absent": None},
    {"step": "1"},
    {"step": True},
    {"thread_id": "t"},
    {"checkpoint_id": "1"},
    {"checkpoint_ns": ""},
    {"number": math.nan},
    {"number": -math.inf},
    {"huge": 2**63 - 2},
    {"huge": float(2**63 - 1)},
    {"bytes": "\x00\xff"},
    {"when": "2026-01-02"},
]
"""Filters that match nothing here; elsewhere they are operators, paths or patterns."""

ABOUT: dict[str, Any] = {
    "user": "u",
    "deep": {"a": [1, {"b": 2}], "c": None},
    "number": math.inf,
    "huge": 2**63 - 1,
    "bytes": b"\x00\xff",
    "when": datetime.date(2026, 1, 2),
    "not a number": math.nan,
    "step": 1,
}


async def test_a_filter_is_no_query_language(saver: Saver) -> None:
    await put(saver, "1", **ABOUT)
    for filter in FOREIGN:
        assert await ids(saver, at(), filter=filter) == [], filter
        assert await ids(saver, at(), filter={"user": "u", **filter}, limit=1) == []
    for name, value in ABOUT.items():
        wanted = [] if name == "not a number" else ["1"]
        assert await ids(saver, at(), filter={name: value}) == wanted, name
    reordered = {"c": None, "a": [1, {"b": 2}]}
    assert await ids(saver, at(), filter={"deep": reordered}) == ["1"]


STEPS = [{"step": 3}, {"step": 30}, {"odd": True}, {"odd": 1}, {"run_id": "b"}, {}]


async def test_filter_bound_limit_and_place_work_together(saver: Saver) -> None:
    """Each combination gives what LangGraph's own saver gives, in order of id."""
    reference = InMemorySaver()
    places = [("t", ""), ("t", "c:1"), ("u", ""), ("T", "")]
    for n, id in enumerate(numbered(40)):
        thread, ns = places[n * n % 5 % 4]
        about: dict[str, Any] = {"odd": n % 2 == 1, "run_id": "ab"[n % 2]}
        for each in (saver, reference):
            await put(each, id, {"x": n}, thread=thread, ns=ns, step=n // 2, **about)
    configs = [
        None,
        at(ns=None),
        at(),
        at(ns="c:1"),
        at(thread="u"),
        at(thread="v"),
        at("000010", ns=None),
    ]
    bounds = [None, at("000000"), at("000007"), at("00001"), at("9")]
    for config, bound, filter in itertools.product(configs, bounds, STEPS):
        if type(filter.get("odd")) is int:
            wanted: list[CheckpointTuple] = []
        else:
            found = await listed(reference, config, before=bound, filter=filter)
            wanted = sorted(found, key=id_of, reverse=True)
        for limit in (None, 1, 3):
            rows = await listed(saver, config, before=bound, filter=filter, limit=limit)
            assert [row.config for row in rows] == [
                row.config for row in wanted[:limit]
            ], (config, bound, filter, limit)


@pytest.mark.parametrize("kind", ["memory", "jetstream", "plain"])
def test_a_blocking_listing_that_is_half_read_stands_in_nobody_s_way(
    open_saver: OpenSaver,
) -> None:
    with open_saver() as saver:
        asyncio.run(put_chain(saver, numbered(600)))
        asyncio.run(put_chain(saver, numbered(30), thread="small"))
        abandoned = [saver.list(at(thread="small")) for _ in range(150)]
        assert {id_of(next(listing)) for listing in abandoned} == {"000029"}
        held = [saver.list(at()) for _ in range(2)]
        assert {id_of(next(listing)) for listing in held} == {"000599"}
        made = checkpoint("000600", {"x": 1})
        config = saver.put(at("000599"), made, meta(), made["channel_versions"])
        saver.put_writes(config, [("a", 1)], "task")
        rest = [id_of(found) for found in held[0]]
        assert rest == numbered(599)[::-1]
        saver.prune(["t"])
        more = [id_of(found) for found in held[1]]
        # What was read before the prune is still given, nothing else.
        assert more == numbered(599)[::-1][: len(more)]
        assert len(more) < 512
        assert [id_of(found) for found in saver.list(at())] == ["000600"]
        saver.delete_thread("t")
        assert saver.get_tuple(at()) is None


async def test_the_latest_and_each_row_name_their_checkpoint(saver: Saver) -> None:
    """Also where the config that was asked with names none."""
    await put_chain(saver, numbered(3), ns="a:1|b:2")
    for config in (at(ns="a:1|b:2"), at("000002", ns="a:1|b:2")):
        found = await saver.aget_tuple(config)
        assert found is not None
        assert found.config == at("000002", ns="a:1|b:2")
        assert found.parent_config == at("000001", ns="a:1|b:2")
    rows = await listed(saver, at(ns="a:1|b:2"))
    assert [row.config for row in rows] == [
        at(id, ns="a:1|b:2") for id in numbered(3)[::-1]
    ]


async def test_each_row_has_its_own_values_and_writes(saver: Saver) -> None:
    """Also those that are not new in it, and that a later one has dropped."""
    states: list[dict[str, Any]] = [
        {"keep": "k" * 2000, "a": 1},
        {"keep": "k" * 2000, "a": 2, "b": ["b" * 900]},
        {"keep": "k" * 2000},
        {"keep": "K" * 2000, "b": None},
    ]
    versions: list[dict[str, Any]] = [
        {"keep": 1, "a": 1},
        {"keep": 1, "a": 2, "b": 2},
        {"keep": 1, "a": 3, "b": 3},
        {"keep": 4, "a": 3, "b": 4},
    ]
    parent = None
    for n, (state, version) in enumerate(zip(states, versions, strict=True)):
        before = versions[n - 1] if n else {}
        new = {c: v for c, v in version.items() if before.get(c) != v}
        await put(
            saver, f"{n}", state, parent=parent, versions=version, new=new, step=n
        )
        await saver.aput_writes(at(f"{n}"), [("a", n)], f"task {n}")
        parent = f"{n}"

    rows = (await listed(saver, at()))[::-1]
    for n, row in enumerate(rows):
        assert row == await get(saver, f"{n}")
        assert row.checkpoint["channel_values"] == states[n]
        assert row.checkpoint["channel_versions"] == versions[n]
        assert row.pending_writes == [(f"task {n}", "a", n)]
