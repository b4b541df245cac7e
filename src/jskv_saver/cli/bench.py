"""`jskv bench`: how long the server in reach takes for what a graph asks of it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Annotated, Any, Final, TypeVar

import typer
from langgraph.checkpoint.base import ChannelVersions, CheckpointTuple, empty_checkpoint

from jskv_saver import JetStreamSaver
from jskv_saver.cli.output import console, counted, plain, print_json, size_of
from jskv_saver.cli.progress import Progress
from jskv_saver.cli.reading import Bucket, Json, Server
from jskv_saver.cli.tables import Column, print_table
from jskv_saver.errors import CorruptDocumentError

NAMESPACE: Final = "jskv-bench"
_LISTED: Final = 10
_READ_EVERY: Final = 5
_COLUMNS: Final = (
    Column("operation"),
    Column("calls", right=True),
    Column("median", right=True),
    Column("99 %", right=True),
    Column("slowest", right=True, goes=1),
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """How long calls of one kind took, in milliseconds.

    Attributes:
        operation: The kind.
        calls: How many there were.
        median: Half of them took no longer.
        most: 99 of 100 took no longer.
        slowest: The one that took longest.
    """

    operation: str
    calls: int
    median: float
    most: float
    slowest: float


@dataclass(slots=True)
class _Clock:
    samples: dict[str, list[float]] = field(default_factory=dict)

    async def __call__(self, operation: str, call: Awaitable[T]) -> T:
        began = perf_counter()
        result = await call
        took = (perf_counter() - began) * 1000
        self.samples.setdefault(operation, []).append(took)
        return result

    def timings(self) -> list[Timing]:
        return [_timing(name, sorted(took)) for name, took in self.samples.items()]


def bench(
    *,
    steps: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many steps to store.")
    ] = 200,
    size: Annotated[
        int,
        typer.Option(
            min=1, max=10_000_000, help="Bytes that each step changes; random ones."
        ),
    ] = 1000,
    bucket: Bucket = "jskv",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Measure what steps and reads take on the server that programs here would use.

    Stores a thread of its own in the namespace jskv-bench, one call after the other,
    compares what it reads, and erases it. Makes the bucket if there is none.
    """
    with Progress("measuring") as progress:
        timings = asyncio.run(_measured(server, bucket, steps, size, progress))
    if as_json:
        print_json({"bucket": bucket, "size": size, "operations": plain(timings)})
    else:
        _print(bucket, steps, size, timings)


async def _measured(
    server: str | None, bucket: str, steps: int, size: int, progress: Progress
) -> list[Timing]:
    clock, thread = _Clock(), secrets.token_hex(8)
    top: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    async with (
        JetStreamSaver.from_conn_string(
            server, bucket=bucket, namespace=NAMESPACE
        ) as writer,
        JetStreamSaver.from_conn_string(
            server, bucket=bucket, namespace=NAMESPACE
        ) as reader,
    ):
        # The first call of each connects, and looks at the bucket.
        await writer.aget_tuple(top)
        await reader.aget_tuple(top)
        try:
            await _work(writer, reader, top, steps, size, clock, progress)
        finally:
            await clock("delete the thread", writer.adelete_thread(thread))
    return clock.timings()


async def _work(
    writer: JetStreamSaver,
    reader: JetStreamSaver,
    top: Any,
    steps: int,
    size: int,
    clock: _Clock,
    progress: Progress,
) -> None:
    config = top
    for step in range(steps):
        content = secrets.token_bytes(size)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"step": step, "content": content}
        versions: ChannelVersions = {"step": step + 1, "content": step + 1}
        checkpoint["channel_versions"] = versions
        config = await clock(
            "store a step",
            writer.aput(config, checkpoint, {"source": "loop", "step": step}, versions),
        )
        await clock(
            "store a task's writes",
            writer.aput_writes(config, [("content", content)], "task"),
        )
        if step % _READ_EVERY == 0:
            # By another saver, as another process: this one remembers what it wrote.
            found = await clock("read the latest", reader.aget_tuple(top))
            _compare(found, content)
        progress(f"{step + 1} of {counted(steps, 'step')}")
    for _ in range(0, steps, _READ_EVERY):
        listed = await clock(f"list the newest {_LISTED}", _list(reader, top))
        if len(listed) != min(steps, _LISTED):
            raise CorruptDocumentError(f"{len(listed)} checkpoints were listed")


async def _list(reader: JetStreamSaver, top: Any) -> list[CheckpointTuple]:
    return [found async for found in reader.alist(top, limit=_LISTED)]


def _compare(found: CheckpointTuple | None, content: bytes) -> None:
    if found is None or found.checkpoint["channel_values"]["content"] != content:
        raise CorruptDocumentError("what was read is not what was stored")


def _timing(operation: str, took: Sequence[float]) -> Timing:
    last = len(took) - 1
    median, most = (took[round(last * share)] for share in (0.5, 0.99))
    return Timing(operation, len(took), median, most, took[last])


def _print(bucket: str, steps: int, size: int, timings: Sequence[Timing]) -> None:
    out = console()
    out.print(f"bucket {bucket}, {counted(steps, 'step')} of {size_of(size)} each")
    out.print()
    rows = [
        (
            each.operation,
            str(each.calls),
            *(f"{took:.2f} ms" for took in (each.median, each.most, each.slowest)),
        )
        for each in timings
    ]
    print_table(out, _COLUMNS, rows)
