"""Runs workloads on several savers side by side and prints what each took."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from scripts.bench import bars, document, report
from scripts.bench.pace import Meter, verdict
from scripts.bench.places import PEERS, Peer
from scripts.bench.run import Results, WrongState, interleave
from scripts.bench.services import Missing
from scripts.bench.workloads import WORKLOADS

QUICK = 0.02


def parser() -> argparse.ArgumentParser:
    """What may be asked."""
    made = argparse.ArgumentParser(prog="python scripts/bench", description=__doc__)
    made.add_argument("workloads", nargs="*", help=f"{', '.join(WORKLOADS)}; or all")
    made.add_argument("--savers", default=",".join(PEERS), help="with commas between")
    made.add_argument("--rounds", type=int, help="of each workload; else its own")
    made.add_argument("--scale", type=float, default=1.0, help="of all sizes")
    made.add_argument(
        "--quick", action="store_true", help=f"one round at scale {QUICK}"
    )
    made.add_argument(
        "--durable",
        action="store_true",
        help="our server syncs each message, Redis each command",
    )
    made.add_argument("--messages", choices=("plain", "langchain"), default="plain")
    made.add_argument("--bars", action="store_true", help="print the goals")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    made.add_argument(
        "--write-docs", action="store_true", help="put the tables in the document"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1: a saver returned a wrong state; 2: the arguments are wrong."""
    options = parser().parse_args(arguments)
    names = options.workloads or list(WORKLOADS)
    savers = options.savers.split(",")
    for kind, given, legal in (
        ("workload", names, WORKLOADS),
        ("saver", savers, PEERS),
    ):
        if unknown := [name for name in given if name not in legal]:
            print(f"no {kind} {unknown[0]!r}: {', '.join(legal)}", file=sys.stderr)
            return 2
    if options.quick:
        options.scale, options.rounds = QUICK, 1
    with ExitStack() as stack:
        peers, lines = started(stack, savers, durable=options.durable)
        print("\n".join(lines), flush=True)
        try:
            tables = asyncio.run(measured(peers, names, options))
        except WrongState as wrong:
            print(f"WRONG STATE: {wrong}", file=sys.stderr)
            return 1
    if options.bars:
        print("\n".join(text for text, _ in bars.judged(tables.figures)))
        kept = [kept for _, kept in bars.judged(tables.figures) if kept is not None]
        print(f"{sum(kept)} of {len(kept)} kept")
    if options.json:
        options.json.write_text(json.dumps(tables.as_json(lines), indent=1) + "\n")
    if options.write_docs:
        document.write(lines, tables, durable=options.durable)
    return 0


def machine() -> str:
    """What this runs on, without names."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}"
    )


def started(
    stack: ExitStack, savers: Sequence[str], *, durable: bool
) -> tuple[list[Peer], list[str]]:
    """The peers that can run, and a line about each and the machine."""
    peers, lines = [], [machine()]
    for name in savers:
        try:
            peer = stack.enter_context(PEERS[name](durable=durable))
        except Missing as missing:
            lines.append(f"{name}: left out, {missing}")
        else:
            peers.append(peer)
            lines.append(f"{name}: {peer.settings}")
    return peers, lines


async def measured(
    peers: Sequence[Peer], names: Sequence[str], options: argparse.Namespace
) -> document.Tables:
    """Run all workloads, each in its rounds, and print a table for each."""
    tables = document.Tables()
    for name in names:
        workload, rounds = WORKLOADS[name]
        results = Results()
        with Meter() as meter:
            for number in range(options.rounds or rounds):
                await interleave(
                    workload,
                    peers,
                    results,
                    scale=options.scale,
                    messages=options.messages,
                    seed=number,
                    meter=meter,
                )
        tables.add(name, report.figures_of(results), meter.pace())
        print(f"\n{name}: median / p99\n{tables.text(name)}", flush=True)
    print(f"\n{verdict(tables.paces.values())}")
    return tables
