"""`jskv demo`: kill an agent in the middle of its work, twice, and resume it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from jskv_saver import LocalServer
from jskv_saver.cli import demo_report
from jskv_saver.cli.demo_process import WORKER, DemoFailedError
from jskv_saver.cli.demo_story import Story
from jskv_saver.cli.output import console, failed
from jskv_saver.errors import InvalidRequestError

_PATIENCE = 60.0
"""Seconds that the whole demo may take."""


def demo(
    *,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the server at the end, until Ctrl-C, to look inside."
        ),
    ] = False,
) -> None:
    """Kill an agent in the middle of its work, twice, and resume it.

    Starts a NATS server of its own, with a temporary store, on a free port. Needs no
    network, no model and no key. Exits with 1 if anything is not as it should be.
    """
    if importlib.util.find_spec("langgraph.graph") is None:
        raise InvalidRequestError(
            'the demo needs langgraph; install it with: pip install "jskv-saver[demo]"'
        )
    try:
        asyncio.run(run(console(), keep=keep))
    except DemoFailedError as exc:
        failed(exc)


async def run(
    out: Console, *, keep: bool = False, command: Sequence[str] = WORKER
) -> None:
    """Run the demo.

    Args:
        out: Where it prints.
        keep: Wait for Ctrl-C at the end, with the server.
        command: The program of the processes that run the graph.

    Raises:
        DemoFailedError: Something is not as it should be.
    """
    begun = time.monotonic()
    async with LocalServer() as server:
        try:
            async with asyncio.timeout(_PATIENCE):
                story = Story(out, server, command)
                await story.tell()
                await demo_report.report(out, story)
        except TimeoutError as exc:
            raise DemoFailedError(f"it took over {_PATIENCE:.0f} seconds") from exc
        seconds = time.monotonic() - begun
        out.print()
        out.print(
            f"All {story.checks} checks hold; {seconds:.1f} seconds.",
            style="bold green",
        )
        demo_report.say_what_next(out, server.url if keep else None)
        if keep:
            # Ctrl-C cancels this; the server ends with its block.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
