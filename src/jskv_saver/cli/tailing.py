"""`jskv tail`: what happens to threads, a line each, as it happens."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from datetime import UTC
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from jskv_saver import JetStreamDocumentStore
from jskv_saver.checkpoint.abilities import sealed_store
from jskv_saver.checkpoint.encryption import encryption_of_environment
from jskv_saver.checkpoint.following import Follower, Happening
from jskv_saver.checkpoint.inspect.preview import decoded, questions
from jskv_saver.cli.output import console, shown
from jskv_saver.cli.reading import Agent, Bucket, Namespace, Server

_PREVIEW = 200
_STYLES = {
    "checkpoint": "green",
    "writes": "blue",
    "interrupt": "bold magenta",
    "pruned": "red",
    "deleted": "bold red",
}


def tail(
    thread: Annotated[
        str | None,
        typer.Argument(
            help="Only this thread.", metavar="[THREAD]", show_default="all"
        ),
    ] = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    after: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Go on after this revision; 0: begin with what is stored.",
            show_default="from now on",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="End after so many lines; 0: never.")
    ] = 0,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line.")
    ] = False,
) -> None:
    """Print what happens to threads as it happens, by any process.

    Checkpoints, pending writes, interrupts, prunes and deletions, a line each. Ends at
    Ctrl-C; a server that goes away is waited for.
    """
    encryption = encryption_of_environment()

    async def followed() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        async with JetStreamDocumentStore.from_conn_string(
            server, bucket=bucket, read_only=True
        ) as store:
            sealed = sealed_store(store, encryption)
            follower = Follower(sealed, namespace, agent, thread, after)
            try:
                await _print_all(follower, as_json, limit)
            finally:
                await follower.close()

    try:
        asyncio.run(followed())
    except asyncio.CancelledError:
        # Ctrl-C is how one leaves.
        return


async def _print_all(follower: Follower, as_json: bool, limit: int) -> None:
    await follower.open()
    out = console()
    count = 0
    while not limit or count < limit:
        happening = await follower.next()
        if as_json:
            json.dump(_plain(happening), sys.stdout, ensure_ascii=True)
            print()
        else:
            _print(out, happening)
        # A line is there when it happens, through a pipe too.
        sys.stdout.flush()
        count += 1


def _print(out: Console, happening: Happening) -> None:
    style = _STYLES[happening.kind]
    line = Text.assemble(
        f"{happening.at.astimezone(UTC):%H:%M:%S.%f}"[:-3],
        "  ",
        (f"{happening.kind:10}", style),
        "  ",
        shown(happening.thread, "bold"),
    )
    if happening.ns:
        line.append("  in ").append_text(shown(happening.ns))
    for id in happening.ids:
        line.append("  ").append_text(shown(id, "yellow"))
    metadata = _metadata(happening)
    if metadata.get("source") is not None:
        line.append("  ").append_text(shown(str(metadata["source"])))
        if metadata.get("step") is not None:
            line.append(f" step {metadata['step']}")
    if happening.task is not None:
        line.append("  task ").append_text(shown(happening.task))
    for at, name in enumerate(happening.channels):
        line.append(", " if at else "  ").append_text(shown(name, "cyan"))
    if asked := _asked(happening):
        line.append("  asks ").append("; ".join(asked))
    out.print(line, soft_wrap=True)


def _asked(happening: Happening) -> list[str]:
    return [
        text
        for value in happening.interrupts
        for text in questions(value.kind, value.content, _PREVIEW)
    ]


def _metadata(happening: Happening) -> dict[str, Any]:
    """The source and the step, where they can be read."""
    if happening.metadata is None:
        return {}
    try:
        found = decoded(*happening.metadata)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    source, step = found.get("source"), found.get("step")
    return {
        "source": source if isinstance(source, str) else None,
        "step": step if type(step) is int else None,
    }


def _plain(happening: Happening) -> dict[str, Any]:
    """An event as JSON: what does not apply is left out."""
    fields: dict[str, Any] = {
        "kind": happening.kind,
        "revision": happening.revision,
        "at": happening.at.astimezone(UTC).isoformat(),
        "namespace": happening.namespace,
        "agent": happening.agent,
        "thread": happening.thread,
        "ns": happening.ns,
        "ids": list(happening.ids) or None,
        "parent": happening.parent,
        "run": happening.run,
        **_metadata(happening),
        "channels": list(happening.channels) or None,
        "task": happening.task,
        "interrupts": _asked(happening) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
