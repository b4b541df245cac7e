"""A wire between a client and its server that does what wires do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

Direction = Literal["request", "answer"]


class Proxy:
    """Passes bytes on, in both directions, until it is told something else.

    Attributes:
        delay: Seconds that each piece is held up.
        piece: Bytes that are passed on at a time; 0: as they come.
        lost: Directions in which nothing passes; the connection stays.
        cut: Of a direction: at its n-th piece from now on, which is lost, all
            connections end; 0 is the next one.
        cuts: How often that happened.
        requests: All that was sent towards the server, whether it was passed on or not.
    """

    def __init__(self, host: str, port: int, login: str) -> None:
        self._upstream = host, port
        self._login = login
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0
        self.piece = 0
        self.lost: set[Direction] = set()
        self.cut: dict[Direction, int] = {}
        self.cuts = 0
        self.requests = bytearray()

    @property
    def url(self) -> str:
        """The server's address, through here."""
        assert self._server
        port = self._server.sockets[0].getsockname()[1]
        return f"nats://{self._login}@127.0.0.1:{port}"

    def heal(self) -> None:
        """Pass everything on again."""
        self.delay, self.piece = 0.0, 0
        self.lost.clear()
        self.cut.clear()

    def hang_up(self) -> None:
        """End all connections at once."""
        for writer in self._writers:
            writer.transport.abort()

    async def listen(self) -> None:
        """Begin."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """End."""
        assert self._server
        self._server.close()
        self.hang_up()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        try:
            back, forth = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(forth)
        ways = (
            self._pass_on(reader, forth, "request"),
            self._pass_on(back, writer, "answer"),
        )
        for way in ways:
            task = asyncio.create_task(way)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Direction
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if way == "request":
                    self.requests += data
                if way in self.cut:
                    self.cut[way] -= 1
                    if self.cut[way] < 0:
                        del self.cut[way]
                        self.cuts += 1
                        self.hang_up()
                        break
                if way in self.lost:
                    continue
                step = self.piece or len(data)
                for start in range(0, len(data), step):
                    if self.delay:
                        await asyncio.sleep(self.delay)
                    sink.write(data[start : start + step])
                    if self.piece:
                        # A packet of its own.
                        await asyncio.sleep(0)
                await sink.drain()
        self._writers.discard(sink)
        sink.transport.abort()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[Proxy]:
    """A proxy before the server of a URL."""
    login, _, address = url.removeprefix("nats://").rpartition("@")
    host, _, port = address.partition(":")
    proxy = Proxy(host, int(port), login)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.close()
