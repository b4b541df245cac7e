"""The command that moves threads from one saver to another."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from langgraph.checkpoint.memory import InMemorySaver
from rich.text import Text

from jskv_saver.cli.output import console, counted, plain, print_json, shown
from jskv_saver.cli.progress import Progress
from jskv_saver.errors import InvalidRequestError
from jskv_saver.migrate import Outcome, Report, ThreadReport
from jskv_saver.migrate import migrate as move
from jskv_saver.migrate.places import FORMS, NothingThereError, opened

_FORMS = "; ".join(FORMS)


def migrate(
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help=f"Where from: {_FORMS}.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="Where to: another place.")
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Write. Else it only compares and tells.")
    ] = False,
    thread: Annotated[
        list[str] | None,
        typer.Option(help="Only this thread; several times for several."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy threads between savers: a dry run, unless --apply is given.

    Nothing is removed or changed anywhere. What is there already is compared, so an
    interrupted call is simply repeated. Exit code 1: a thread diverged or failed.
    """
    if source == target:
        raise InvalidRequestError("--from and --to are the same place")
    report = asyncio.run(_moved(source, target, apply, thread))
    if as_json:
        print_json({"applied": report.applied, "threads": plain(report.threads)})
    else:
        _print(report)
    if not report.complete:
        raise typer.Exit(1)


async def _moved(
    source: str, target: str, apply: bool, threads: list[str] | None
) -> Report:
    async with AsyncExitStack() as stack:
        from_here = await stack.enter_async_context(opened(source, make=False))
        try:
            to_there = await stack.enter_async_context(opened(target, make=apply))
        except NothingThereError:
            # A dry run makes nothing: what is not there has no threads.
            to_there = InMemorySaver()
        with Progress("moving" if apply else "comparing") as progress:

            def say(_: ThreadReport, left: int) -> None:
                progress(f"{counted(left, 'thread')} to go")

            return await move(
                from_here, to_there, apply=apply, thread_ids=threads, on_thread=say
            )


def _print(report: Report) -> None:
    out = console()
    for each in report.threads:
        if each.why:
            out.print(
                Text.assemble(
                    f"{each.outcome}: thread ",
                    shown(each.thread),
                    ": ",
                    shown(each.why),
                )
            )
    counts = report.counts
    told: dict[Outcome, str] = {
        "copied": "copied and read back",
        "pending": "to copy",
        "same": "there already",
        "diverged": "diverged, left alone",
        "failed": "failed",
    }
    found = [f"{counts[key]} {text}" for key, text in told.items() if counts[key]]
    out.print(f"{counted(len(report.threads), 'thread')}: {', '.join(found) or 'none'}")
    if counts["pending"]:
        out.print("nothing was written: --apply does it")
