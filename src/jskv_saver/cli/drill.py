"""`jskv drill`: do on purpose what goes wrong in production, and report it."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jskv_saver import LocalServer
from jskv_saver.cli.output import console, print_json
from jskv_saver.cli.tables import Column, print_table
from jskv_saver.errors import InvalidRequestError

if TYPE_CHECKING:
    from jskv_saver.cli.drills.ground import Report


def drill(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Which ones.", metavar="[NAME]...", show_default="all"),
    ] = None,
    *,
    stride: Annotated[
        int,
        typer.Option(min=1, help="Kill a worker at every N-th message only."),
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Kill workers, fail nodes, change the graph, prune: report what survives.

    Starts a NATS server of its own, with a temporary store, and real processes; all are
    gone at the end. Exits with 1 if anything is not as it should be.
    """
    if importlib.util.find_spec("langgraph.graph") is None:
        raise InvalidRequestError(
            'drills need langgraph; install it with: pip install "jskv-saver[demo]"'
        )
    from jskv_saver.cli.drills.registry import chosen, perform

    wanted = chosen(names or [])

    async def run() -> list[Report]:
        async with LocalServer() as server:
            return await perform(
                wanted,
                server.url,
                stride=stride,
                done=(lambda _: None) if as_json else _print,
            )

    reports = asyncio.run(run())
    holds = all(report.holds for report in reports)
    if as_json:
        drills = [
            dataclasses.asdict(report) | {"holds": report.holds} for report in reports
        ]
        print_json({"holds": holds, "drills": drills})
    else:
        _print_end(reports)
    if not holds:
        raise typer.Exit(1)


def _print(report: Report) -> None:
    out = console()
    out.print(
        Text.assemble(
            (report.name, "bold"), f"  {report.title}  ({report.seconds:.1f} s)"
        ),
        soft_wrap=True,
    )
    if report.rows:
        out.print()
        columns = [Column(name, folds_to=12) for name in report.columns]
        print_table(out, columns, report.rows)
        out.print()
    for check in report.checks:
        mark = ("   ok  ", "bold green") if check.holds else ("  FAIL ", "bold red")
        out.print(Text.assemble(mark, check.what), soft_wrap=True)
        if check.detail:
            out.print(Text(f"       {check.detail}"), soft_wrap=True)
    if report.skipped is not None:
        out.print(Text(f"   not done: {report.skipped}", style="yellow"))
    out.print()


def _print_end(reports: list[Report]) -> None:
    checks = [check for report in reports for check in report.checks]
    failed = sum(not check.holds for check in checks)
    line = f"{len(reports)} drills, {len(checks)} checks: "
    if failed:
        console().print(f"{line}{failed} do not hold.", style="bold red")
    else:
        console().print(f"{line}all hold.", style="bold green")
