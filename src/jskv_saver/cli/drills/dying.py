"""The drills in which workers die: what survives, and what was only promised."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Literal

from langchain_core.runnables import RunnableConfig

from jskv_saver.cli.drills.graph import STEPS, nodes
from jskv_saver.cli.drills.ground import Death, Ground, Report

_MODES: Final[tuple[Literal["sync", "async", "exit"], ...]] = ("sync", "async", "exit")
_STEP: Final = {name: number for number, step in enumerate(STEPS) for name in step}

_WAITING: Final = 4
"""Messages from an admission to its first checkpoint: a longer stride misses them."""


async def survive(ground: Ground, report: Report) -> None:
    """Kill the worker before each of its messages, in each durability."""
    report.columns = ("durability", "kills", "nothing stored", "run again", "at most")
    torn: list[str] = []

    async def whole(thread: str) -> None:
        """Every checkpoint that is there can be read, in one line to the first."""
        async with ground.open_saver() as saver:
            config: RunnableConfig = {"configurable": {"thread_id": thread}}
            rows = [row async for row in saver.alist(config)]
        ids = [row.config["configurable"]["checkpoint_id"] for row in rows]
        parents = [
            row.parent_config and row.parent_config["configurable"]["checkpoint_id"]
            for row in rows
        ]
        if parents != [*ids[1:], *([None] if ids else [])]:
            torn.append(f"{thread}: {ids} with the parents {parents}")

    results = await asyncio.gather(
        *(ground.die_everywhere(mode, "run", whole, durability=mode) for mode in _MODES)
    )
    by_mode = dict(zip(_MODES, results, strict=True))
    for mode, deaths in by_mode.items():
        again = [_again(death) for death in deaths]
        report.rows.append(
            (
                mode,
                str(len(deaths)),
                str(sum(_found(death) == "nothing" for death in deaths)),
                f"{sum(map(bool, again))} times",
                f"{max(map(len, again), default=0)} nodes",
            )
        )
        report.check(
            f"{mode}: wherever the first died, the second comes to the right end",
            _failed(deaths),
        )
    report.check("every checkpoint that is there is whole, with its parents", torn)
    report.check(
        "sync: nothing of a step that was over runs again",
        filter(None, map(_lost_step, by_mode["sync"])),
    )
    report.check(
        "exit: nothing is stored before the end, so all runs again",
        filter(None, map(_kept, by_mode["exit"])),
    )
    report.check(
        "sync: a worker that began a second step left a checkpoint",
        [
            f"after {death.lives} messages there is nothing"
            for death in by_mode["sync"]
            if len({_STEP[name] for name in nodes(death.before, "started")}) > 1
            and _found(death) != "checkpoint"
        ],
    )


async def accept(ground: Ground, report: Report) -> None:
    """Kill a worker that accepts a request and runs it, before each of its messages."""
    report.columns = ("found", "times", "the worker had said `accepted`")
    states: dict[str, list[bool]] = {}
    told: dict[str, str] = {}

    async def look(thread: str) -> None:
        async with ground.open_saver() as saver:
            waiting = await saver.aadmitted(thread)
            begun = await saver.aadmitted(thread, begun=True)
        told[thread] = "waiting" if waiting else "begun" if begun else "never accepted"

    deaths = await ground.die_everywhere("admit", "admit", look)
    for death in deaths:
        state = told[f"admit-{death.lives}"]
        states.setdefault(state, []).append("accepted" in death.victim.said)
    for state, promised in states.items():
        report.rows.append((state, str(len(promised)), f"{sum(promised)} times"))
    report.check(
        "a request that was said to be accepted is never lost",
        ["it was"] if any(states.get("never accepted", ())) else (),
    )
    report.check(
        "one that was accepted and had not begun is listed, and is run",
        [
            f"after {death.lives} messages it found {_found(death)}"
            for death in deaths
            if told[f"admit-{death.lives}"] == "waiting"
            and _found(death) not in ("admission", "checkpoint")
        ],
    )
    if ground.stride <= _WAITING:
        report.check(
            "both happen: some were never accepted, some were accepted and lost",
            () if {"waiting", "never accepted"} <= states.keys() else [states.keys()],
        )
    report.check(
        "the second process comes to the right end, wherever the first died",
        _failed(deaths),
    )


def _failed(deaths: Sequence[Death]) -> list[str]:
    """What came out wrong; of a worker that never died nothing is known."""
    if not deaths:
        return ["the worker sent no message, and was never killed"]
    return [death.result for death in deaths if death.result]


def _found(death: Death) -> str:
    return str(death.heir.said.get("found", {}).get("what", "nothing"))


def _again(death: Death) -> list[str]:
    """The nodes that had finished, and ran again."""
    again = nodes(death.after, "started")
    return [name for name in nodes(death.before, "finished") if name in again]


def _lost_step(death: Death) -> str:
    started = nodes(death.before, "started")
    current = max((_STEP[name] for name in started), default=0)
    lost = [name for name in _again(death) if _STEP[name] < current]
    return f"after {death.lives} messages {lost} ran again" if lost else ""


def _kept(death: Death) -> str:
    done = len(nodes(death.before, "finished"))
    kept: Sequence[str] = ()
    if done < len(_STEP) and _found(death) != "nothing":
        kept = [f"after {death.lives} messages and {done} nodes something was stored"]
    return "; ".join(kept)
