"""`jskv serve`: the document service, in front of a KV bucket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from jskv_saver import DocumentService, JetStreamDocumentStore, LocalServer
from jskv_saver.adapters.wire.service import DEFAULT_NAME
from jskv_saver.cli.reading import Bucket, Server
from jskv_saver.errors import InvalidRequestError


def serve(
    *,
    bucket: Bucket = "jskv",
    server: Server = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="Start a NATS server of its own, and serve there."
        ),
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(
            help="With --local: the folder that keeps its data.",
            show_default="a temporary one",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --local: its port; 0: any.")
    ] = 0,
    name: Annotated[str, typer.Option(help="Name of the service.")] = DEFAULT_NAME,
    inbox_prefix: Annotated[
        list[str] | None,
        typer.Option(
            help="Where answers may go besides _INBOX. May be given several times.",
            show_default=False,
        ),
    ] = None,
    concurrent: Annotated[int, typer.Option(min=1, help="Calls at a time.")] = 64,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel", help="Record OpenTelemetry spans and metrics, globally set up."
        ),
    ] = False,
) -> None:
    """Serve the documents of a bucket to programs that have no rights on it.

    Several of them share the load. Ends at Ctrl-C or SIGTERM, after the calls that it
    has accepted. Faults go to standard error, a line each.
    """
    if not local and (store is not None or port):
        raise InvalidRequestError("--store and --port go with --local")
    if local and server is not None:
        raise InvalidRequestError("--local starts a server of its own: no --server")
    _log_lines()
    with contextlib.ExitStack() as stack:
        if local:
            own = stack.enter_context(LocalServer(store, port))
            server = own.url
            print(f"NATS server at {own.url}", flush=True)
        asyncio.run(_serve(server, bucket, name, inbox_prefix or [], concurrent, otel))


async def _serve(
    server: str | None,
    bucket: str,
    name: str,
    inboxes: list[str],
    concurrent: int,
    otel: bool,
) -> None:
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ending.set)
    service = DocumentService(
        JetStreamDocumentStore.from_conn_string(server, bucket=bucket),
        server,
        name=name,
        metadata={"bucket": bucket},
        inbox_prefixes=inboxes,
        max_concurrent=concurrent,
    )
    if otel:
        try:
            from jskv_saver.otel import instrument
        except ModuleNotFoundError as exc:
            raise InvalidRequestError(str(exc)) from exc
        instrument(service)
    async with service.store, service:
        where = service.where
        print(f"serving bucket {bucket} at {where} as {name} {service.id}", flush=True)
        await ending.wait()
        print("ending: answering what was accepted", flush=True)


class _Lines(logging.Formatter):
    """One line for each record, whatever is in it."""

    def format(self, record: logging.LogRecord) -> str:
        return ascii(super().format(record))[1:-1]


def _log_lines() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Lines(
            "%(asctime)s %(levelname)s %(event)s %(message)s", defaults={"event": "-"}
        )
    )
    logger = logging.getLogger("jskv_saver")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
