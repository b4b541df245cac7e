"""`jskv diff`: what changed between two checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from jskv_saver import DocumentStore
from jskv_saver.checkpoint.inspect import PREVIEW, find_thread
from jskv_saver.checkpoint.inspect.difference import (
    CheckpointDifference,
    ValueChange,
    checkpoint_difference,
)
from jskv_saver.checkpoint.inspect.preview import escaped
from jskv_saver.cli.output import console, counted, plain, print_json, shown, size_of
from jskv_saver.cli.reading import (
    Agent,
    Bucket,
    Json,
    Namespace,
    Ns,
    Server,
    Thread,
    read,
)
from jskv_saver.errors import InvalidRequestError

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def diff(
    thread: Thread,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="The ids of two checkpoints: what changed from A to B. One: from its "
            "parent to it.",
            metavar="[[A] B]",
            show_default="the latest and its parent",
        ),
    ] = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    ns: Ns = None,
    preview: Annotated[
        int, typer.Option(min=1, help="How many characters of each value to print.")
    ] = PREVIEW,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Show what changed between two checkpoints: values, metadata, pending writes."""
    given = ids or []
    if len(given) > 2:
        raise InvalidRequestError("name two checkpoints at most")
    before = given[0] if len(given) == 2 else None
    after = given[-1] if given else None

    async def use(
        store: DocumentStore, namespaces: Sequence[str]
    ) -> CheckpointDifference:
        ref = await find_thread(store, namespaces, thread, agent=agent)
        return await checkpoint_difference(
            store, ref, before, after, ns=ns, limit=preview
        )

    found = read(server, bucket, namespace, use)
    if as_json:
        print_json({"bucket": bucket, **plain(found)})
    else:
        _print(found)


def _print(found: CheckpointDifference) -> None:
    out = console()
    out.print(
        Text.assemble(
            "from ",
            shown(found.before, "bold yellow"),
            " to ",
            shown(found.after, "bold yellow"),
        ),
        soft_wrap=True,
    )
    for change in found.channels:
        _print_change(out, change)
    if found.metadata is not None:
        _print_change(out, found.metadata)
    for change in found.writes:
        _print_change(out, change, "write of ")
    out.print()
    out.print(
        f"{counted(len(found.channels), 'channel')} changed, {found.same} did not",
        style="dim",
    )


def _print_change(out: Console, change: ValueChange, what: str = "") -> None:
    sign, style = _SIGNS[change.how]
    sizes = size_of(change.size_after)
    if change.how == "removed":
        sizes = size_of(change.size_before)
    elif change.how == "changed":
        sizes = f"{size_of(change.size_before)} → {size_of(change.size_after)}"
    out.print()
    out.print(
        Text.assemble(
            (f"{sign} ", style), what, shown(change.name, "bold cyan"), f"  {sizes}"
        ),
        soft_wrap=True,
    )
    for step in change.steps:
        where = f"{escaped(step.path)} " if step.path else ""
        for sign, text in (("-", step.before), ("+", step.after)):
            if text is not None:
                out.print(
                    Text(
                        f"    {sign} {where}{text}", "red" if sign == "-" else "green"
                    ),
                    soft_wrap=True,
                )
    if not change.steps:
        out.print("    the same, in other bytes", style="dim")
    if change.more:
        out.print(f"    and {counted(change.more, 'change')} more", style="dim")
