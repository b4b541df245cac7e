"""The commands that remove and copy: prune, delete, copy.

Each says what it will do, and asks. Exit code 1: an error, or nobody agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from jskv_saver import PruneReport, Retention
from jskv_saver.checkpoint.inspect import ThreadRef
from jskv_saver.checkpoint.layout import EPOCH, RECORDS
from jskv_saver.checkpoint.pins import PINS
from jskv_saver.cli.asking import AGE, DryRun, Yes, age_of, confirm
from jskv_saver.cli.output import (
    console,
    counted,
    plain,
    print_json,
    shown,
    size_of,
)
from jskv_saver.cli.places import Places, in_bucket
from jskv_saver.cli.progress import Progress
from jskv_saver.cli.reading import Agent, Bucket, Json, Namespace, Ns, Server, Thread
from jskv_saver.document.model import path_of
from jskv_saver.errors import (
    CorruptDocumentError,
    InvalidRequestError,
    JskvError,
    UnsupportedFormatError,
)

_Threads = Annotated[
    list[str], typer.Argument(help="The threads' ids.", metavar="THREAD...")
]
_IDS = 3


@dataclass(frozen=True, slots=True)
class _Pruned:
    """What a prune removes in one namespace and agent."""

    namespace: str
    agent: str
    report: PruneReport


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The conditions of a prune: of some threads, or a retention of all."""

    threads: Sequence[str]
    keep_last: int | None
    older_than: timedelta | None
    ns: str | None
    retention: Retention | None


def prune(
    threads: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these threads.", metavar="[THREAD]...", show_default="all"
        ),
    ] = None,
    *,
    keep_last: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many of the latest checkpoints stay in each namespace."
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help=f"With threads: only checkpoints that were stored so long ago; {AGE}.",
        ),
    ] = None,
    idle: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Without threads: those that nobody has used for so long go.",
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Without threads: those that began so long ago go."
        ),
    ] = None,
    ns: Ns = None,
    namespace: Namespace = None,
    agent: Agent = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Remove old checkpoints of some threads, or what a retention does not keep.

    With threads: all but the latest checkpoint of each namespace, or what --keep-last
    and --older-than say. Without: a retention of all threads, by --keep-last, --idle,
    --max-age; pinned threads are left alone. What delta channels need stays. Graphs
    may run meanwhile; a thread that is used meanwhile does not go. Exit code 1: an
    error, or it was not agreed to.
    """
    wanted = _wanted(threads or [], keep_last, older_than, idle, max_age, ns)

    async def look(places: Places) -> list[_Pruned]:
        return await _prune(places, wanted, dry_run=True)

    planned = in_bucket(server, bucket, namespace, agent, look)
    if not dry_run and any(_goes(each.report) for each in planned):
        if not (as_json and yes):
            _print_pruned(planned)
        confirm(f"Remove {_sum(planned)}?", yes=yes)

        async def do(places: Places) -> list[_Pruned]:
            return await _prune(places, wanted, dry_run=False)

        planned = in_bucket(server, bucket, namespace, agent, do)
    if as_json:
        print_json({"bucket": bucket, "dry_run": dry_run, "places": plain(planned)})
    elif dry_run or not any(_goes(each.report) for each in planned):
        _print_pruned(planned)
    else:
        print(f"removed {_sum(planned)}")
    if not dry_run and any(each.report.damaged for each in planned):
        raise typer.Exit(1)


def delete(
    threads: _Threads,
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Erase threads with all that belongs to them; also pinned ones.

    Exit code 1: an error, or it was not agreed to; nothing was removed then.
    """

    async def look(places: Places) -> list[tuple[ThreadRef, int, bool]]:
        return [await _looked_at(places, ref) for ref in await places.find(threads)]

    found = in_bucket(server, bucket, namespace, agent, look)
    if not (as_json and yes):
        _print_threads(found)
    if not dry_run:
        confirm(f"Erase {counted(len(found), 'thread')} for ever?", yes=yes)

        async def do(places: Places) -> None:
            with Progress("erasing") as progress:
                for done, (ref, _, _) in enumerate(found, 1):
                    await (await places.of(ref)).adelete_thread(ref.thread)
                    progress(f"{done} of {counted(len(found), 'thread')}")

        in_bucket(server, bucket, namespace, agent, do)
    if as_json:
        rows = [
            {**plain(ref), "checkpoints": count, "pinned": pinned}
            for ref, count, pinned in found
        ]
        print_json({"bucket": bucket, "dry_run": dry_run, "threads": rows})
    elif not dry_run:
        print(f"erased {counted(len(found), 'thread')}")


def copy(
    source: Thread,
    target: Annotated[
        str, typer.Argument(help="The id of the copy.", metavar="TARGET")
    ],
    *,
    namespace: Namespace = None,
    agent: Agent = None,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Copy a thread to another id of the same namespace and agent.

    All checkpoints and pending writes, whole, while graphs run. It can be repeated:
    what is there already is left; other content under the id of a checkpoint is an
    error, and never overwritten. A copy is as old as it is: no pin, no lease.
    """

    async def use(places: Places) -> tuple[ThreadRef, int]:
        (ref,) = await places.find([source])
        if target == source:
            raise InvalidRequestError("a thread cannot be copied onto itself")
        with Progress("copying") as progress:
            progress(f"thread {source!a:.60}")
            await (await places.of(ref)).acopy_thread(source, target)
        made = ThreadRef(ref.namespace, ref.agent, target)
        return made, await _count(places, made)

    made, count = in_bucket(server, bucket, namespace, agent, use)
    if as_json:
        print_json({"bucket": bucket, **plain(made), "checkpoints": count})
    else:
        out = console()
        out.print(
            Text.assemble(
                "copied ", shown(source), " to ", shown(target), f": it has {count} "
            ).append("checkpoint" if count == 1 else "checkpoints"),
            soft_wrap=True,
        )


def _wanted(
    threads: Sequence[str],
    keep_last: int | None,
    older_than: str | None,
    idle: str | None,
    max_age: str | None,
    ns: str | None,
) -> _Wanted:
    """The conditions, which differ with and without threads."""
    age = age_of("--older-than", older_than)
    ages = age_of("--idle", idle), age_of("--max-age", max_age)
    if threads:
        if ages != (None, None):
            raise InvalidRequestError(
                "--idle and --max-age are for all threads: name none, or use "
                "--keep-last and --older-than"
            )
        return _Wanted(threads, keep_last, age, ns, None)
    if age is not None or ns is not None:
        raise InvalidRequestError(
            "--older-than and --ns are for threads that are named; for all threads "
            "use --keep-last, --idle and --max-age"
        )
    if (keep_last, *ages) == (None, None, None):
        raise InvalidRequestError(
            "say which threads, or for all of them what is kept: --keep-last, --idle, "
            "--max-age"
        )
    return _Wanted((), keep_last, None, None, Retention(keep_last, *ages))


async def _prune(places: Places, wanted: _Wanted, *, dry_run: bool) -> list[_Pruned]:
    by_place: dict[tuple[str, str], list[str]] = {}
    if wanted.retention is None:
        for ref in await places.find(wanted.threads):
            by_place.setdefault((ref.namespace, ref.agent), []).append(ref.thread)
    else:
        by_place = {place: [] for place in await places.everywhere()}
    pruned: list[_Pruned] = []
    damaged: JskvError | None = None
    with Progress("looking" if dry_run else "pruning") as progress:
        for (namespace, agent), threads in by_place.items():
            saver = await places.saver(namespace, agent)
            report: PruneReport
            if wanted.retention is None:
                report = await saver.aprune(
                    threads,
                    keep_last=wanted.keep_last,
                    older_than=wanted.older_than,
                    checkpoint_ns=wanted.ns,
                    dry_run=dry_run,
                )
            else:
                try:
                    report = await saver.aenforce_retention(
                        wanted.retention,
                        dry_run=dry_run,
                        on_progress=lambda done, of: progress(
                            f"{done} of {of} threads"
                        ),
                    )
                except (CorruptDocumentError, UnsupportedFormatError) as exc:
                    damaged = damaged or exc
                    continue
            pruned.append(_Pruned(namespace, agent, report))
    if damaged is not None:
        # All that is not damaged is done, in the other places too.
        raise damaged
    return pruned


async def _looked_at(places: Places, ref: ThreadRef) -> tuple[ThreadRef, int, bool]:
    pins = await places.store.ids(ref.namespace, PINS, within=ref.prefix)
    return ref, await _count(places, ref), bool(pins)


async def _count(places: Places, ref: ThreadRef) -> int:
    found = await places.store.ids(ref.namespace, RECORDS, within=ref.prefix)
    return sum(path_of(id)[-1] != EPOCH for id in found)


def _goes(report: PruneReport) -> bool:
    return bool(report.pruned or report.erased)


def _sum(pruned: Sequence[_Pruned]) -> str:
    checkpoints = sum(each.report.checkpoints for each in pruned)
    threads = sum(len(each.report.erased) for each in pruned)
    size = sum(each.report.bytes for each in pruned)
    parts = []
    if threads:
        parts.append(counted(threads, "whole thread"))
    if checkpoints or not threads:
        parts.append(f"{counted(checkpoints, 'checkpoint')} ({size_of(size)})")
    return " and ".join(parts)


def _print_pruned(pruned: Sequence[_Pruned]) -> None:
    out = console()
    for each in pruned:
        where = Text.assemble(
            " of namespace ", shown(each.namespace), " agent ", shown(each.agent)
        )
        for thread in each.report.erased:
            out.print(
                Text.assemble("whole thread ", shown(thread, "bold"), where),
                soft_wrap=True,
            )
        for found in each.report.pruned:
            line = Text.assemble("thread ", shown(found.thread_id, "bold"), where)
            if found.checkpoint_ns:
                line.append(" in ").append_text(shown(found.checkpoint_ns))
            line.append(f": {counted(len(found.removed), 'checkpoint')}")
            line.append(f" of {len(found.removed) + found.kept}")
            line.append(f", {size_of(found.bytes)}: ")
            line.append_text(shown(", ".join(found.removed[:_IDS]), "dim"))
            if len(found.removed) > _IDS:
                line.append(", …", "dim")
            out.print(line, soft_wrap=True)
        if each.report.pinned:
            names = Text(", ").join(shown(thread) for thread in each.report.pinned)
            out.print(Text.assemble("pinned: ", names), style="dim", soft_wrap=True)
        if each.report.damaged:
            names = Text(", ").join(shown(thread) for thread in each.report.damaged)
            out.print(Text.assemble("damaged: ", names), style="red", soft_wrap=True)
    if not any(_goes(each.report) for each in pruned):
        out.print("nothing to remove")


def _print_threads(found: Sequence[tuple[ThreadRef, int, bool]]) -> None:
    out = console()
    for ref, count, pinned in found:
        line = Text.assemble("thread ", shown(ref.thread, "bold"), " of namespace ")
        line.append_text(shown(ref.namespace)).append(" agent ")
        line.append_text(shown(ref.agent)).append(f": {counted(count, 'checkpoint')}")
        if pinned:
            line.append(", pinned", "bold")
        out.print(line, soft_wrap=True)
