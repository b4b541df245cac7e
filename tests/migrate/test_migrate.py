"""Threads of real graphs, moved between real savers, and gone on with."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tests.migrate.conftest import KINDS, Place
from tests.migrate.threads import fill, resume

from jskv_saver.migrate import Report, migrate
from jskv_saver.migrate.places import opened

PAIRS = [
    *((kind, "bucket") for kind in KINDS),
    *(("bucket", kind) for kind in KINDS if kind != "bucket"),
    ("bucket", "archive"),
    ("archive", "sqlite"),
    ("sqlite", "postgres"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_threads_go_on_where_they_were(
    one: str, other: str, place: Place
) -> None:
    here, there = place(one), place(other)
    async with opened(here, make=True) as source:
        threads = await fill(source)
    # Nothing is changed where it is only read.
    async with opened(here, make=False) as source, opened(there, make=True) as target:
        planned = await migrate(source, target)
        assert {each.outcome for each in planned.threads} == {"pending"}
        moved = await migrate(source, target, apply=True)
        assert outcomes(moved) == expected(threads, other)
        assert [e.missing for e in moved.threads] == [
            e.missing for e in planned.threads
        ]
        again = await migrate(source, target, apply=True)
        assert {
            each.outcome for each in again.threads if each.thread != unfit(other)
        } == {"same"}
    async with opened(there, make=True) as target:
        states = await resume(target)
    async with opened(here, make=True) as source:
        wanted = await resume(source)
    assert without(states, unfit(other)) == without(wanted, unfit(other))


@pytest.mark.parametrize("kind", KINDS)
async def test_in_memory_through_python(kind: str, place: Place) -> None:
    source, back = InMemorySaver(), InMemorySaver()
    threads = await fill(source)
    async with opened(place(kind), make=True) as there:
        moved = await migrate(source, there, apply=True)
        assert outcomes(moved) == expected(threads, kind)
        fit = [name for name in threads if name != unfit(kind)]
        home = await migrate(there, back, apply=True, thread_ids=fit)
        assert home.counts == {"copied": len(fit)}
        if kind != "redis":  # which has made numbers of the versions
            compared = await migrate(source, back, thread_ids=fit)
            assert outcomes(compared) == dict.fromkeys(fit, ("same", False))
    assert without(await resume(back), unfit(kind)) == without(
        await resume(source), unfit(kind)
    )


def without(states: dict[str, Any], thread: str) -> dict[str, Any]:
    return {name: state for name, state in states.items() if name != thread}


def expected(threads: list[str], kind: str) -> dict[str, tuple[str, bool]]:
    return {
        name: ("failed", True) if name == unfit(kind) else ("copied", False)
        for name in threads
    }


def unfit(kind: str) -> str:
    """Plain Redis orders writes by task id, and so rebuilds other delta channels."""
    return "deltas" if kind == "redis" else ""


def outcomes(report: Report) -> dict[str, tuple[str, bool]]:
    return {each.thread: (each.outcome, bool(each.why)) for each in report.threads}
