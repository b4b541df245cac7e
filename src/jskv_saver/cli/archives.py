"""`jskv export` and `jskv import`: threads as one file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from jskv_saver import DocumentStore, JetStreamDocumentStore
from jskv_saver.checkpoint.abilities import sealed_store
from jskv_saver.checkpoint.archived import Totals
from jskv_saver.checkpoint.encryption import encryption_of_environment
from jskv_saver.checkpoint.inspect import find_thread, list_threads
from jskv_saver.checkpoint.transfer import (
    check_archive,
    export_threads,
    import_threads,
)
from jskv_saver.cli.output import counted, plain, print_json
from jskv_saver.cli.progress import Progress
from jskv_saver.cli.reading import Agent, Bucket, Json, Namespace, Server, read
from jskv_saver.errors import InvalidRequestError

_STANDARD = "-"
_COPIED = 1 << 20

File = Annotated[
    str, typer.Argument(help="The archive; - is the standard stream.", metavar="FILE")
]


def export(
    file: File,
    thread: Annotated[
        str | None,
        typer.Argument(
            help="Only this thread.", metavar="[THREAD]", show_default="all"
        ),
    ] = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there.")
    ] = False,
    bucket: Bucket = "jskv",
    server: Server = None,
) -> None:
    """Write threads to one file: all checkpoints, namespaces and pending writes.

    Also while graphs run: each checkpoint is in it whole or not at all. Values stay as
    they are stored; encrypted ones stay encrypted.
    """
    if file != _STANDARD and not force and os.path.exists(file):
        raise InvalidRequestError(f"{file!r} is there already: --force replaces it")

    async def use(store: DocumentStore, namespaces: Sequence[str]) -> Totals:
        if thread is None:
            found = await list_threads(store, namespaces, agent=agent)
            refs = sorted(
                (info.ref for info in found),
                key=lambda ref: (ref.namespace, ref.agent, ref.thread),
            )
        else:
            refs = [await find_thread(store, namespaces, thread, agent=agent)]
        with _written(file) as stream, Progress("exporting") as progress:
            return await export_threads(
                store,
                refs,
                stream,
                lambda totals: progress(
                    f"{totals.threads} of {counted(len(refs), 'thread')}, "
                    f"{counted(totals.checkpoints, 'checkpoint')}"
                ),
            )

    totals = read(server, bucket, namespace, use)
    print(f"exported {_told(totals)}", file=sys.stderr)


def import_(
    file: File,
    *,
    namespace: Annotated[
        str | None,
        typer.Option(help="Put into this namespace.", show_default="each thread's own"),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Put under this agent.", show_default="each thread's own"),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check the archive; no server is asked."),
    ] = False,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Put the threads of an archive into a bucket, which is made if there is none.

    The archive is checked to its end before anything is put, and what was put is read
    back and compared. It can be repeated: what is there already is left; other content
    under the id of a checkpoint is an error, and never overwritten.
    """
    with _seekable(file) as stream:
        totals = check_archive(stream)
        if not check:
            asyncio.run(_import(server, bucket, stream, totals, namespace, agent))
    if as_json:
        print_json({"bucket": None if check else bucket, **plain(totals)})
    else:
        done = "whole, with" if check else "imported and compared"
        print(f"{done} {_told(totals)}")


async def _import(
    server: str | None,
    bucket: str,
    stream: BinaryIO,
    totals: Totals,
    namespace: str | None,
    agent: str | None,
) -> None:
    encryption = encryption_of_environment()
    async with JetStreamDocumentStore.from_conn_string(server, bucket=bucket) as raw:
        store = sealed_store(raw, encryption)
        for what, check in (("importing", False), ("comparing", True)):
            stream.seek(0)
            with Progress(what) as progress:
                say = partial(_say, progress, totals)
                await import_threads(
                    store,
                    stream,
                    namespace=namespace,
                    agent=agent,
                    check=check,
                    progress=say,
                )


def _say(progress: Progress, totals: Totals, done: Totals) -> None:
    progress(f"{done.checkpoints} of {counted(totals.checkpoints, 'checkpoint')}")


def _told(totals: Totals) -> str:
    return (
        f"{counted(totals.threads, 'thread')}, "
        f"{counted(totals.checkpoints, 'checkpoint')}, "
        f"{counted(totals.writes, 'pending write')}"
    )


@contextlib.contextmanager
def _written(file: str) -> Iterator[BinaryIO]:
    """A file that is there when it is whole, and not before."""
    if file == _STANDARD:
        if sys.stdout.isatty():
            raise InvalidRequestError("an archive is no text: write it to a file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(file)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as exc:
        raise InvalidRequestError(
            f"{file!r} cannot be written: {exc.strerror}"
        ) from exc
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


@contextlib.contextmanager
def _seekable(file: str) -> Iterator[BinaryIO]:
    """The archive to be read twice; of a pipe a copy."""
    with contextlib.ExitStack() as stack:
        try:
            source: BinaryIO = (
                sys.stdin.buffer
                if file == _STANDARD
                else stack.enter_context(open(file, "rb"))
            )
            if source.seekable():
                yield source
                return
        except OSError as exc:
            raise InvalidRequestError(
                f"{file!r} cannot be read: {exc.strerror}"
            ) from exc
        copy = stack.enter_context(tempfile.TemporaryFile())
        while piece := source.read(_COPIED):
            copy.write(piece)
        copy.seek(0)
        yield copy
