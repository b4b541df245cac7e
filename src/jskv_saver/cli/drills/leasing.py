"""The drill in which two processes resume one thread at the same time."""

from __future__ import annotations

import asyncio
from typing import Final

from jskv_saver.cli.drills.graph import EXPECTED, nodes
from jskv_saver.cli.drills.ground import Ground, Report

_ROUNDS: Final = 4
_BOTH: Final = 2


async def resume_twice(ground: Ground, report: Report) -> None:
    """Two processes give the same answer to a thread at once, under a lease."""
    report.columns = ("round", "processes that paid", "payments")
    for number in range(_ROUNDS):
        thread = f"twice-{number}"
        await ground.nest.run(ground.order(thread, "run", asks=["pay"]))
        order = ground.order(thread, "answer", asks=["pay"], lease=True)
        workers = [await ground.nest.start(order) for _ in range(_BOTH)]
        codes = await asyncio.gather(*(worker.ended() for worker in workers))
        paid = [
            event.pid
            for event in ground.tally(thread)
            if (event.node, event.what) == ("pay", "finished")
        ]
        report.rows.append((str(number + 1), str(len(set(paid))), str(len(paid))))
        report.check(
            f"round {number + 1}: it is paid once",
            () if len(paid) == 1 else [f"{len(paid)} times, by {sorted(set(paid))}"],
        )
        late = [w for w in workers if w.said.get("found") == {"what": "nothing left"}]
        report.check(
            f"round {number + 1}: the other process sees that nothing is left",
            () if len(late) == 1 and codes == [0] * _BOTH else [codes],
        )
        logs = [
            worker.said["ended"]["log"] for worker in workers if "ended" in worker.said
        ]
        report.check(
            f"round {number + 1}: both see the right end",
            [log for log in logs if sorted(log) != sorted(EXPECTED)]
            or ([] if len(logs) == _BOTH else ["one of them did not end"]),
        )
        again = nodes(ground.tally(thread), "finished")
        report.check(
            f"round {number + 1}: nothing else ran twice",
            sorted({name for name in again if again.count(name) > 1}),
        )
    order = ground.order("twice-0", "answer", asks=["pay"], lease=True)
    await ground.nest.run(order)
    payments = nodes(ground.tally("twice-0"), "finished").count("pay")
    report.check(
        "resumed once more, later, nothing runs",
        () if payments == 1 else [f"{payments} payments"],
    )
