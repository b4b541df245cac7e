"""How threads, histories and checkpoints are printed for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from jskv_saver.checkpoint.inspect import (
    CheckpointDetail,
    CheckpointInfo,
    PlannedTask,
    ThreadHistory,
    ThreadInfo,
    ThreadRef,
    ValueInfo,
    escaped,
)
from jskv_saver.cli.output import console, counted, shown, size_of, time_of
from jskv_saver.cli.tables import Column, print_table

_THREADS = (
    Column("thread"),
    Column("namespace", folds_to=9),
    Column("agent", folds_to=12),
    Column("checkpoints", right=True, folds_to=11),
    # `jskv history` says it as well.
    Column("newest checkpoint", goes=1),
    Column("stored (UTC)", goes=2),
)
_STEPS = (
    Column("checkpoint"),
    Column("step", folds_to=5),
    Column("writes", right=True, goes=3),
    Column("new", right=True, goes=2),
    Column("shared", right=True, goes=1),
)
_VALUE = (
    Column("type", folds_to=7, goes=2),
    Column("size", right=True, goes=3),
    Column("parts", right=True, goes=1),
    Column("value", folds_to=20),
)
_CHANNELS = (Column("channel"), Column("version", folds_to=12), *_VALUE)
_WRITES = (Column("task"), Column("channel"), *_VALUE)

_NEXT = {
    "new": "",
    "done": ", which is done",
    "failed": ", which failed:",
    "handled": ", whose handler runs after",
    "asks": ", which asks",
}
"""What is stored of a task, by its state."""


def print_threads(
    bucket: str,
    threads: Sequence[ThreadInfo],
    total: int,
    wanted: Mapping[str, str | None],
) -> None:
    """Print a table of threads, or that there are none of the namespace and agent."""
    out = console()
    if not threads:
        of = [
            Text.assemble(f" of {name} ", shown(value))
            for name, value in wanted.items()
            if value is not None
        ]
        out.print(Text.assemble("no threads in bucket ", shown(bucket), *of))
        return
    rows: list[tuple[str | Text, ...]] = []
    for info in threads:
        subgraphs = len(set(info.namespaces) - {""})
        count = str(info.checkpoints)
        if subgraphs:
            count += f" in {counted(len(info.namespaces), 'namespace')}"
        rows.append(
            (
                shown(info.ref.thread, "bold"),
                shown(info.ref.namespace),
                shown(info.ref.agent),
                count,
                "-" if info.newest_id is None else shown(info.newest_id),
                time_of(info.newest_at),
            )
        )
    print_table(out, _THREADS, rows)
    if encrypted := sum(info.encrypted for info in threads):
        out.print(f"{encrypted} of {len(threads)} encrypted", style="dim")
    if total > len(threads):
        out.print(f"{total - len(threads)} more: use --limit and --offset", style="dim")


def print_history(history: ThreadHistory) -> None:
    """Print a paragraph for each checkpoint, as `git log` does."""
    out = console()
    out.print(_heading(history.ref), soft_wrap=True)
    several = len({info.ns for info in history.checkpoints}) > 1
    for info in history.checkpoints:
        out.print()
        for line in _lines(info, with_ns=several or bool(info.ns)):
            out.print(line, soft_wrap=True)
    out.print()
    left = history.total - len(history.checkpoints)
    more = f", {left} more: use --limit" if left else ""
    out.print(counted(history.total, "checkpoint") + more, style="dim")


def print_steps(out: Console, history: ThreadHistory) -> None:
    """Print a short table of a history."""
    rows = [
        (
            shown(info.id, "yellow"),
            _step(info.source, info.step),
            str(info.writes),
            size_of(info.new_bytes),
            size_of(info.shared_bytes),
        )
        for info in history.checkpoints
    ]
    print_table(out, _STEPS, rows)


def _lines(info: CheckpointInfo, *, with_ns: bool) -> list[Text]:
    first = Text.assemble(
        shown(info.id, "bold yellow"), "  ", _step(info.source, info.step)
    )
    first.append(f"  {time_of(info.stored_at)} UTC")
    lines = [first]
    if with_ns:
        lines.append(Text.assemble("  namespace  ", shown(info.ns)))
    parent = Text("none") if info.parent is None else shown(info.parent)
    lines.append(Text.assemble("  parent     ", parent))
    if info.run is not None:
        lines.append(Text.assemble("  run        ", shown(info.run)))
    channels = Text("  channels   ")
    for at, (name, size) in enumerate(info.channels.items()):
        channels.append("  " if at else "")
        channels.append_text(shown(name, "cyan"))
        channels.append(f" {size_of(size)}")
    lines.append(channels)
    stored = f"  stored     {size_of(info.new_bytes)} new"
    if info.shared_bytes:
        stored += f", {size_of(info.shared_bytes)} shared with the parent"
    if info.writes:
        stored += f"; {counted(info.writes, 'pending write')}"
    lines.append(Text(stored))
    return lines


def print_checkpoint(
    detail: CheckpointDetail, tasks: Sequence[PlannedTask] | None
) -> None:
    """Print everything that is in a checkpoint, and what comes after it."""
    out = console()
    out.print(_heading(detail.ref), soft_wrap=True)
    out.print(
        Text.assemble(
            "checkpoint ",
            shown(detail.id, "bold yellow"),
            "  ",
            _step(detail.source, detail.step),
        ),
        soft_wrap=True,
    )
    facts: dict[str, str | Text] = {
        "namespace": shown(detail.ns) if detail.ns else "the root",
        "parent": "none" if detail.parent is None else shown(detail.parent),
        "run": "none" if detail.run is None else shown(detail.run),
        "stored": f"{time_of(detail.stored_at)} UTC",
        "revision": f"{detail.version}, format {detail.format}",
        "metadata": _preview(detail.metadata),
        "next": _next(tasks),
    }
    if detail.deltas:
        facts["deltas"] = Text(", ").join(map(shown, detail.deltas))
    for name, fact in facts.items():
        # Wrapped by the terminal, if at all: an id stays one word.
        out.print(Text.assemble(f"{name:9}  ", fact), soft_wrap=True)
    out.print()
    channels: list[tuple[str | Text, ...]] = []
    for name in sorted({*detail.channels, *detail.versions}):
        version = detail.versions.get(name)
        known = Text("-") if version is None else shown(str(version))
        columns = _columns(detail.channels.get(name))
        channels.append((shown(name, "cyan"), known, *columns))
    print_table(out, _CHANNELS, channels)
    if detail.writes:
        out.print()
        out.print(counted(len(detail.writes), "pending write"))
        writes = [
            (shown(write.task), shown(write.channel, "cyan"), *_columns(write.value))
            for write in detail.writes
        ]
        print_table(out, _WRITES, writes)


def _next(tasks: Sequence[PlannedTask] | None) -> str | Text:
    if tasks is None:
        return "only the program that wrote it can say"
    told = []
    for task in tasks:
        state = _NEXT[task.state]
        if task.detail is not None:
            state += f" {escaped(task.detail)}"
        told.append(Text.assemble(shown(task.node, "cyan"), state))
    return Text("; ").join(told) if told else "nothing: it has come to its end"


def _columns(value: ValueInfo | None) -> tuple[str | Text, ...]:
    if value is None:
        return ("-", "", "", Text("no value in this checkpoint", style="dim"))
    return (shown(value.kind), size_of(value.size), str(value.parts), _preview(value))


def _preview(value: ValueInfo) -> Text:
    if value.missing is not None:
        return Text.assemble(
            ("damaged: ", "bold red"), shown(value.missing), " is not stored"
        )
    return Text(value.preview, overflow="fold")


def _heading(ref: ThreadRef) -> Text:
    return Text.assemble(
        "thread ",
        shown(ref.thread, "bold"),
        "  namespace ",
        shown(ref.namespace),
        "  agent ",
        shown(ref.agent),
    )


def _step(source: str | None, step: int | None) -> Text:
    if source is None:
        return Text("step unknown", style="dim")
    return Text.assemble(shown(source), "" if step is None else f" step {step}")
