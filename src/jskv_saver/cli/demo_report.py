"""What is printed after the demo: the thread, its history, the bucket, a diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

import nats
from rich.console import Console
from rich.text import Text

from jskv_saver import JetStreamDocumentStore
from jskv_saver.checkpoint.inspect import thread_history
from jskv_saver.cli import views
from jskv_saver.cli.demo_story import THREAD, Story
from jskv_saver.cli.output import command, counted, size_of

_COLLECTIONS = {
    "cp": "checkpoints, and one message that opens the thread",
    "wr": "results of nodes, before their step is complete",
    "bl": "values too large for their checkpoint",
    "th": "index of threads",
    "rn": "index of runs",
}


async def report(out: Console, story: Story) -> None:
    """Print and check what is in the bucket, and what has changed."""
    async with JetStreamDocumentStore.from_conn_string(
        story.server.url, create=False
    ) as store:
        history = await thread_history(store, THREAD)
        counts = {
            name: len(await store.ids(THREAD.namespace, name)) for name in _COLLECTIONS
        }
    out.print()
    out.print(
        Text(f"The history of thread {THREAD.thread}, newest first"), style="bold"
    )
    views.print_steps(out, history)
    out.print()
    out.print("What is in the bucket", style="bold")
    messages, size = await _stream_of(story.server.url)
    for name, count in counts.items():
        if count:
            out.print(f"       {count:3} {name}  {_COLLECTIONS[name]}")
    story.check(
        messages == sum(counts.values()) and counts["cp"] == history.total + 1,
        f"bucket jskv has {counted(messages, 'message')}, {size_of(size)}, "
        "and nothing else",
    )
    out.print()
    out.print("The state when the second process died, and at the end", style="bold")
    changed = _print_diff(out, story.before["state"], story.after["state"])
    story.check(
        changed == {"+": 3, "-": 1}, "nothing was lost: the answer's work was added"
    )


def say_what_next(out: Console, url: str | None) -> None:
    """Print what to try: how to keep the server, or how to look at the kept one."""
    jskv = command()
    out.print()
    if url is None:
        out.print("To look inside, keep the server at the end:")
        _print_commands(out, f"{jskv} demo --keep")
        return
    out.print("The server stays until Ctrl-C. In another terminal:")
    _print_commands(
        out,
        f"{jskv} threads --server {url}",
        f"{jskv} history {THREAD.thread} --server {url}",
        f"{jskv} show {THREAD.thread} --server {url}",
    )
    out.print("With the NATS command line, a separate program:")
    _print_commands(out, f"nats kv ls jskv --server {url}")


def _print_commands(out: Console, *commands: str) -> None:
    for line in commands:
        out.print(Text(f"   {line}"), soft_wrap=True)


async def _stream_of(url: str) -> tuple[int, int]:
    """Messages and bytes of the bucket's stream, as the server counts them."""
    client = await nats.connect(url)
    try:
        state = (await client.jetstream().stream_info("KV_jskv")).state
    finally:
        await client.close()
    return state.messages, state.bytes


def _print_diff(
    out: Console, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, int]:
    """Print the difference of two states, and count its lines."""
    counts = {"+": 0, "-": 0}
    for line in difflib.ndiff(_lines(before), _lines(after)):
        if line[0] == "?":
            continue
        if line[0] in counts:
            counts[line[0]] += 1
        style = {"+": "green", "-": "red"}.get(line[0], "dim")
        out.print(Text(f"       {line}", style=style), soft_wrap=True)
    return counts


def _lines(state: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for channel, value in state.items():
        items = value if isinstance(value, list) else [json.dumps(value)]
        lines += [f"{channel}: {item}" for item in items]
    return lines
