"""How each saver is opened, here or in another process; their packages load on use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from jskv_saver import JetStreamSaver

AnySaver = BaseCheckpointSaver[Any]
Address = Mapping[str, str]
"""What another process needs to open the same storage: `kind`, and what that needs."""


@asynccontextmanager
async def open_saver(address: Address) -> AsyncIterator[AnySaver]:
    """A saver that is connected and set up, and has read nothing."""
    kind = address["kind"]
    if kind == "jskv":
        opened = JetStreamSaver.from_conn_string(
            address["url"], bucket=address["bucket"]
        )
        async with opened as saver:
            yield saver
    elif kind == "sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(address["path"]) as sqlite:
            await sqlite.setup()
            yield sqlite
    elif kind == "postgres":
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(address["url"]) as postgres:
            await postgres.setup()
            yield postgres
    else:
        from langgraph_checkpoint_plainredis import AsyncRedisSaver
        from redis.asyncio import Redis

        async with Redis.from_url(address["url"], protocol=2) as client:
            await client.ping()
            yield AsyncRedisSaver(client=client)


@contextmanager
def open_blocking(address: Address) -> Iterator[AnySaver]:
    """A saver whose blocking face is the one that is meant."""
    kind = address["kind"]
    if kind == "jskv":
        opened = JetStreamSaver.from_conn_string(
            address["url"], bucket=address["bucket"]
        )
        with opened as saver:
            yield saver
    elif kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(address["path"]) as sqlite:
            sqlite.setup()
            yield sqlite
    elif kind == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(address["url"]) as postgres:
            postgres.setup()
            yield postgres
    else:
        from langgraph_checkpoint_plainredis import RedisSaver
        from redis import Redis

        with Redis.from_url(address["url"], protocol=2) as client:
            client.ping()
            yield RedisSaver(client=client)


async def idle() -> None:
    """Return when no task but this one is about to run."""
    before = -1
    while (ready := len(asyncio.all_tasks())) != before:
        before = ready
        await asyncio.sleep(0.005)
