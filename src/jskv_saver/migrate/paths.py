"""The paths of the tasks that wrote: what orders writes, and no public method tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from jskv_saver.checkpoint.saver import DocumentCheckpointSaver

Paths = Mapping[str, str]
Key = tuple[str, str, str]

_SQL: Final = (
    "SELECT task_id, task_path FROM {table} "
    "WHERE thread_id = {0} AND checkpoint_ns = {0} AND checkpoint_id = {0}"
)


async def task_paths(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> Paths | None:
    """The path of each task that wrote to a checkpoint; None: this saver hides them."""
    configurable = config["configurable"]
    key = (
        str(configurable["thread_id"]),
        configurable["checkpoint_ns"],
        configurable["checkpoint_id"],
    )
    if isinstance(saver, DocumentCheckpointSaver):
        loaded = await saver._portal.arun(saver._read, config)
        return {write.task: write.path for write in loaded.writes} if loaded else {}
    for kind in type(saver).__mro__:
        ask = _ASK.get(f"{kind.__module__}.{kind.__name__}")
        if ask is not None:
            return await ask(saver, key)
    return None


async def _in_memory(saver: Any, key: Key) -> Paths:
    return {task: path for task, _, _, path in saver.writes.get(key, {}).values()}


async def _in_sqlite(saver: Any, key: Key) -> Paths | None:
    # A database from before the column, opened to read only.
    if not getattr(saver, "_has_task_path", True):
        return None
    async with (
        saver.lock,
        saver.conn.execute(_SQL.format("?", table="writes"), key) as cursor,
    ):
        return {task: path async for task, path in cursor}


async def _in_postgres(saver: Any, key: Key) -> Paths:
    async with saver._cursor() as cursor:
        await cursor.execute(_SQL.format("%s", table="checkpoint_writes"), key)
        return {row["task_id"]: row["task_path"] async for row in cursor}


_ASK: Final[Mapping[str, Callable[[Any, Key], Awaitable[Paths | None]]]] = {
    "langgraph.checkpoint.memory.InMemorySaver": _in_memory,
    "langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver": _in_sqlite,
    "langgraph.checkpoint.postgres.aio.AsyncPostgresSaver": _in_postgres,
}
