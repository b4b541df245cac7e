"""`jskv doctor`: what is not as it should be, and what mends it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from jskv_saver.cli.checkup import Checkup
from jskv_saver.cli.findings import Finding, Level, worst
from jskv_saver.cli.output import BROKEN, WARNED, console, print_json
from jskv_saver.cli.packages import check_packages
from jskv_saver.cli.reading import Bucket, Json, Server

_STYLES = {
    Level.OK: "green",
    Level.NOTE: "cyan",
    Level.WARNING: "yellow",
    Level.ERROR: "bold red",
}


def doctor(
    *,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="First turn on the settings that an existing bucket lacks."
        ),
    ] = False,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Look at server, bucket, permissions, clock and versions, and say what to do.

    It writes nothing without --fix. Exits with 0 where all is well, 3 for a warning, 4
    where something does not work.
    """
    mended, findings = asyncio.run(_examined(server, bucket, fix))
    findings += check_packages()
    level = worst(findings)
    if as_json:
        print_json(
            {
                "bucket": bucket,
                "worst": level.word,
                "fixed": mended,
                "findings": [
                    {
                        "topic": found.topic,
                        "level": found.level.word,
                        "text": found.text,
                        "fix": found.fix or None,
                    }
                    for found in findings
                ],
            }
        )
    else:
        _print(findings, mended)
    if level is Level.ERROR:
        raise typer.Exit(BROKEN)
    if level is Level.WARNING:
        raise typer.Exit(WARNED)


async def _examined(
    server: str | None, bucket: str, fix: bool
) -> tuple[list[str], list[Finding]]:
    checkup = Checkup(server, bucket)
    try:
        mended = await checkup.mend() if fix else []
        return mended, [found async for found in checkup.findings()]
    finally:
        await checkup.close()


def _print(findings: list[Finding], mended: list[str]) -> None:
    out = console()
    if mended:
        out.print(f"turned on: {', '.join(mended)}")
    for found in findings:
        out.print(
            Text.assemble(
                (f"{found.level.word:7}", _STYLES[found.level]),
                f"  {found.topic:11}  {found.text}",
            ),
            soft_wrap=True,
        )
        if found.fix:
            out.print(Text(f"{'':22}→ {found.fix}", "dim"), soft_wrap=True)
