"""The graph's version is stored, and another one is reported before anything runs."""

from __future__ import annotations

import warnings
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from tests.checkpoint.saving import OpenSaver, at, get, listed, put

from jskv_saver import DocumentCheckpointSaver, GraphVersion, GraphVersionWarning
from jskv_saver.errors import GraphVersionError, InvalidRequestError


class State(TypedDict):
    n: int


def _graph(saver: DocumentCheckpointSaver, ran: list[str], last: str = "b") -> Any:
    def node(name: str) -> Any:
        def run(state: State) -> State:
            ran.append(name)
            return {"n": state["n"] + 1}

        return run

    builder = StateGraph(State)
    for name in ("a", last):
        builder.add_node(name, node(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", last)
    builder.add_edge(last, END)
    return builder.compile(checkpointer=saver, interrupt_before=[last])


async def test_it_stands_in_the_metadata_of_each_checkpoint(
    open_saver: OpenSaver,
) -> None:
    ran: list[str] = []
    async with open_saver(graph_version="2") as saver, open_saver() as other:
        await _graph(saver, ran).ainvoke({"n": 1}, at())
        rows = await listed(other, at())
        assert len(rows) == 3
        assert [row.metadata.get("graph_version") for row in rows] == ["2", "2", "2"]
        assert await listed(other, at(), filter={"graph_version": "1"}) == []
        # A copy keeps it.
        await saver.acopy_thread("t", "copy")
        copied = await get(other, thread="copy")
        assert copied.metadata.get("graph_version") == "2"


async def test_unset_it_costs_nothing(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await put(saver, "1", {"n": 1})
        assert "graph_version" not in (await get(saver)).metadata


async def test_another_version_is_reported_before_anything_runs(
    open_saver: OpenSaver,
) -> None:
    ran: list[str] = []
    async with (
        open_saver(graph_version="1") as old,
        open_saver(graph_version="2") as new,
    ):
        await _graph(old, ran).ainvoke({"n": 1}, at())
        assert ran == ["a"]
        before = await listed(old, at())
        for input in (None, {"n": 5}):
            with pytest.raises(GraphVersionError, match="version '1' of the graph"):
                await _graph(new, ran).ainvoke(input, at())
        assert ran == ["a"]
        assert await listed(old, at()) == before
        with pytest.raises(GraphVersionError) as caught:
            await new.aget_tuple(at())
        assert (caught.value.stored, caught.value.current) == ("1", "2")
        # Looking is possible, and the old version goes on.
        assert await listed(new, at()) == before
        await _graph(old, ran).ainvoke(None, at())
        assert ran == ["a", "b"]


async def test_a_version_that_is_accepted_goes_on_under_the_new_one(
    open_saver: OpenSaver,
) -> None:
    ran: list[str] = []
    accepting = GraphVersion("2", accepts=["1"])
    async with (
        open_saver(graph_version="1") as old,
        open_saver(graph_version=accepting) as new,
    ):
        await _graph(old, ran).ainvoke({"n": 1}, at())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await _graph(new, ran).ainvoke(None, at())
        assert ran == ["a", "b"]
        assert (await get(new)).metadata.get("graph_version") == "2"
        # There is no way back, unless the old one accepts it.
        with pytest.raises(GraphVersionError):
            await old.aget_tuple(at())


async def test_a_warning_may_be_enough(open_saver: OpenSaver) -> None:
    ran: list[str] = []
    warning = GraphVersion("2", on_mismatch="warn")
    async with (
        open_saver(graph_version="1") as old,
        open_saver(graph_version=warning) as new,
    ):
        await _graph(old, ran).ainvoke({"n": 1}, at())
        with pytest.warns(GraphVersionWarning, match="version '1' of the graph"):
            await _graph(new, ran).ainvoke(None, at())
        assert ran == ["a", "b"]


async def test_a_checkpoint_without_a_version_is_no_mismatch(
    open_saver: OpenSaver,
) -> None:
    async with open_saver() as old, open_saver(graph_version="2") as new:
        await put(old, "1", {"n": 1})
        assert (await get(new)).metadata.get("graph_version") is None


def test_the_blocking_twin_does_the_same(open_saver: OpenSaver) -> None:
    ran: list[str] = []
    with open_saver(graph_version="1") as old, open_saver(graph_version="2") as new:
        _graph(old, ran).invoke({"n": 1}, at())
        with pytest.raises(GraphVersionError):
            _graph(new, ran).invoke(None, at())
        assert ran == ["a"]
        # A copy of a saver is of the same version.
        with pytest.raises(GraphVersionError):
            new.with_allowlist([("a", "B")]).get_tuple(at())


async def test_it_is_told_before_values_are_read_that_may_not_be_readable(
    open_saver: OpenSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        open_saver(graph_version="1") as old,
        open_saver(graph_version="2") as new,
    ):
        await put(old, "1", {"n": "unreadable"})
        real = new.serde.loads_typed

        def loads(data: tuple[str, bytes]) -> Any:
            loaded = real(data)
            assert loaded != "unreadable"
            return loaded

        monkeypatch.setattr(new, "serde", _Serde(new.serde.dumps_typed, loads))
        with pytest.raises(GraphVersionError):
            await new.aget_tuple(at())


class _Serde:
    def __init__(self, dumps: Any, loads: Any) -> None:
        self.dumps_typed = dumps
        self.loads_typed = loads


@pytest.mark.parametrize("given", ["", 2, ["1"]])
def test_what_is_no_version_is_refused(open_saver: OpenSaver, given: Any) -> None:
    with pytest.raises(InvalidRequestError, match="version"):
        open_saver(graph_version=given)


def test_what_is_no_policy_is_refused() -> None:
    policy: Any = "shout"
    with pytest.raises(InvalidRequestError, match="on_mismatch"):
        GraphVersion("2", on_mismatch=policy)
    with pytest.raises(InvalidRequestError, match="accepts"):
        GraphVersion("2", accepts="1")
