"""The drill that prunes threads while they are active."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from jskv_saver.cli.drills.graph import EXPECTED, nodes
from jskv_saver.cli.drills.ground import Ground, Report

_RUNNING: Final = 6
_WAITING: Final = 2


async def prune(ground: Ground, report: Report) -> None:
    """Prune all threads again and again, while some run and some wait for a person."""
    report.columns = ("threads", "prunes", "checkpoints at the end")
    waiting = [f"waits-{n}" for n in range(_WAITING)]
    running = [f"runs-{n}" for n in range(_RUNNING)]
    for thread in waiting:
        await ground.nest.run(ground.order(thread, "run", asks=["pay"]))
    prunes = 0
    async with ground.open_saver() as saver:
        workers = [
            await ground.nest.start(ground.order(thread, "run")) for thread in running
        ]
        ends = asyncio.gather(*(worker.ended() for worker in workers))
        while not ends.done() or not prunes:
            await saver.aprune([*waiting, *running])
            prunes += 1
        codes = await ends
        report.check(
            "each thread that ran came to its right end",
            [
                f"{thread}: {code} {worker.said.get('ended')}"
                for thread, code, worker in zip(running, codes, workers, strict=True)
                if code != 0
                or sorted(worker.said.get("ended", {}).get("log", ()))
                != sorted(EXPECTED)
            ],
        )
        workers = [
            await ground.nest.run(ground.order(thread, "answer", asks=["pay"]))
            for thread in waiting
        ]
        report.check(
            "each thread that waited goes on with the answer, as if nothing had been",
            [
                str(worker.said.get("ended"))
                for worker in workers
                if sorted(worker.said["ended"]["log"]) != sorted(EXPECTED)
            ],
        )
        report.check(
            "no node of a thread that ran was run twice",
            [
                f"{thread}: {counts}"
                for thread in running
                if (counts := Counter(nodes(ground.tally(thread), "started")))
                and max(counts.values()) > 1
            ],
        )
        await saver.aprune([*waiting, *running])
        kept = {
            thread: len(
                [
                    row
                    async for row in saver.alist(
                        {"configurable": {"thread_id": thread}}
                    )
                ]
            )
            for thread in (*waiting, *running)
        }
        report.check(
            "a last prune leaves the latest checkpoint of each, and no other",
            [f"{thread}: {count}" for thread, count in kept.items() if count != 1],
        )
    report.rows = [
        ("that ran", str(prunes), str(sum(kept[thread] for thread in running))),
        ("that waited", str(prunes + 1), str(sum(kept[thread] for thread in waiting))),
    ]
