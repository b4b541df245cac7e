"""All commands together."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from jskv_saver.cli import (
    archives,
    bench,
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
from jskv_saver.cli.output import FAILED, INTERRUPTED, USAGE, complain

app = typer.Typer(
    name="jskv",
    help="LangGraph threads in a NATS JetStream KV bucket.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(name: str, command: Callable[..., None]) -> None:
    """Add a command, whose line in the list of all is not cut off."""
    first = (command.__doc__ or "").partition("\n")[0]
    app.command(name, short_help=first)(command)


_add("threads", reading.threads)
_add("history", reading.history)
_add("show", reading.show)
_add("replay-plan", planning.plan)
_add("diff", diffing.diff)
_add("tail", tailing.tail)
_add("export", archives.export)
_add("import", archives.import_)
_add("prune", removing.prune)
_add("delete", removing.delete)
_add("copy", removing.copy)
_add("pin", pinning.pin)
_add("unpin", pinning.unpin)
_add("pinned", pinning.pinned)
_add("verify", checking.verify)
_add("repair", checking.repair)
_add("up", running.up)
_add("down", running.down)
_add("status", running.status)
_add("doctor", doctor.doctor)
_add("serve", serve.serve)
_add("migrate", migrate.migrate)
_add("permissions", permissions.permissions)
_add("demo", demo.demo)
_add("drill", drill.drill)
_add("bench", bench.bench)


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
    """LangGraph threads in a NATS JetStream KV bucket.

    Exits with 0, with 1 where what was asked for was not done (a line on standard error
    says why), and with 2 where the command line is none. NO_COLOR turns colours off.
    """
    # Ids and values may have characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def run() -> int:
    """Run the command that was typed, and return the exit code.

    What the parser refuses is one line on standard error, as every other error is.
    """
    try:
        code = app(prog_name="jskv", standalone_mode=False)
    except typer.Abort as exc:
        # Ctrl-C, or a question that was answered with no.
        interrupted = isinstance(exc.__cause__, KeyboardInterrupt)
        return INTERRUPTED if interrupted else FAILED
    except Exception as exc:
        # Typer brings a parser of its own, of which only this is known.
        explain = getattr(exc, "format_message", None)
        if explain is None:
            raise
        text: str = explain()
        context = getattr(exc, "ctx", None)
        if "\n" in text:
            # Typed without anything: the help.
            print(text, file=sys.stderr)
        elif context is None:
            complain(text)
        else:
            complain(text, f"{context.command_path} --help")
        return int(getattr(exc, "exit_code", USAGE))
    return code if isinstance(code, int) else 0
