"""The drills hold on this saver, and do not on one that forgets."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conftest import BINARY
from tests.patience import until
from tests.soak import SOAK
from typer.testing import CliRunner

from jskv_saver import LocalServer
from jskv_saver.cli.app import app
from jskv_saver.cli.drills import registry
from jskv_saver.cli.drills.graph import nodes
from jskv_saver.cli.drills.ground import Ground, Report
from jskv_saver.cli.drills.nest import WorkerError, nest
from jskv_saver.cli.drills.registry import DRILLS, Drill, chosen, perform
from jskv_saver.cli.drills.wire import wire_to
from jskv_saver.errors import InvalidRequestError

STRIDE = 1 if SOAK else 4
"""Every how many messages a worker is killed: `jskv drill` does at each."""


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """What all drills find, done once."""

    async def do() -> list[Report]:
        async with LocalServer(binary=BINARY) as server:
            return await perform(DRILLS, server.url, stride=STRIDE)

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(asyncio.run, do()).result()
    return {report.name: report for report in found}


@pytest.mark.parametrize("name", [drill.name for drill in DRILLS])
@pytest.mark.timeout(300)
def test_a_drill_holds(name: str, reports: dict[str, Report]) -> None:
    report = reports[name]
    assert report.skipped is None
    assert report.checks
    assert [check for check in report.checks if not check.holds] == []
    assert report.holds
    assert report.rows
    assert all(len(row) == len(report.columns) for row in report.rows)


async def test_a_long_stride_is_no_failure(own_server: LocalServer) -> None:
    (report,) = await perform(chosen(["admission"]), own_server.url, stride=6)
    assert [check for check in report.checks if not check.holds] == []


async def test_on_a_saver_that_forgets_drills_fail(
    own_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    for name, opener, what in (
        ("failure", "open_saver", "runs again"),
        ("admission", "open_silent", "the second process comes to the right end"),
        ("admission", "open_promising", "said to be accepted is never lost"),
    ):
        (report,) = await perform(
            chosen([name]),
            own_server.url,
            stride=6,
            saver=f"tests.drills.forgetful:{opener}",
        )
        assert not report.holds
        failed = [check for check in report.checks if not check.holds]
        assert any(what in check.what and check.detail for check in failed), failed


async def test_the_wire_kills_before_the_message_and_passes_those_before(
    own_server: LocalServer, tmp_path: Path
) -> None:
    async with nest(tmp_path) as workers:
        ground = Ground(own_server.url, workers, tmp_path)
        # Enough for what opens the bucket and for two steps.
        async with wire_to(own_server.url, 11) as wire:
            order = {**ground.order("t", "run"), "url": wire.url}
            worker = await workers.start(order)
            wire.to_kill(worker.kill)
            assert await worker.ended() == -9
            assert wire.killed
        assert nodes(ground.tally("t"), "finished")
        heir = await workers.run(ground.order("t", "resume"))
        assert heir.said["found"] == {"what": "checkpoint"}
        assert heir.said["ended"]["next"] == []


async def test_workers_end_with_the_nest(
    own_server: LocalServer, tmp_path: Path
) -> None:
    async with nest(tmp_path) as workers:
        ground = Ground(own_server.url, workers, tmp_path)
        # Nothing passes before somebody is named to be killed: it waits.
        async with wire_to(own_server.url, 0) as wire:
            worker = await workers.start({**ground.order("t", "run"), "url": wire.url})
            os.kill(worker.pid, 0)
    await until(lambda: not Path(f"/proc/{worker.pid}").exists())


async def test_a_worker_that_cannot_work_says_why(tmp_path: Path) -> None:
    async with nest(tmp_path) as workers:
        ground = Ground("nats://127.0.0.1:1", workers, tmp_path, saver="no.such:thing")
        with pytest.raises(WorkerError, match=r"ended with 1: .*No module named 'no'"):
            await workers.run(ground.order("t", "run"))
        worker = await workers.start(ground.order("t", "run"))
        with pytest.raises(WorkerError, match="before it was accepted"):
            await worker.event("accepted")


async def _fails(ground: Ground, report: Report) -> None:
    report.check("this holds")
    report.check("this does not", ["because", "of", "four", "reasons"])


async def _breaks(ground: Ground, report: Report) -> None:
    raise WorkerError("process 1 ended with 1: no such thing")


FAILING = (Drill("fails", "a drill that fails", _fails),)
BREAKING = (Drill("breaks", "a drill that breaks", _breaks),)


def test_the_command_prints_what_holds_and_exits_with_1_if_something_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "DRILLS", FAILING)
    result = CliRunner().invoke(app, ["drill"])
    assert result.exit_code == 1
    assert "  FAIL this does not\n       because; of; four\n" in result.stdout
    assert "   ok  this holds" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("1 do not hold.")

    monkeypatch.setattr(registry, "DRILLS", BREAKING)
    result = CliRunner().invoke(app, ["drill", "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["holds"] is False
    assert found["drills"][0]["checks"] == [
        {
            "what": "it can be done to its end",
            "holds": False,
            "detail": "WorkerError: process 1 ended with 1: no such thing",
        }
    ]


def test_the_command_does_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = CliRunner().invoke(app, ["drill", "change", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["holds"] is True
    assert [drill["name"] for drill in found["drills"]] == ["change"]


def test_an_unknown_drill_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="death, failure, admission"):
        chosen(["no-such"])
