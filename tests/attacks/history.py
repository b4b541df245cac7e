"""A log of what was called and what was answered, of many processes on one machine.

Each process appends to a file of its own, one JSON object a line: one when a call
begins and one when it has ended. So the log of a process that is killed is complete,
and says which calls it died in. Times are those of the machine's monotonic clock,
which all processes share. Of values only digests are kept.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.saving import id_of, parent_of

from jskv_saver.errors import JskvError

Outcome = Literal["done", "refused", "unknown"]

NEVER = 2**63
"""When a call ends that may still have an effect at any time."""
REFUSALS = frozenset(
    {
        "BucketNotFoundError",
        "DivergentCheckpointError",
        "DocumentNotFoundError",
        "PermissionDeniedError",
        "StorageFullError",
        "StoreUnavailableError",
        "VersionConflictError",
        "WriterConflictError",
    }
)
"""Errors that say of a write: nothing of it is stored, nor ever will be."""
UNKNOWN = frozenset({"UnknownOutcomeError", "CancelledError"})


@dataclass(frozen=True, slots=True)
class Event:
    """A call.

    Attributes:
        process: Who called.
        operation: put, writes, get, list, prune, delete_thread or delete_runs.
        thread: On which thread.
        args: What it was given.
        start: When it began, in nanoseconds.
        end: When it was answered; None: never, its process died.
        answer: What was read.
        error: The class of the error that it raised.
    """

    process: str
    operation: str
    thread: str
    args: Mapping[str, Any]
    start: int
    end: int | None = None
    answer: Any = None
    error: str | None = field(default=None)

    @property
    def outcome(self) -> Outcome:
        """Whether it is known to have happened."""
        if self.end is None or self.error in UNKNOWN:
            return "unknown"
        return "refused" if self.error else "done"

    @property
    def over(self) -> int:
        """From when on it can have no more effect."""
        if self.end is None or self.outcome == "unknown":
            return NEVER
        return self.end


def digest(value: object) -> str:
    """What stands for a value in a log."""
    return blake2b(repr(value).encode(), digest_size=9).hexdigest()


def row(found: CheckpointTuple) -> dict[str, Any]:
    """What stands for a checkpoint that was read."""
    values = found.checkpoint["channel_values"]
    return {
        "id": id_of(found),
        "parent": parent_of(found),
        "values": {name: digest(value) for name, value in values.items()},
        "writes": [
            [task, channel, digest(value)]
            for task, channel, value in found.pending_writes or ()
        ],
    }


class Log:
    """What one process calls."""

    def __init__(self, path: Path, process: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._process = process
        self._count = 0

    async def call(
        self, operation: str, thread: str, args: Mapping[str, Any], call: Awaitable[Any]
    ) -> Any:
        """Make a call and write down how it goes; None when it raises an error.

        Checkpoints that are read are given back as they are and logged as rows.
        """
        self._count += 1
        number = self._count
        self._write(
            n=number,
            operation=operation,
            thread=thread,
            args=args,
            start=time.monotonic_ns(),
        )
        error: str | None = None
        answer: Any = None
        result: Any = None
        try:
            result = await call
            if operation == "get":
                answer = row(result) if result else None
            elif operation == "list":
                answer = list(map(row, result))
        except JskvError as exc:
            error = type(exc).__name__
        except BaseException as exc:
            self._end(number, None, type(exc).__name__)
            raise
        self._end(number, answer, error)
        return result

    def close(self) -> None:
        """No more calls."""
        os.close(self._file)

    def _end(self, number: int, answer: Any, error: str | None) -> None:
        self._write(n=number, end=time.monotonic_ns(), answer=answer, error=error)

    def _write(self, **words: Any) -> None:
        # One write, which the death of this process cannot take back.
        line = json.dumps({"process": self._process, **words}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")


def merged(paths: Iterable[Path]) -> list[Event]:
    """The calls of all logs, in the order of their beginning."""
    begun: dict[tuple[str, int], dict[str, Any]] = {}
    for path in paths:
        for line in path.read_bytes().splitlines():
            words = json.loads(line)
            key = words["process"], words.pop("n")
            begun.setdefault(key, {}).update(words)
    events = [Event(**words) for words in begun.values()]
    return sorted(events, key=lambda event: event.start)


def by_thread(events: Sequence[Event]) -> dict[str, list[Event]]:
    """The calls on each thread."""
    threads: dict[str, list[Event]] = {}
    for event in events:
        threads.setdefault(event.thread, []).append(event)
    return threads
