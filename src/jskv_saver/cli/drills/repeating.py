"""The drills about what runs again: after a failure, on a resume, on a replay."""

from __future__ import annotations

from collections import Counter

from langchain_core.runnables import RunnableConfig

from jskv_saver.checkpoint.inspect import ReplayPlan, ThreadRef, replay_plan
from jskv_saver.cli.drills.graph import STEPS, nodes
from jskv_saver.cli.drills.ground import Ground, Report
from jskv_saver.cli.drills.worker import NAMESPACE


async def fail(ground: Ground, report: Report) -> None:
    """One of two parallel nodes fails, and then another process resumes."""
    report.columns = ("failed", "ran before", "ran on resume")
    for failing in STEPS[1]:
        thread = f"fail-{failing}"
        first = await ground.nest.run(ground.order(thread, "run", fails=[failing]))
        before = ground.tally(thread)
        second = await ground.nest.run(ground.order(thread, "resume"))
        after = ground.tally(thread)[len(before) :]
        (other,) = set(STEPS[1]) - {failing}
        report.rows.append(
            (
                failing,
                " ".join(nodes(before, "started")),
                " ".join(nodes(after, "started")),
            )
        )
        report.check(
            f"{failing} failed, {other} did not",
            []
            if "failed" in first.said and other in nodes(before, "finished")
            else [before],
        )
        again = nodes(after, "started")
        report.check(
            f"only {failing} runs again, {other} does not",
            () if again[0] == failing and other not in again else [again],
        )
        left = [name for name, count in Counter(again).items() if count > 1]
        report.check("nothing runs twice on resume", left)
        report.check(
            "it comes to its end",
            () if second.said.get("ended", {}).get("next") == [] else [second.said],
        )


async def replay(ground: Ground, report: Report) -> None:
    """Resume and replay a thread, and hold the calls against `jskv replay-plan`."""
    report.columns = ("from", "way", "planned", "called")
    await ground.nest.run(ground.order("replay", "run", asks=["pay"]))
    async with ground.open_saver() as saver:
        await saver.acopy_thread("replay", "resumed")
        plan = await _plan(ground, "resumed")
        await ground.nest.run(ground.order("resumed", "answer", asks=["pay"]))
        planned = [task.node for task in plan.tasks if task.on_resume]
        called = nodes(ground.tally("resumed"), "started")
        _compare(report, plan.id, "resume", planned, called[: len(planned)])
        config: RunnableConfig = {"configurable": {"thread_id": "resumed"}}
        rows = [row async for row in saver.alist(config)]
        ids = [row.config["configurable"]["checkpoint_id"] for row in rows]
        for id in ids:
            await saver.acopy_thread("resumed", f"replayed-{id}")
            plan = await _plan(ground, f"replayed-{id}", id)
            planned = [task.node for task in plan.tasks]
            planned += [node for step in plan.followed for node in step.nodes]
            if not planned or "__start__" in planned:
                continue
            order = ground.order(f"replayed-{id}", "replay", checkpoint=id)
            await ground.nest.run(order)
            called = nodes(ground.tally(f"replayed-{id}"), "started")
            _compare(report, id, "replay", planned, called)
    report.check(
        "replays were made from several checkpoints",
        () if len(report.rows) > len(STEPS) else [len(report.rows)],
    )


async def _plan(ground: Ground, thread: str, id: str | None = None) -> ReplayPlan:
    async with ground.open_saver() as saver:
        return await replay_plan(
            saver.store, ThreadRef(NAMESPACE, saver.agent_id, thread), id
        )


def _compare(
    report: Report, id: str, way: str, planned: list[str], called: list[str]
) -> None:
    report.rows.append((id, way, " ".join(planned), " ".join(called)))
    same = Counter(planned) == Counter(called)
    report.check(
        f"{way} from {id}: the calls are those that the plan names",
        () if same else [f"planned {planned}, called {called}"],
    )
