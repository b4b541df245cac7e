"""The commands that pin threads: no retention touches those."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from jskv_saver.checkpoint.inspect import ThreadRef
from jskv_saver.cli.output import console, plain, print_json, shown
from jskv_saver.cli.places import Places, in_bucket
from jskv_saver.cli.reading import Agent, Bucket, Json, Namespace, Server, Thread


def pin(
    thread: Thread,
    *,
    name: Annotated[str, typer.Option(help="Who or what pins it.")] = "pin",
    namespace: Namespace = None,
    agent: Agent = None,
    bucket: Bucket = "jskv",
    server: Server = None,
) -> None:
    """Pin a thread: `jskv prune` without threads and retentions leave it alone."""

    async def use(places: Places) -> None:
        (ref,) = await places.find([thread])
        await (await places.of(ref)).apin(thread, name)

    in_bucket(server, bucket, namespace, agent, use)


def unpin(
    thread: Thread,
    *,
    name: Annotated[
        str | None, typer.Option(help="Only this pin.", show_default="all")
    ] = None,
    namespace: Namespace = None,
    agent: Agent = None,
    bucket: Bucket = "jskv",
    server: Server = None,
) -> None:
    """Remove the pins of a thread, or one of them."""

    async def use(places: Places) -> None:
        (ref,) = await places.find([thread])
        await (await places.of(ref)).aunpin(thread, name)

    in_bucket(server, bucket, namespace, agent, use)


def pinned(
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """List the pinned threads, with the names of their pins."""

    async def use(places: Places) -> dict[ThreadRef, tuple[str, ...]]:
        return {
            ThreadRef(owner, of, thread): tuple(names)
            for owner, of in await places.everywhere()
            for thread, names in (
                await (await places.saver(owner, of)).apinned()
            ).items()
        }

    found = in_bucket(server, bucket, namespace, agent, use)
    if as_json:
        rows = [{**plain(ref), "pins": list(names)} for ref, names in found.items()]
        print_json({"bucket": bucket, "pinned": rows})
        return
    out = console()
    for ref, names in found.items():
        out.print(
            Text.assemble(
                shown(ref.thread, "bold"),
                " of namespace ",
                shown(ref.namespace),
                " agent ",
                shown(ref.agent),
                ": ",
                shown(", ".join(names)),
            ),
            soft_wrap=True,
        )
    if not found:
        out.print("no thread is pinned")
