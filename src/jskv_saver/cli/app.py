"""All commands together."""

from __future__ import annotations

import io
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from jskv_saver.cli import (
    archives,
    checking,
    demo,
    diffing,
    doctor,
    drill,
    migrate,
    permissions,
    pinning,
    planning,
    reading,
    removing,
    running,
    serve,
    tailing,
)

app = typer.Typer(
    name="jskv",
    help="LangGraph threads in a NATS JetStream KV bucket: look, serve, run a demo.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("threads")(reading.threads)
app.command("history")(reading.history)
app.command("show")(reading.show)
app.command("replay-plan")(planning.plan)
app.command("diff")(diffing.diff)
app.command("tail")(tailing.tail)
app.command("export")(archives.export)
app.command("import")(archives.import_)
app.command("prune")(removing.prune)
app.command("delete")(removing.delete)
app.command("copy")(removing.copy)
app.command("pin")(pinning.pin)
app.command("unpin")(pinning.unpin)
app.command("pinned")(pinning.pinned)
app.command("verify")(checking.verify)
app.command("repair")(checking.repair)
app.command("up")(running.up)
app.command("down")(running.down)
app.command("status")(running.status)
app.command("doctor")(doctor.doctor)
app.command("serve")(serve.serve)
app.command("migrate")(migrate.migrate)
app.command("permissions")(permissions.permissions)
app.command("demo")(demo.demo)
app.command("drill")(drill.drill)


@app.command("version")
def print_version() -> None:
    """Print the version of jskv-saver."""
    try:
        print(version("jskv-saver"))
    except PackageNotFoundError:
        print("unknown: it is not installed")


def _version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """LangGraph threads in a NATS JetStream KV bucket: look, serve, run a demo."""
    # Ids and values may have characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
