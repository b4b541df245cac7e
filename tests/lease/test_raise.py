"""The policy `raise`: who was first goes on, all others are told."""

from __future__ import annotations

import asyncio
import operator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from tests.attacks.nursery import nursery
from tests.checkpoint.saving import at, id_of, listed, parent_of
from tests.lease.workers import STEPS, TOGETHER, config_of, counting

from jskv_saver import JetStreamSaver
from jskv_saver.errors import WriterConflictError

PROCESSES = 8


async def test_eight_processes_on_one_thread_make_one_branch(
    nats_url: str, bucket: str, tmp_path: Path
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        graph = counting("first").compile(checkpointer=saver, interrupt_before=["step"])
        await graph.ainvoke({"log": ["0 first"]}, config_of("t"))
        async with nursery("tests.lease.workers") as processes:
            all_of_them = [
                await processes.start(
                    "tests.lease.workers:go_on",
                    url=nats_url,
                    bucket=bucket,
                    folder=str(tmp_path),
                    name=f"p{n}",
                    count=PROCESSES,
                )
                for n in range(PROCESSES)
            ]
            for process in all_of_them:
                assert await processes.end(process) == 0

        rows = await listed(saver, at())
        by_id = {id_of(row): row for row in rows}
        children = [parent_of(row) for row in rows]
        # Exactly one of those that continue a checkpoint is stored.
        assert len(set(children)) == len(children)
        # The chain from the newest to the first one has all of them.
        chain = [rows[0]]
        while (parent := parent_of(chain[-1])) is not None:
            chain.append(by_id[parent])
        assert [id_of(row) for row in chain] == [id_of(row) for row in rows]
        # Each is whole: what its parent has, and one step more.
        for row, older in pairwise(chain):
            log = row.checkpoint["channel_values"].get("log", [])
            before = older.checkpoint["channel_values"].get("log", [])
            assert log[: len(before)] == before
            assert len(log) - len(before) in (0, 1)
        log = chain[0].checkpoint["channel_values"]["log"]
        assert [int(line.split()[0]) for line in log] == list(range(STEPS))
        told = (tmp_path / "conflicts").read_text().splitlines()
        assert len(told) == PROCESSES
        # Where all were in one step at once, all but one were told.
        conflicts = sum(int(line.split()[1]) for line in told)
        assert conflicts >= len(TOGETHER) * (PROCESSES - 1)


class Outer(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def _node(name: str) -> Any:
    return lambda state: {"log": [name]}


def _with_subgraphs(keeps: bool) -> StateGraph[Any, Any, Any, Any]:
    """Four subgraphs side by side, which may keep their state from turn to turn."""
    graph = StateGraph(Outer)
    graph.add_node("last", _node("last"))
    for name in ("a", "b", "c", "d"):
        child = StateGraph(Outer)
        child.add_node("one", _node(f"{name} one"))
        child.add_node("two", _node(f"{name} two"))
        child.add_edge(START, "one")
        child.add_edge("one", "two")
        graph.add_node(name, child.compile(checkpointer=True if keeps else None))
        graph.add_edge(START, name)
    graph.add_edge(["a", "b", "c", "d"], "last")
    return graph


@pytest.mark.parametrize("keeps", [True, False])
async def test_parallel_subgraphs_are_in_no_conflict(
    nats_url: str, bucket: str, keeps: bool
) -> None:
    results = []
    raising = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, on_conflict="raise"
    )
    async with raising:
        for saver in (raising, InMemorySaver()):
            graph = _with_subgraphs(keeps).compile(checkpointer=saver)
            for turn in range(3):
                given: Any = {"log": [f"turn {turn}"]}
                ended = await graph.ainvoke(given, config_of("t"))
            results.append(ended["log"])
    assert results[0] == results[1]


async def test_of_two_runs_through_one_saver_one_goes_on(
    nats_url: str, bucket: str
) -> None:
    both = asyncio.Barrier(2)

    async def wait(state: Outer) -> Outer:
        await both.wait()
        return {"log": ["waited"]}

    builder = StateGraph(Outer)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    saver = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, on_conflict="raise"
    )
    async with saver:
        stops = builder.compile(checkpointer=saver, interrupt_before=["wait"])
        given: Any = {"log": ["in"]}
        await stops.ainvoke(given, config_of("t"))
        graph = builder.compile(checkpointer=saver)
        runs = [graph.ainvoke(None, config_of("t")) for _ in range(2)]
        ended = await asyncio.gather(*runs, return_exceptions=True)
        told = [each for each in ended if isinstance(each, BaseException)]
        assert len(told) == 1
        assert isinstance(told[0], WriterConflictError)
        state = await graph.aget_state(config_of("t"))
        assert state.values["log"] == ["in", "waited"]
        assert not state.next


@pytest.mark.parametrize("how", ["update", "input", "replay"])
async def test_a_new_branch_from_an_old_checkpoint_is_no_conflict_but_the_run_beside_is(
    nats_url: str, bucket: str, how: str
) -> None:
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def wait(state: Outer) -> Outer:
        if "slow" in state["log"]:
            inside.set()
            await go_on.wait()
        return {"log": ["waited"]}

    builder = StateGraph(Outer)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    savers = [
        JetStreamSaver.from_conn_string(nats_url, bucket=bucket, on_conflict="raise")
        for _ in range(2)
    ]
    async with savers[0], savers[1]:
        run, beside = (builder.compile(checkpointer=saver) for saver in savers)
        first: Any = {"log": ["first"]}
        await run.ainvoke(first, config_of("t"))
        past = [state async for state in run.aget_state_history(config_of("t"))]
        slow: Any = {"log": ["slow"]}
        running = asyncio.create_task(run.ainvoke(slow, config_of("t")))
        await inside.wait()
        if how == "update":
            await beside.aupdate_state(past[0].config, {"log": ["edited"]})
        elif how == "input":
            branch: Any = {"log": ["branch"]}
            await beside.ainvoke(branch, past[0].config)
        else:
            await beside.ainvoke(None, past[1].config)
        latest = (await beside.aget_state(config_of("t"))).values["log"]
        assert "slow" not in latest
        go_on.set()
        with pytest.raises(WriterConflictError):
            await running
        # Nothing of what was refused is there, and the old branch still is.
        assert (await run.aget_state(config_of("t"))).values["log"] == latest
        assert (await run.aget_state(past[0].config)).values == past[0].values
