"""The benchmarks run, and a saver that returns a wrong state makes them fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from scripts.bench import command, run
from scripts.bench.bars import bars
from scripts.bench.chain import Chain, Texts
from scripts.bench.pace import Meter, Pace, spread, verdict
from scripts.bench.places import PEERS, Memory, Place, Sqlite
from scripts.bench.run import Bench, Results, WrongState
from scripts.bench.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]

Lie = Callable[[CheckpointTuple], CheckpointTuple]


def test_the_quick_form_measures_every_line_that_has_a_bar(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    arguments = ["--quick", "--bars", "--savers", "jskv,memory,sqlite"]
    arguments += ["--json", str(output)]
    done = subprocess.run(
        [sys.executable, "scripts/bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    workloads = json.loads(output.read_text())["workloads"]
    assert list(workloads) == list(WORKLOADS)
    missing = [
        (bar.workload, bar.line, bar.peer)
        for bar in bars()
        for lines in [workloads[bar.workload]["lines"]]
        for saver in ("jskv", bar.peer)
        if saver not in ("", "postgres", "redis") and saver not in lines[bar.line]
    ]
    assert missing == []
    assert "The machine was" in done.stdout
    assert done.stdout.count("\npace: ") == len(WORKLOADS)
    assert "wide       stored" in done.stdout


def less(found: CheckpointTuple) -> CheckpointTuple:
    """Without the newest of each list, and with one number less."""
    values: dict[str, Any] = {}
    for channel, value in found.checkpoint["channel_values"].items():
        if isinstance(value, list | bytes):
            value = value[:-1]
        values[channel] = value - 1 if channel in ("counter", "n") else value
    return found._replace(checkpoint={**found.checkpoint, "channel_values": values})


def without_writes(found: CheckpointTuple) -> CheckpointTuple:
    return found._replace(pending_writes=[])


class LyingSaver(InMemorySaver):
    """Tells the truth, but for one lie about each checkpoint, or about deletions."""

    lie: Lie | None = None
    deletes = True
    lists: Lie | None = None
    hides = 0

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await super().aget_tuple(config)
        return self.lie(found) if found and self.lie else found

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        found = [each async for each in super().alist(config, **options)]
        for each in found[self.hides :]:
            yield self.lists(each) if self.lists else each

    async def adelete_thread(self, thread_id: str) -> None:
        if self.deletes:
            await super().adelete_thread(thread_id)


class LyingPeer(Memory):
    """A peer whose saver lies as it is told to."""

    lies: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        async with super().place() as place:
            saver = LyingSaver()
            for name, lie in self.lies.items():
                setattr(saver, name, lie)
            place.saver = saver
            yield place


async def one_round(workload: str, **lies: Any) -> None:
    peer = LyingPeer()
    peer.lies = lies
    with peer, Meter() as meter:
        await run.interleave(
            WORKLOADS[workload][0],
            [peer],
            Results(),
            scale=command.QUICK,
            messages="plain",
            seed=1,
            meter=meter,
        )


@pytest.mark.parametrize(
    ("workload", "lies"),
    [
        ("chat", {"lie": less}),
        ("chat", {"lie": without_writes}),
        ("window", {"lie": less}),
        ("wide", {"lie": less}),
        ("history", {"lie": less}),
        ("history", {"lists": less}),
        ("history", {"lists": without_writes}),
        ("history", {"hides": 1}),
        ("threads", {"lie": less}),
        ("threads", {"lists": less}),
        ("threads", {"hides": 1}),
        ("threads", {"deletes": False}),
        ("big", {"lie": less}),
        ("concurrent", {"lie": less}),
        ("graph", {"lie": less}),
    ],
    ids=lambda part: part if isinstance(part, str) else str(*part),
)
async def test_a_wrong_state_ends_the_run(workload: str, lies: dict[str, Any]) -> None:
    with pytest.raises(WrongState, match=r"^memory: .* is not what was stored$"):
        await one_round(workload, **lies)


async def test_a_lost_write_of_a_delta_channel_ends_the_run() -> None:
    class Forgetful(LyingSaver):
        async def aput_writes(self, config: Any, writes: Any, *rest: Any) -> None:
            kept = [write for write in writes if write[0] != "log"]
            await super().aput_writes(config, kept, *rest)

    results = Results()
    peer = LyingPeer()
    with peer:
        async with AsyncExitStack() as stack:
            place = await stack.enter_async_context(peer.place())
            place.saver = Forgetful()
            bench = Bench(place, results, command.QUICK, Texts())
            with pytest.raises(WrongState, match="of a delta channel"):
                async for _ in WORKLOADS["delta"][0](bench):
                    pass


async def test_a_fresh_process_is_held_to_the_state_too() -> None:
    with Sqlite() as peer:
        async with peer.place() as place:
            bench = Bench(place, Results(), 1, Texts())
            chain = Chain(place.saver, "t")
            await chain.prepare({"n": 1}).put()
            await bench.fresh(chain.latest, {"n": 1})
            with pytest.raises(WrongState, match="fresh process"):
                await bench.fresh(chain.latest, {"n": 2})


def test_a_wrong_state_is_told_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PEERS, "memory", LyingPeer)
    arguments = ["--quick", "--savers", "memory", "wide"]
    assert command.main(arguments) == 0
    monkeypatch.setattr(LyingPeer, "lies", {"lie": less})
    assert command.main(arguments) == 1
    assert "WRONG STATE: memory: " in capsys.readouterr().err


def test_a_saver_that_is_not_installed_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Sqlite, "package", "no_such_package")
    assert command.main(["--quick", "--savers", "memory,sqlite", "wide"]) == 0
    output = capsys.readouterr().out
    assert "sqlite: left out, no Python package no_such_package" in output
    assert "ours / " not in output


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["chats"]) == 2
    assert command.main(["--savers", "jskv,oracle"]) == 2
    error = capsys.readouterr().err
    assert "no workload 'chats'" in error
    assert "no saver 'oracle'" in error


def test_a_busy_machine_is_told_from_a_quiet_one() -> None:
    def pace(loops: list[float], syncs: list[float]) -> Pace:
        return Pace(spread(loops), spread(syncs))

    quiet = pace([4.0] * 19 + [40.0], [0.2] * 20)
    busy = pace([4.0] * 10 + [8.0] * 10, [0.2] * 20)
    slow_disk = pace([4.0] * 20, [0.9] * 20)
    assert verdict([quiet, quiet]).endswith("The machine was steady.")
    assert "noisy" in verdict([busy])
    assert "noisy" in verdict([quiet, slow_disk])


@pytest.mark.parametrize("script", ["scale", "account"])
def test_the_quick_form_prints_its_tables(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{script}", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(rows) > 8
    assert len({row.count("|") for row in rows[:5]}) == 1
