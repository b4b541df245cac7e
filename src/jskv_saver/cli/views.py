"""How threads, histories and checkpoints are printed for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from jskv_saver.checkpoint.inspect import (
    CheckpointDetail,
    CheckpointInfo,
    ThreadHistory,
    ThreadInfo,
    ThreadRef,
    ValueInfo,
)
from jskv_saver.cli.output import console, counted, shown, size_of, time_of


def print_threads(bucket: str, threads: Sequence[ThreadInfo], total: int) -> None:
    """Print a table of threads."""
    out = console()
    if not threads:
        out.print(Text.assemble("no threads in bucket ", shown(bucket)))
        return
    table = _table("thread", "namespace", "agent")
    table.add_column("checkpoints", justify="right")
    table.add_column("newest checkpoint", overflow="fold")
    table.add_column("stored (UTC)", no_wrap=True)
    for info in threads:
        subgraphs = len(set(info.namespaces) - {""})
        count = str(info.checkpoints)
        if subgraphs:
            count += f" in {counted(len(info.namespaces), 'namespace')}"
        table.add_row(
            shown(info.ref.thread, "bold"),
            shown(info.ref.namespace),
            shown(info.ref.agent),
            count,
            "-" if info.newest_id is None else shown(info.newest_id),
            time_of(info.newest_at),
        )
    out.print(table)
    if total > len(threads):
        out.print(f"{total - len(threads)} more: use --limit", style="dim")


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


def print_steps(history: ThreadHistory) -> None:
    """Print a short table of a history."""
    table = _table("checkpoint", "step")
    table.add_column("pending writes", justify="right")
    table.add_column("new", justify="right", no_wrap=True)
    table.add_column("shared", justify="right", no_wrap=True)
    for info in history.checkpoints:
        table.add_row(
            shown(info.id, "yellow"),
            _step(info.source, info.step),
            str(info.writes),
            size_of(info.new_bytes),
            size_of(info.shared_bytes),
        )
    console().print(table)


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


def print_checkpoint(detail: CheckpointDetail) -> None:
    """Print everything that is in a checkpoint."""
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
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("namespace", shown(detail.ns) if detail.ns else "the root")
    facts.add_row("parent", "none" if detail.parent is None else shown(detail.parent))
    facts.add_row("run", "none" if detail.run is None else shown(detail.run))
    facts.add_row("stored", f"{time_of(detail.stored_at)} UTC")
    facts.add_row("revision", f"{detail.version}, format {detail.format}")
    facts.add_row("metadata", _preview(detail.metadata))
    if detail.deltas:
        facts.add_row("deltas", Text(", ").join(map(shown, detail.deltas)))
    out.print(facts)
    out.print()
    table = _table("channel", "version", "type")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("parts", justify="right")
    table.add_column("value", overflow="fold")
    for name in sorted({*detail.channels, *detail.versions}):
        version = detail.versions.get(name)
        known = Text("-") if version is None else shown(str(version))
        table.add_row(shown(name, "cyan"), known, *_columns(detail.channels.get(name)))
    out.print(table)
    if detail.writes:
        out.print()
        out.print(counted(len(detail.writes), "pending write"))
        table = _table("task", "channel", "type")
        table.add_column("size", justify="right", no_wrap=True)
        table.add_column("parts", justify="right")
        table.add_column("value", overflow="fold")
        for write in detail.writes:
            table.add_row(
                shown(write.task), shown(write.channel, "cyan"), *_columns(write.value)
            )
        out.print(table)


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


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table
