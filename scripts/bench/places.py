"""Each saver's storage: fresh for each round, and what it holds in bytes."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    closing,
)
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import nats
from langgraph.checkpoint.memory import InMemorySaver
from scripts.bench import services
from scripts.bench.peers import Address, AnySaver, open_saver
from scripts.bench.services import Missing

from jskv_saver import LocalServer


class Peer(ABC):
    """A saver and its server; entered, it runs. The class knows no workload."""

    name: str
    settings: str
    package: str = ""

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._stack = ExitStack()
        self._places = 0

    def __enter__(self) -> Self:
        if self.package and find_spec(self.package) is None:
            raise Missing(f"no Python package {self.package}: install .[bench]")
        self._start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _start(self) -> None:  # noqa: B027 - a file or a dict has none
        """Start the server; it is left to the stack."""

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Place]:
        """Storage that is empty, and gone at the end."""
        self._places += 1
        place = await self._make(f"bench_{self._places}")
        async with AsyncExitStack() as stack:
            place.saver = await stack.enter_async_context(place.open())
            yield place
        await self._drop(place)

    @abstractmethod
    async def _make(self, name: str) -> Place: ...

    async def _drop(self, place: Place) -> None:  # noqa: B027 - a dict needs none
        """Remove what a place holds."""

    @abstractmethod
    async def stored(self, place: Place) -> int:
        """Bytes that the place holds."""


class Place:
    """Where one saver keeps one round of one workload."""

    def __init__(self, peer: Peer, address: Address) -> None:
        self.peer = peer
        self.address = address
        self.saver: AnySaver = InMemorySaver()

    def open(self) -> AbstractAsyncContextManager[AnySaver]:
        """Another saver on the same storage, which has read nothing."""
        return open_saver(self.address)

    async def stored(self) -> int:
        """Bytes that are stored."""
        return await self.peer.stored(self)


class MemoryPlace(Place):
    """A dict of this process: there is no other saver on it."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AnySaver]:
        yield self.saver


class Jskv(Peer):
    """This saver, on a nats-server of its own."""

    name = "jskv"

    def _start(self) -> None:
        interval = "always" if self._durable else "2m"
        self.server = self._stack.enter_context(LocalServer(sync_interval=interval))
        version = asyncio.run(_server_version(self.server.url))
        self.settings = f"JetStreamSaver, nats-server {version}"
        self.settings += f", sync_interval {interval}"

    async def _make(self, name: str) -> Place:
        address = {"kind": "jskv", "url": self.server.url, "bucket": name}
        return Place(self, address)

    async def _drop(self, place: Place) -> None:
        client = await nats.connect(self.server.url)
        await client.jetstream().delete_stream(f"KV_{place.address['bucket']}")
        await client.close()

    async def stored(self, place: Place) -> int:
        client = await nats.connect(self.server.url)
        stream = f"KV_{place.address['bucket']}"
        info = await client.jetstream().stream_info(stream)
        await client.close()
        return info.state.bytes


class Memory(Peer):
    """LangGraph's InMemorySaver: what no storage at all costs."""

    name = "memory"
    settings = "InMemorySaver"

    async def _make(self, name: str) -> Place:
        return MemoryPlace(self, {"kind": "memory"})

    async def stored(self, place: Place) -> int:
        saver = place.saver
        assert isinstance(saver, InMemorySaver)
        size = sum(len(blob) for _, blob in saver.blobs.values())
        for namespaces in saver.storage.values():
            for rows in namespaces.values():
                for checkpoint, about, _ in rows.values():
                    size += len(checkpoint[1]) + len(about[1])
        for writes in saver.writes.values():
            size += sum(len(value[1]) for _, _, value, _ in writes.values())
        return size


class Sqlite(Peer):
    """AsyncSqliteSaver as it comes: WAL, and an fsync for each commit."""

    name = "sqlite"
    distribution = "langgraph-checkpoint-sqlite"
    package = "langgraph.checkpoint.sqlite"

    def _start(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="bench-sqlite-")
        self._folder = Path(self._stack.enter_context(folder))
        self.settings = f"AsyncSqliteSaver {_release(self.distribution)}, SQLite "
        self.settings += f"{sqlite3.sqlite_version}, as it comes: WAL, synchronous FULL"

    async def _make(self, name: str) -> Place:
        return Place(self, {"kind": "sqlite", "path": str(self._folder / f"{name}.db")})

    async def _drop(self, place: Place) -> None:
        for file in self._files(place):
            file.unlink()

    async def stored(self, place: Place) -> int:
        with closing(sqlite3.connect(place.address["path"])) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return sum(file.stat().st_size for file in self._files(place))

    def _files(self, place: Place) -> list[Path]:
        path = Path(place.address["path"])
        return [*self._folder.glob(f"{path.name}*")]


class Postgres(Peer):
    """AsyncPostgresSaver on a Postgres as `initdb` makes it."""

    name = "postgres"
    distribution = "langgraph-checkpoint-postgres"
    package = "langgraph.checkpoint.postgres"

    def _start(self) -> None:
        self._url = self._stack.enter_context(services.postgres())
        version = services.version(services.postgres_program("postgres"))
        self.settings = f"AsyncPostgresSaver {_release(self.distribution)}, {version}"
        self.settings += ", as initdb makes it"

    async def _make(self, name: str) -> Place:
        await self._run(f"CREATE DATABASE {name}", "postgres")
        return Place(self, {"kind": "postgres", "url": f"{self._url}/{name}"})

    async def _drop(self, place: Place) -> None:
        name = place.address["url"].rpartition("/")[2]
        await self._run(f"DROP DATABASE {name} WITH (FORCE)", "postgres")

    async def stored(self, place: Place) -> int:
        name = place.address["url"].rpartition("/")[2]
        return await self._run(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relkind = 'r' AND relname LIKE 'checkpoint%'",
            name,
        )

    async def _run(self, statement: str, database: str) -> int:
        from psycopg import AsyncConnection

        url = f"{self._url}/{database}"
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            cursor = await connection.execute(statement)
            row = await cursor.fetchone() if cursor.description else None
        return row[0] if row else 0


class Redis(Peer):
    """langgraph-checkpoint-plainredis on a Redis with an append-only file."""

    name = "redis"
    package = "langgraph_checkpoint_plainredis"
    distribution = "langgraph-checkpoint-plainredis"

    def _start(self) -> None:
        appendfsync = "always" if self._durable else "everysec"
        self._url = self._stack.enter_context(services.redis(appendfsync))
        self.settings = f"AsyncRedisSaver (plainredis) {_release(self.distribution)}, "
        self.settings += f"{services.version('redis-server')}, appendonly, "
        self.settings += f"appendfsync {appendfsync}"

    async def _make(self, name: str) -> Place:
        return Place(self, {"kind": "redis", "url": self._url})

    async def _drop(self, place: Place) -> None:
        from redis.asyncio import Redis as Client

        async with Client.from_url(self._url) as client:
            await client.flushall()

    async def stored(self, place: Place) -> int:
        from redis.asyncio import Redis as Client

        size = 0
        async with Client.from_url(self._url) as client:
            async for key in client.scan_iter(count=1000):
                size += await client.memory_usage(key, samples=0) or 0
        return size


def _release(distribution: str) -> str:
    return metadata.version(distribution)


async def _server_version(url: str) -> str:
    client = await nats.connect(url)
    version = client.connected_server_version
    await client.close()
    return f"{version.major}.{version.minor}.{version.patch}"


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Jskv, Memory, Sqlite, Postgres, Redis)
}
