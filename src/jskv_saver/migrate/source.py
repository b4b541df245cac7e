"""Reading a saver: which threads and checkpoints there are, and each of them whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from jskv_saver.errors import CorruptDocumentError
from jskv_saver.migrate.paths import task_paths

_PAGE: Final = 64
_FETCHES_ALL: Final = "langgraph.checkpoint.postgres"
"""Savers that read a whole listing before they give the first checkpoint of it."""


class Row(NamedTuple):
    """Where a checkpoint of a thread is, and its parent's id."""

    ns: str
    id: str
    parent: str | None


class Write(NamedTuple):
    """A pending write."""

    task: str
    channel: str
    value: Any
    path: str


@dataclass(frozen=True, slots=True)
class Item:
    """A checkpoint, whole.

    Attributes:
        row: Where it is.
        checkpoint: As the saver gives it.
        metadata: As the saver gives it.
        writes: Its pending writes, in the saver's order.
    """

    row: Row
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    writes: Sequence[Write]

    @property
    def deltas(self) -> list[str]:
        """Its delta channels whose values only the history has."""
        counters = self.metadata.get("counters_since_delta_snapshot") or {}
        values = self.checkpoint.get("channel_values") or {}
        return sorted(counters.keys() - values.keys())


def config_of(thread: str, row: Row | None = None) -> RunnableConfig:
    """The config that names a thread, or a checkpoint of it."""
    configurable = {"thread_id": thread}
    if row is not None:
        configurable |= {"checkpoint_ns": row.ns, "checkpoint_id": row.id}
    return {"configurable": configurable}


async def threads_of(saver: BaseCheckpointSaver[Any]) -> list[str]:
    """The ids of all threads, those of the newest checkpoints last."""
    found: dict[str, None] = {}
    async for each in _listing(saver, None):
        found.setdefault(str(each.config["configurable"]["thread_id"]))
    return list(reversed(found))


async def rows_of(saver: BaseCheckpointSaver[Any], thread: str) -> list[Row]:
    """The checkpoints of a thread in all namespaces: parents first, then by id."""
    rows = []
    async for each in _listing(saver, config_of(thread)):
        configurable = each.config["configurable"]
        parent = (each.parent_config or {}).get("configurable", {})
        rows.append(
            Row(
                configurable.get("checkpoint_ns", ""),
                configurable["checkpoint_id"],
                parent.get("checkpoint_id") or None,
            )
        )
    return parents_first(rows)


def parents_first(rows: Iterable[Row]) -> list[Row]:
    """By id, which follows the time, but never a child before its parent."""
    waiting = {(row.ns, row.id): row for row in rows}
    done: list[Row] = []
    for key in sorted(waiting, key=lambda key: (key[1], key[0])):
        chain: list[Row] = []
        row = waiting.pop(key, None)
        while row is not None:
            chain.append(row)
            row = waiting.pop((row.ns, row.parent), None) if row.parent else None
        done += reversed(chain)
    return done


async def load(saver: BaseCheckpointSaver[Any], thread: str, row: Row) -> Item:
    """Read a checkpoint that is listed.

    Raises:
        CorruptDocumentError: It is not there (any more).
    """
    config = config_of(thread, row)
    found = await saver.aget_tuple(config)
    if found is None:
        raise CorruptDocumentError(
            f"checkpoint {row.id!r} was listed, and cannot be read: was it removed "
            "meanwhile? Stop what uses the source, and start again",
            key=row.id,
        )
    writes = found.pending_writes or []
    paths = await task_paths(saver, config) if writes else {}
    return Item(row, found.checkpoint, found.metadata, _with_paths(writes, paths))


def _with_paths(
    writes: Sequence[tuple[str, str, Any]], paths: Mapping[str, str] | None
) -> list[Write]:
    """Writes with the paths of their tasks, by which savers order them.

    A saver that does not tell them still gives their order: where it is not that of
    the task ids, which order writes without a path, numbers stand for the paths.
    """
    if paths is None:
        tasks = list(dict.fromkeys(task for task, *_ in writes))
        in_order = tasks == sorted(tasks)
        numbers = {task: f"{number:06}" for number, task in enumerate(tasks)}
        paths = {} if in_order else numbers
    return [Write(*write, paths.get(write[0], "")) for write in writes]


async def _listing(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig | None
) -> AsyncIterator[CheckpointTuple]:
    if not type(saver).__module__.startswith(_FETCHES_ALL):
        async for each in saver.alist(config):
            yield each
        return
    limit, before = _PAGE, None
    while True:
        page = [e async for e in saver.alist(config, before=before, limit=limit)]
        ids = [_id_of(each) for each in page]
        if len(page) < limit:
            for each in page:
                yield each
            return
        # Other threads may have the same id as the last one, and "before" leaves
        # them out: those of the last id come with the next page.
        whole = [each for each, id in zip(page, ids, strict=True) if id != ids[-1]]
        if whole:
            limit = _PAGE
            before = whole[-1].config
        else:
            limit *= 2
        for each in whole:
            yield each


def _id_of(each: CheckpointTuple) -> str:
    return str(each.config["configurable"]["checkpoint_id"])
