"""A run that stopped, or was killed, goes on in another process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.acceptance.conftest import Driver, comparable, thread
from tests.acceptance.graphs import ROOT, approval, command, deltas, elsewhere, slow
from tests.patience import PATIENCE


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_an_interrupt_is_answered_in_another_process(
    drive: Driver, nats_url: str, bucket: str, tmp_path: Path, durability: str
) -> None:
    journal = tmp_path / "journal"
    configurable = {"thread_id": "user 1", "journal": str(journal)}
    config: Any = {"configurable": configurable}
    graph = drive.compile(approval())
    stopped = await drive.invoke(graph, {"log": ["in"]}, config, durability=durability)
    assert stopped["log"] == ["in", "draft"]

    answered = await asyncio.to_thread(
        elsewhere,
        graph="approval",
        way=drive.way,
        url=nats_url,
        bucket=bucket,
        durability=durability,
        configurable=configurable,
        resume="yes",
    )
    assert answered == {"log": ["in", "draft"]}
    (asked,) = (await drive.state(graph, config)).interrupts
    assert asked.value == "second?"
    ended = await drive.invoke(
        graph, Command(resume="indeed"), config, durability=durability
    )

    assert ended == {"log": ["in", "draft", "ask", "send"], "answer": "yes indeed"}
    assert journal.read_text().split() == ["draft", "ask", "ask", "ask", "send"]


async def test_a_delta_graph_goes_on_in_another_process(
    drive: Driver, nats_url: str, bucket: str
) -> None:
    graph = drive.compile(deltas(asks=True))
    for turn in range(3):
        stopped = await drive.invoke(graph, {"items": [f"turn {turn}"]}, thread())
        if turn < 2:
            await drive.invoke(graph, Command(resume="yes"), thread())

    ended = await asyncio.to_thread(
        elsewhere,
        graph="deltas",
        way=drive.way,
        url=nats_url,
        bucket=bucket,
        configurable=thread()["configurable"],
        resume="yes",
    )

    assert len(stopped["items"]) == 12
    assert ended["items"] == stopped["items"]
    assert ended["rest"] == ["yes 4", "yes 8", "yes 12"]
    assert (await drive.state(graph, thread())).values == ended


async def test_after_a_kill_what_had_finished_is_not_run_again(
    drive: Driver, nats_url: str, bucket: str, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    settings: dict[str, Any] = {
        "graph": "slow",
        "way": drive.way,
        "url": nats_url,
        "bucket": bucket,
        "durability": drive.way,
    }
    configurable = {"thread_id": "t", "journal": str(journal)}
    running = await asyncio.create_subprocess_exec(
        *command(**settings, configurable=configurable, input={"log": ["in"]}), cwd=ROOT
    )
    try:
        # The slow one is in the middle, and what the fast one wrote is stored.
        async with asyncio.timeout(PATIENCE):
            while not ("slow" in _noted(journal) and await _has_written(drive, "fast")):
                assert running.returncode is None
                await asyncio.sleep(0.01)
    finally:
        running.kill()
        await running.wait()
    assert sorted(_noted(journal)) == ["fast", "one", "slow", "two"]

    ended = await asyncio.to_thread(
        elsewhere, **settings, configurable={**configurable, "go": True}
    )

    assert ended == {"log": ["in", "one", "two", "fast", "slow", "last"]}
    runs = _noted(journal)
    assert {name: runs.count(name) for name in runs} == {
        "one": 1,
        "two": 1,
        "fast": 1,
        "slow": 2,
        "last": 1,
    }
    graph = drive.compile(slow())
    assert [state.next for state in await drive.history(graph, thread())] == [
        (),
        ("last",),
        ("fast", "slow"),
        ("two",),
        ("one",),
        ("__start__",),
    ]


def _noted(journal: Path) -> list[str]:
    return journal.read_text().split() if journal.exists() else []


async def _has_written(drive: Driver, name: str) -> bool:
    if drive.way == "async":
        found = await drive.saver.aget_tuple(thread())
    else:
        found = await asyncio.to_thread(drive.saver.get_tuple, thread())
    writes = found.pending_writes or () if found else ()
    return any((channel, value) == ("log", [name]) for _, channel, value in writes)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_with_every_durability_the_thread_is_that_of_the_memory_saver(
    drive: Driver, memory: Driver, durability: str
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(approval())
        options: dict[str, Any] = {"durability": durability}
        await each.invoke(graph, {"log": ["in"]}, thread(), **options)
        await each.invoke(graph, Command(resume="a"), thread(), **options)
        await each.invoke(graph, Command(resume="b"), thread(), **options)
        await each.invoke(graph, {"log": ["again"]}, thread(), **options)
        histories.append(await each.history(graph, thread()))

    assert comparable(histories[0]) == comparable(histories[1])
    assert histories[0][0].interrupts[0].value == {
        "question": "first?",
        "so far": ["in", "draft", "ask", "send", "again", "draft"],
    }


async def test_many_threads_run_at_once(drive: Driver) -> None:
    graph = drive.compile(deltas())
    results = await asyncio.gather(
        *(
            drive.invoke(graph, {"items": [f"start {n}"]}, thread(f"t {n}"))
            for n in range(12)
        )
    )

    for n, result in enumerate(results):
        assert result["items"][0] == f"start {n}"
        state = await drive.state(graph, thread(f"t {n}"))
        assert state.values == result
