"""Processes that hold a lease, and die or stand still in it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from langgraph.types import Command
from tests.attacks.nursery import Nursery, nursery
from tests.checkpoint.saving import at, ids, put
from tests.lease.holders import leases_left
from tests.lease.workers import config_of, ordering
from tests.patience import PATIENCE, until
from tests.soak import SOAK

from jskv_saver import JetStreamSaver
from jskv_saver.errors import LeaseHeldError

ROUNDS = 20 if SOAK else 1
THREADS = [f"t{n}" for n in range(50 if SOAK else 5)]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def processes() -> AsyncIterator[Nursery]:
    async with nursery("tests.lease.workers") as opened:
        await opened.ready()
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def saver(nats_url: str, bucket: str) -> AsyncIterator[JetStreamSaver]:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as opened:
        yield opened


async def test_who_is_killed_holds_it_no_longer_than_its_time(
    processes: Nursery,
    saver: JetStreamSaver,
    nats_url: str,
    bucket: str,
    tmp_path: Path,
) -> None:
    report = tmp_path / "report"
    holder = await processes.start(
        "tests.lease.workers:hold",
        url=nats_url,
        bucket=bucket,
        ttl=3,
        report=str(report),
    )
    await until(report.exists)
    with pytest.raises(LeaseHeldError, match=f":{holder}:"):
        async with saver.lease("t", wait=0):
            pass
    os.kill(holder, signal.SIGKILL)
    async with saver.lease("t", wait=PATIENCE):
        last = (await ids(saver, at()))[0]
        await put(saver, "999999", parent=last)
    assert await processes.end(holder) == -signal.SIGKILL
    assert await leases_left(saver) == []


@pytest.mark.parametrize("round", range(ROUNDS))
async def test_who_stands_still_and_wakes_up_puts_nothing_any_more(
    processes: Nursery,
    saver: JetStreamSaver,
    nats_url: str,
    bucket: str,
    tmp_path: Path,
    round: int,
) -> None:
    report = tmp_path / "report"
    holder = await processes.start(
        "tests.lease.workers:hold",
        url=nats_url,
        bucket=bucket,
        ttl=2,
        report=str(report),
    )
    await until(report.exists)
    os.kill(holder, signal.SIGSTOP)
    async with saver.lease("t", wait=PATIENCE) as lease:
        before = await ids(saver, at())
        os.kill(holder, signal.SIGCONT)
        assert await processes.end(holder) == 0
        assert report.read_text().split() == ["held", "LeaseLostError"]
        assert await ids(saver, at()) == before
        await put(saver, "999999", parent=before[0])
        await lease.acheck()


async def _asked(saver: JetStreamSaver, effects: Path, threads: list[str]) -> None:
    graph = ordering(str(effects)).compile(checkpointer=saver)
    for thread in threads:
        await graph.ainvoke({"log": ["in"]}, config_of(thread))


@pytest.mark.parametrize("alone", [True, False])
async def test_a_thread_that_two_processes_resume_acts_once_under_a_lease(
    processes: Nursery,
    saver: JetStreamSaver,
    nats_url: str,
    bucket: str,
    tmp_path: Path,
    alone: bool,
) -> None:
    effects = tmp_path / "effects"
    threads = THREADS if alone else THREADS[:1]
    await _asked(saver, effects, threads)
    both = [
        await processes.start(
            "tests.lease.workers:resume_all",
            url=nats_url,
            bucket=bucket,
            folder=str(tmp_path),
            name=name,
            threads=threads,
            alone=alone,
        )
        for name in "ab"
    ]
    for process in both:
        assert await processes.end(process) == 0
    # Without it both act: that is what it is for.
    assert sorted(effects.read_text().split()) == sorted(threads * (1 if alone else 2))
    graph = ordering(str(effects)).compile(checkpointer=saver)
    for thread in threads:
        state = await graph.aget_state(config_of(thread))
        assert state.values["log"] == ["in", "yes", "paid"]
        # Once more, afterwards.
        async with saver.lease(thread, wait=0):
            assert not (await graph.aget_state(config_of(thread))).next


async def test_what_the_dead_did_not_do_the_next_one_does(
    processes: Nursery,
    saver: JetStreamSaver,
    nats_url: str,
    bucket: str,
    tmp_path: Path,
) -> None:
    effects = tmp_path / "effects"
    await _asked(saver, effects, ["t"])
    code = await processes.run(
        "tests.lease.workers:die_before_paying",
        url=nats_url,
        bucket=bucket,
        folder=str(tmp_path),
        thread="t",
    )
    assert code == -signal.SIGKILL
    graph = ordering(str(effects)).compile(checkpointer=saver)
    async with saver.lease("t", wait=PATIENCE):
        state = await graph.aget_state(config_of("t"))
        assert state.next == ("pay",)
        await graph.ainvoke(None, config_of("t"))
        assert not (await graph.aget_state(config_of("t"))).next
    assert effects.read_text().split() == ["t"]
    # An answer that comes once more finds nothing to do.
    async with saver.lease("t"):
        await graph.ainvoke(Command(resume="yes"), config_of("t"))
    assert effects.read_text().split() == ["t"]
