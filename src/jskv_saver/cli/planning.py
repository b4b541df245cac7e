"""`jskv replay-plan`: what would run if a thread went on from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from jskv_saver import DocumentStore
from jskv_saver.checkpoint.inspect import (
    PlannedTask,
    ReplayPlan,
    find_thread,
    replay_plan,
)
from jskv_saver.cli import reading
from jskv_saver.cli.output import console, counted, plain, print_json, shown
from jskv_saver.cli.reading import Agent, Bucket, Json, Namespace, Server, Thread
from jskv_saver.cli.tables import Column, print_table

_TASKS = (
    Column("node", folds_to=12),
    Column("stored", folds_to=12),
    Column("on resume", folds_to=9),
    Column("on replay", folds_to=9),
    Column("triggered by", folds_to=16, goes=1),
)
_FOLLOWED = (Column("after checkpoint", goes=1), Column("ran", folds_to=20))
_STATES = {
    "new": "nothing",
    "done": "its results",
    "failed": "its error",
    "handled": "its error, for its handler",
    "asks": "its question",
}


def plan(
    thread: Thread,
    checkpoint_id: Annotated[
        str | None,
        typer.Argument(
            help="Its id.", metavar="[CHECKPOINT_ID]", show_default="the latest"
        ),
    ] = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    ns: Annotated[str, typer.Option(help="Its checkpoint namespace.")] = "",
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Say which tasks would run from a checkpoint, from what is stored alone.

    A resume goes on from the latest checkpoint without naming it; a replay names it.
    """

    async def use(store: DocumentStore, namespaces: Sequence[str]) -> ReplayPlan:
        ref = await find_thread(store, namespaces, thread, agent=agent)
        return await replay_plan(store, ref, checkpoint_id, ns=ns)

    found = reading.read(server, bucket, namespace, use)
    if as_json:
        tasks = [
            plain(task) | {"on_resume": task.on_resume, "on_replay": True}
            for task in found.tasks
        ]
        print_json({"bucket": bucket, **plain(found), "tasks": tasks})
    else:
        _print(found)


def _print(found: ReplayPlan) -> None:
    out = console()
    ref = found.ref
    out.print(
        Text.assemble(
            *("thread ", shown(ref.thread, "bold"), "  namespace "),
            *(shown(ref.namespace), "  agent ", shown(ref.agent)),
        ),
        soft_wrap=True,
    )
    line = Text.assemble("checkpoint ", shown(found.id, "bold yellow"))
    line.append("  the latest" if found.latest else "  not the latest")
    if found.graph_version is not None:
        line.append_text(Text.assemble("  graph version ", shown(found.graph_version)))
    out.print(line, soft_wrap=True)
    out.print()
    if found.tasks:
        print_table(out, _TASKS, [_row(task, found.latest) for task in found.tasks])
    else:
        out.print("Nothing would run: no task is left at this checkpoint.")
    if found.followed:
        out.print()
        out.print("What came after it, which a replay would do again if it goes the")
        out.print("same way:")
        rows = [
            (shown(step.id, "yellow"), Text(", ").join(map(shown, step.nodes)))
            for step in found.followed
        ]
        print_table(out, _FOLLOWED, rows)
        if found.more:
            out.print(f"and more than {counted(len(rows), 'step')}", style="dim")


def _row(task: PlannedTask, latest: bool) -> tuple[str | Text, ...]:
    stored = Text(_STATES[task.state])
    if task.detail is not None:
        stored.append_text(Text.assemble(": ", shown(task.detail)))
    resume = "-"
    if latest and task.state != "handled":
        resume = "runs" if task.on_resume else "kept"
    return (
        shown(task.node, "cyan"),
        stored,
        resume,
        "runs",
        Text(", ").join(map(shown, task.triggers)) if task.triggers else Text("-"),
    )
