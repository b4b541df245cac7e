"""`jskv up`, `down` and `status`: a NATS server for the project at hand."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from jskv_saver._nats.addresses import redacted
from jskv_saver.cli.output import STOPPED, print_json
from jskv_saver.cli.project import Project, State, write_context
from jskv_saver.cli.reading import Json
from jskv_saver.errors import InvalidRequestError

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        help="The project's directory.",
        show_default="the nearest one with a folder .jskv, else this one",
    ),
]


def up(
    *,
    directory: Directory = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Its port.", show_default="as before, else any"
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Also write a context of this name for the nats command.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        bool, typer.Option("--select", help="Make that context the current one.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Start a NATS server for this project, and print its address.

    It keeps its data in the folder .jskv, listens on the loopback address only, asks
    for a login, and goes on after this command. Started again it has the same address:

        eval "$(jskv up)"
    """
    if select and context is None:
        raise InvalidRequestError("--select goes with --context")
    state = _project(directory).up(port)
    if context is not None:
        path = write_context(context, state.url, select=select)
        print(f"context {context} in {path}", file=sys.stderr)
    if as_json:
        print_json(dataclasses.asdict(state))
        return
    print(
        f"nats-server runs as process {state.pid}, its data is in {state.folder}",
        file=sys.stderr,
    )
    print(f"export NATS_URL={state.url}")


def down(*, directory: Directory = None) -> None:
    """Stop the project's NATS server; its data stays."""
    ended = _project(directory).down()
    print("stopped" if ended else "it was not running")


def status(*, directory: Directory = None, as_json: Json = False) -> None:
    """Say whether the project's NATS server runs; exits with 3 if it does not."""
    state = _project(directory).state()
    if as_json:
        print_json(dataclasses.asdict(state))
    else:
        print(_told(state))
    if not state.running:
        raise typer.Exit(STOPPED)


def _told(state: State) -> str:
    if not state.port:
        return f"no server was started in {state.folder}: `jskv up` starts one"
    where = redacted(state.url)
    if not state.running:
        return f"not running, was at {where}: `jskv up` starts it"
    return f"running at {where} as process {state.pid}, logs to {state.log}"


def _project(directory: Path | None) -> Project:
    if directory is None:
        return Project.find(Path.cwd())
    if not directory.is_dir():
        raise InvalidRequestError(f"{str(directory)!r} is no directory")
    return Project(directory.resolve())
