"""The commands that look whether a bucket is whole, and mend it: verify, repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from jskv_saver import Finding
from jskv_saver.cli.asking import DryRun, Yes, confirm
from jskv_saver.cli.output import console, counted, plain, print_json, shown
from jskv_saver.cli.places import Places, in_bucket
from jskv_saver.cli.progress import Progress
from jskv_saver.cli.reading import Agent, Bucket, Json, Namespace, Server
from jskv_saver.document.findings import SETTLE
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

_Threads = Annotated[
    list[str] | None,
    typer.Argument(
        help="Only these threads, and no collections.",
        metavar="[THREAD]...",
        show_default="all",
    ),
]
_Settle = Annotated[
    float,
    typer.Option(
        min=0, max=3600, help="Seconds for which something must be wrong to be found."
    ),
]


@dataclass(slots=True)
class _Looked:
    """What was looked at, and what was found."""

    findings: list[Finding]
    threads: int = 0
    checkpoints: int = 0
    waiting: int = 0
    collections: int = 0


def verify(
    threads: _Threads = None,
    *,
    settle: _Settle = SETTLE,
    namespace: Namespace = None,
    agent: Agent = None,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Look whether every stored byte is whole, indexed and reachable. Writes nothing.

    Also while graphs run: what is about to be put right is no finding. Exit code 1: an
    error, or something was found.
    """
    found = in_bucket(
        server,
        bucket,
        namespace,
        agent,
        lambda places: _verify(places, threads or [], settle, namespace),
    )
    _tell(found, bucket, as_json=as_json)
    if found.findings:
        raise typer.Exit(1)


def repair(
    threads: _Threads = None,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Mend indexes, finish removals, remove what calls that died left.

    No checkpoint is removed but those whose removal had begun; damage stays as it is.
    Exit code 1: an error, it was not agreed to, or something is left that cannot be
    mended.
    """

    async def look(places: Places) -> _Looked:
        return await _verify(places, threads or [], SETTLE, namespace)

    found = in_bucket(server, bucket, namespace, agent, look)
    if found.findings and not dry_run:
        if not (as_json and yes):
            _print(found)
        confirm(f"Mend {counted(len(found.findings), 'finding')}?", yes=yes)

        async def mend(places: Places) -> _Looked:
            await _repair(places, threads or [], namespace)
            return await _verify(places, threads or [], SETTLE, namespace)

        found = in_bucket(server, bucket, namespace, agent, mend)
    _tell(found, bucket, as_json=as_json)
    if found.findings and not dry_run:
        raise typer.Exit(1)


def _tell(found: _Looked, bucket: str, *, as_json: bool) -> None:
    if as_json:
        rows = [{"severity": each.severity, **plain(each)} for each in found.findings]
        print_json({"bucket": bucket, **plain(found), "findings": rows})
    else:
        _print(found)


async def _verify(
    places: Places, threads: list[str], settle: float, namespace: str | None
) -> _Looked:
    looked = _Looked([])
    with Progress("verifying") as progress:
        for (owner, of), ids in (await _places(places, threads, namespace)).items():
            report = await (await places.saver(owner, of)).averify(
                ids,
                settle=settle,
                on_progress=lambda done, all: progress(f"{done} of {all} threads"),
            )
            looked.findings += report.findings
            looked.threads += report.threads
            looked.checkpoints += report.checkpoints
            looked.waiting += report.waiting
        for owner in [] if threads else await _owners(places, namespace):
            progress(f"collections of {owner!a:.60}")
            looked.findings += await places.store.verify(owner, settle=settle)
            looked.collections += len(await places.store.collections(owner))
    return looked


async def _repair(places: Places, threads: list[str], namespace: str | None) -> None:
    with Progress("repairing") as progress:
        for (owner, of), ids in (await _places(places, threads, namespace)).items():
            try:
                await (await places.saver(owner, of)).arepair(
                    ids,
                    on_progress=lambda done, all: progress(f"{done} of {all} threads"),
                )
            except (CorruptDocumentError, UnsupportedFormatError):
                # The others are repaired, and what is damaged is found again.
                continue
        for owner in [] if threads else await _owners(places, namespace):
            progress(f"collections of {owner!a:.60}")
            await places.store.repair(owner)


async def _places(
    places: Places, threads: list[str], namespace: str | None
) -> dict[tuple[str, str], list[str] | None]:
    """The namespaces and agents to look at, with the threads; None: all."""
    if not threads:
        if namespace is None:
            places.namespaces = await places.store.thread_owners()
        return dict.fromkeys(await places.everywhere())
    by_place: dict[tuple[str, str], list[str] | None] = {}
    for ref in await places.find(threads):
        ids = by_place.setdefault((ref.namespace, ref.agent), [])
        assert ids is not None
        ids.append(ref.thread)
    return by_place


async def _owners(places: Places, namespace: str | None) -> list[str]:
    """The owners of collections to look at; none where it is about one agent."""
    if places.agent is not None:
        return []
    return list(await places.store.owners()) if namespace is None else [namespace]


def _print(found: _Looked) -> None:
    out = console()
    for each in found.findings:
        style = "red" if each.severity == "error" else "yellow"
        out.print(
            Text.assemble(
                (f"{each.severity}: ", style),
                (each.kind, "bold"),
                "  ",
                shown(each.key),
                " of namespace ",
                shown(each.namespace),
                "  ",
                shown(each.text),
            ),
            soft_wrap=True,
        )
    seen = [counted(found.threads, "thread"), counted(found.checkpoints, "checkpoint")]
    if found.collections:
        seen.append(counted(found.collections, "collection"))
    count = len(found.findings)
    end = counted(count, "finding") if count else "all is whole"
    out.print(f"{', '.join(seen)}: {end}", style="" if count else "green")
    if found.waiting:
        out.print(
            f"{counted(found.waiting, 'document')} of pending writes without their "
            "checkpoint: they may be early",
            style="dim",
        )
