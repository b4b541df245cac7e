"""What an archive of threads holds: threads, checkpoints and writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.writes import PendingWrite


@dataclass(frozen=True, slots=True)
class ArchivedThread:
    """What follows is of this thread.

    Attributes:
        namespace: Its owner.
        agent: Its agent.
        thread: Its id.
    """

    namespace: str
    agent: str
    thread: str


@dataclass(frozen=True, slots=True)
class ArchivedCheckpoint:
    """A checkpoint, not deserialised.

    Attributes:
        ns: Its checkpoint namespace.
        id: Its id.
        parent: Its parent's id, or None.
        run: The run that wrote it, or None.
        format: The checkpoint's own format.
        deltas: Channels that only the history holds, with the steps since then.
        versions: Its channel versions.
        skeleton: The checkpoint without id, channel values and versions.
        metadata: Its metadata.
        values: Its channel values.
        writes: Its pending writes, in LangGraph's order.
    """

    ns: str
    id: str
    parent: str | None
    run: str | None
    format: int
    deltas: Mapping[str, int]
    versions: Mapping[str, Any]
    skeleton: Typed
    metadata: Typed
    values: Mapping[str, Typed]
    writes: Sequence[PendingWrite] = ()


@dataclass(frozen=True, slots=True)
class ArchivedWrites:
    """Pending writes that came before their checkpoint.

    Attributes:
        ns: The checkpoint namespace.
        id: The checkpoint.
        writes: The writes.
    """

    ns: str
    id: str
    writes: Sequence[PendingWrite]


@dataclass(slots=True)
class Totals:
    """What an archive holds."""

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0


Item: TypeAlias = ArchivedThread | ArchivedCheckpoint | ArchivedWrites
