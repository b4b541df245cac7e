"""The commands that look at a bucket: threads, history, show. They write nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from jskv_saver import DocumentStore, JetStreamDocumentStore
from jskv_saver.checkpoint.abilities import sealed_store
from jskv_saver.checkpoint.encryption import encryption_of_environment
from jskv_saver.checkpoint.inspect import (
    PREVIEW,
    CheckpointDetail,
    PlannedTask,
    ThreadHistory,
    ThreadInfo,
    checkpoint_detail,
    find_thread,
    list_threads,
    next_tasks,
    thread_history,
)
from jskv_saver.checkpoint.inspect.narrowing import idle, in_order, with_metadata
from jskv_saver.cli import views
from jskv_saver.cli.asking import age_of
from jskv_saver.cli.output import plain, print_json
from jskv_saver.cli.values import pairs_of

T = TypeVar("T")
Use = Callable[[DocumentStore, Sequence[str]], Awaitable[T]]

Server = Annotated[
    str | None,
    typer.Option(
        help="Address of the NATS server. Default: NATS_URL, the current NATS "
        "context, or localhost:4222.",
        show_default=False,
    ),
]
Bucket = Annotated[str, typer.Option(help="Name of the KV bucket.")]
Namespace = Annotated[
    str | None,
    typer.Option(help="Only this module namespace.", show_default="all"),
]
Agent = Annotated[str | None, typer.Option(help="Only this agent.", show_default="all")]
Ns = Annotated[
    str | None,
    typer.Option(
        help='Only this checkpoint namespace; "" is the root.', show_default="all"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option(min=0, help="How many to print; 0: all.")]
Thread = Annotated[str, typer.Argument(help="The thread's id.", metavar="THREAD")]


class Sort(StrEnum):
    """The orders of a list of threads."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"
    CHECKPOINTS = "checkpoints"


def threads(
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    idle_for: Annotated[
        str | None,
        typer.Option(
            "--idle",
            help="Only those that nothing was stored in for so long: 90s, 12h, 30d.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            help="Only those whose newest checkpoint has this metadata; the value is "
            "JSON or text. May be given several times.",
            metavar="KEY=VALUE",
            show_default=False,
        ),
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="In which order: newest is moved on last.")
    ] = Sort.NEWEST,
    limit: Limit = 50,
    offset: Annotated[
        int, typer.Option(min=0, help="How many to leave out before.")
    ] = 0,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """List the threads in a bucket, the most recently moved on first."""
    age = age_of("--idle", idle_for)
    pairs = pairs_of(metadata or [])

    async def use(store: DocumentStore, namespaces: Sequence[str]) -> list[ThreadInfo]:
        found = await list_threads(store, namespaces, agent=agent)
        if age is not None:
            found = idle(found, age, datetime.now(UTC))
        if pairs:
            found = await with_metadata(store, found, pairs)
        return in_order(found, sort.value)

    found = read(server, bucket, namespace, use)
    chosen = found[offset:][: limit or None]
    if as_json:
        print_json(
            {"bucket": bucket, "total": len(found), "threads": list(map(plain, chosen))}
        )
    else:
        wanted = {"namespace": namespace, "agent": agent}
        views.print_threads(bucket, chosen, len(found) - offset, wanted)


def history(
    thread: Thread,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    ns: Ns = None,
    limit: Limit = 20,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """List the checkpoints of a thread, newest first."""

    async def use(store: DocumentStore, namespaces: Sequence[str]) -> ThreadHistory:
        ref = await find_thread(store, namespaces, thread, agent=agent)
        return await thread_history(store, ref, ns=ns, limit=limit or None)

    found = read(server, bucket, namespace, use)
    if as_json:
        print_json({"bucket": bucket, **plain(found)})
    else:
        views.print_history(found)


def show(
    thread: Thread,
    checkpoint_id: Annotated[
        str | None,
        typer.Argument(
            help="The checkpoint's id.",
            metavar="[CHECKPOINT_ID]",
            show_default="the latest",
        ),
    ] = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    ns: Ns = None,
    preview: Annotated[
        int, typer.Option(min=1, help="How many characters of each value to print.")
    ] = PREVIEW,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Show one checkpoint: what comes next, values, metadata, pending writes."""

    async def use(
        store: DocumentStore, namespaces: Sequence[str]
    ) -> tuple[CheckpointDetail, tuple[PlannedTask, ...] | None]:
        ref = await find_thread(store, namespaces, thread, agent=agent)
        detail = await checkpoint_detail(
            store, ref, checkpoint_id, ns=ns, limit=preview
        )
        return detail, await next_tasks(store, ref, detail.id, ns=detail.ns)

    found, tasks = read(server, bucket, namespace, use)
    if as_json:
        # Without what `jskv replay-plan` alone looks for.
        following = None if tasks is None else [_task(task) for task in tasks]
        print_json({"bucket": bucket, **plain(found), "next": following})
    else:
        views.print_checkpoint(found, tasks)


def _task(task: PlannedTask) -> dict[str, Any]:
    return {name: it for name, it in plain(task).items() if name != "subgraphs"}


def read(server: str | None, bucket: str, namespace: str | None, use: Use[T]) -> T:
    """Open the bucket, which is never made here, and look at it.

    With the keys of the environment, if there are any.
    """
    encryption = encryption_of_environment()

    async def opened() -> T:
        async with JetStreamDocumentStore.from_conn_string(
            server, bucket=bucket, read_only=True
        ) as store:
            namespaces = await store.namespaces() if namespace is None else [namespace]
            return await use(sealed_store(store, encryption), namespaces)

    return asyncio.run(opened())
