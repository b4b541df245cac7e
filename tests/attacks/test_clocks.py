"""Clocks that are wrong by hours: the latest is the greatest id, for everybody."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import _checkpoint
from tests.attacks.clocks import hours_of, skewed_id
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    id_of,
    ids,
    listed,
    parent_of,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import WriterConflictError

HOURS = (-30.0, -5.0, -0.001, 0.0, 0.001, 5.0, 30.0)


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def _graph(saver: DocumentCheckpointSaver, name: str) -> Any:
    graph = StateGraph(State)
    graph.add_node("step", lambda _: {"log": [name]})
    graph.add_edge(START, "step")
    graph.add_edge("step", END)
    return graph.compile(checkpointer=saver)


def test_a_skewed_id_is_as_far_away_as_it_should_be() -> None:
    for hours in HOURS:
        assert abs(hours_of(skewed_id(hours)) - hours) < 0.01
    made = [skewed_id(hours) for hours in HOURS]
    assert made == sorted(made)


async def test_the_latest_is_the_greatest_id_whatever_arrives_when(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    dice = random.Random(1)
    stored: dict[str, int] = {}
    made = [(hours, n) for hours in HOURS for n in range(4)]
    dice.shuffle(made)
    for number, (hours, _) in enumerate(made):
        writer, reader = (saver, other) if number % 2 else (other, saver)
        id, parent = skewed_id(hours), max(stored, default=None)
        await put(writer, id, {"n": number, "t": "x" * 900}, parent=parent)
        stored[id] = number
        for each in (writer, reader):
            latest = await get(each)
            assert id_of(latest) == max(stored)
            assert latest.checkpoint["channel_values"]["n"] == stored[max(stored)]
            assert await ids(each, at()) == sorted(stored, reverse=True)
        assert (await values(reader, id))["n"] == number
    # What a wrong clock made bounds listings like anything else.
    now = skewed_id(0.0)
    older = sorted((id for id in stored if id < now), reverse=True)
    assert await ids(saver, at(), before=at(now)) == older
    await other.aprune(["t"])
    assert await ids(saver, at()) == [max(stored)]


@pytest.mark.parametrize("policy", ["fork", "raise"])
@pytest.mark.parametrize("hours", [-5.0, 5.0])
async def test_a_graph_goes_on_where_one_with_another_clock_stopped(
    open_saver: OpenSaver,
    monkeypatch: pytest.MonkeyPatch,
    hours: float,
    policy: str,
) -> None:
    clock = itertools.cycle((0.0,))
    monkeypatch.setattr(_checkpoint, "uuid6", lambda **_: skewed_id(next(clock)))
    config: Any = {"configurable": {"thread_id": "t"}}
    async with (
        open_saver(on_conflict=policy) as here,
        open_saver(on_conflict=policy) as there,
    ):
        await _graph(here, "here").ainvoke({"log": ["in"]}, config)
        first = await ids(here, at())
        clock = itertools.cycle((hours,))
        second = _graph(there, "there")
        if hours > 0 or policy == "fork":
            await second.ainvoke({"log": ["again"]}, config)
            both = await ids(here, at())
            assert set(first) < set(both)
            assert len(both) == 6
        else:
            # Its steps would be stored, and be the latest of nobody.
            with pytest.raises(WriterConflictError):
                await second.ainvoke({"log": ["again"]}, config)
            both = await ids(here, at())
        assert both == sorted(both, reverse=True)
        for each in (here, there):
            latest = await get(each)
            assert id_of(latest) == both[0]
            want = ["in", "here", *(["again", "there"] if hours > 0 else [])]
            assert latest.checkpoint["channel_values"]["log"] == want
        # Nothing of either is lost, and each knows its parent.
        rows = await listed(there, at())
        parents = {parent_of(row) for row in rows} - {None}
        assert parents <= set(both)


async def test_writes_find_their_checkpoint_whatever_its_clock(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for hours in HOURS:
        id = skewed_id(hours)
        await saver.aput_writes(at(id), [("a", hours)], "before")
        await put(other, id, {"hours": hours})
        await other.aput_writes(at(id), [("a", hours)], "after")
        found = await get(saver, id)
        assert found.pending_writes == [("after", "a", hours), ("before", "a", hours)]
