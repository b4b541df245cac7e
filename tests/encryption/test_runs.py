"""Graphs, writers and processes beside each other, all with the same key."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from tests.checkpoint.saving import OpenSaver, at, get, ids, put, values
from tests.encryption.keys import NEW, OLD
from tests.encryption.stored import documents
from tests.encryption.worker import SECRET, THREAD, State, builder
from tests.soak import SOAK

from jskv_saver import Encryption, JetStreamSaver
from jskv_saver.errors import (
    DivergentCheckpointError,
    EncryptionError,
    WriterConflictError,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("dies_in", ["act", *(["plan", "report"] if SOAK else [])])
async def test_a_run_that_is_killed_goes_on_in_another_process(
    nats_url: str, bucket: str, dies_in: str
) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.encryption.worker", nats_url, bucket, dies_in),
        cwd=ROOT,
        env=os.environ | {"JSKV_ENCRYPTION_KEYS": f"{OLD.hex()},{NEW.hex()}"},
    )
    assert await child.wait() == -signal.SIGKILL

    # Meanwhile the keys were rotated.
    encryption = Encryption([NEW, OLD])
    async with JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, encryption=encryption
    ) as saver:
        graph = builder().compile(checkpointer=saver)
        before = await graph.aget_state(THREAD)
        assert before.next == (dies_in,)
        ended = await graph.ainvoke(None, THREAD)
        assert ended == {"log": ["plan", "act", "report"], "code": SECRET * 300}
        history = [state async for state in graph.aget_state_history(THREAD)]
        assert [len(state.values.get("log", ())) for state in history] == [
            3,
            2,
            1,
            0,
            0,
        ]
        stored = await documents(saver.store)
    assert {"sealed"} == {name for data in stored.values() for name in data}
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as stranger:
        graph = builder().compile(checkpointer=stranger)
        with pytest.raises(EncryptionError):
            await graph.ainvoke(None, THREAD)


def test_a_blocking_graph_stops_and_is_answered(nats_url: str, bucket: str) -> None:
    def ask(state: State) -> dict[str, Any]:
        return {"log": [interrupt("what is it?")]}

    made = StateGraph(State)
    made.add_node("ask", ask)
    made.add_edge(START, "ask")
    made.add_edge("ask", END)
    opened = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, encryption=Encryption(NEW)
    )
    with opened as saver:
        graph = made.compile(checkpointer=saver)
        graph.invoke({"log": [], "code": ""}, THREAD)
        (asked,) = graph.get_state(THREAD).interrupts
        assert asked.value == "what is it?"
    again = JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, encryption=Encryption(NEW)
    )
    with again as saver:
        graph = made.compile(checkpointer=saver)
        assert graph.invoke(Command(resume=SECRET), THREAD)["log"] == [SECRET]


async def test_two_writers_on_one_thread_are_both_kept(open_saver: OpenSaver) -> None:
    async with open_saver() as one, open_saver() as two:
        await put(one, "1", {"x": "x" * 3_000})
        assert await values(two) == {"x": "x" * 3_000}
        await asyncio.gather(
            *(put(one, f"{n}a", {"x": f"a{n}" * 900}, parent="1") for n in range(2, 8)),
            *(put(two, f"{n}b", {"x": f"b{n}" * 900}, parent="1") for n in range(2, 8)),
        )
        async with open_saver() as reader:
            assert len(await ids(reader, at())) == 13
            for n in range(2, 8):
                for of in "ab":
                    assert await values(reader, f"{n}{of}") == {"x": f"{of}{n}" * 900}


async def test_two_writers_with_different_keys_both_go_on(
    open_saver: OpenSaver,
) -> None:
    """While keys are being rotated, process by process."""
    old = Encryption([OLD, NEW])
    new = Encryption([NEW, OLD])
    async with open_saver(encryption=old) as one, open_saver(encryption=new) as two:
        state = {"log": "line " * 4_000}
        parent = None
        for n in range(6):
            saver = one if n % 2 else two
            state = {"log": state["log"] + f"{n} " * 50}
            await put(saver, str(n), state, parent=parent)
            writes = [("log", f"{n}")]
            await asyncio.gather(
                one.aput_writes(at(str(n)), writes, "one"),
                two.aput_writes(at(str(n)), writes, "two"),
                one.aput_writes(at(str(n)), writes, "both"),
                two.aput_writes(at(str(n)), writes, "both"),
            )
            parent = str(n)
        for saver in (one, two):
            assert await values(saver) == state
            found = await get(saver)
            assert found.pending_writes == [
                (task, "log", "5") for task in ("both", "one", "two")
            ]


async def test_conflicts_and_repetitions_are_told_by_content(
    open_saver: OpenSaver,
) -> None:
    """Not by the stored bytes, which differ each time."""
    async with open_saver(on_conflict="raise") as saver:
        await put(saver, "1", {"x": "x" * 3_000})
        await put(saver, "1", {"x": "x" * 3_000})
        with pytest.raises(DivergentCheckpointError):
            await put(saver, "1", {"x": "y" * 3_000})
        async with open_saver(on_conflict="raise") as other:
            await get(other)
            await put(other, "2", {"x": "y"}, parent="1")
            with pytest.raises(WriterConflictError):
                await put(saver, "3", {"x": "z"}, parent="1")
