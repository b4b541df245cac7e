"""A wire to the server that kills who sends on it, before one of the messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_MESSAGES = (b"PUB ", b"HPUB ")
_PIECE = 65_536


class Wire:
    """Passes messages on until so many have passed; then it calls `kill`.

    Args:
        url: The server's address.
        lives: How many messages pass.

    Attributes:
        killed: Whether it came to that.
    """

    def __init__(self, url: str, lives: int) -> None:
        self._url = urlsplit(url)
        self._left = lives
        self._victim: asyncio.Future[Callable[[], None]] = asyncio.Future()
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.Task[None]] = set()
        self.killed = False

    @property
    def url(self) -> str:
        """The server's address, through here."""
        assert self._server
        port = self._server.sockets[0].getsockname()[1]
        login, at, _ = self._url.netloc.rpartition("@")
        return self._url._replace(netloc=f"{login}{at}127.0.0.1:{port}").geturl()

    def to_kill(self, kill: Callable[[], None]) -> None:
        """Say how: nothing passes before."""
        self._victim.set_result(kill)

    async def listen(self) -> None:
        """Begin."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """End."""
        assert self._server
        self._server.close()
        for way in self._ways:
            way.cancel()
        if self._ways:
            await asyncio.wait(self._ways)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, port = self._url.hostname, self._url.port
        try:
            back, forth = await asyncio.open_connection(host, port)
        except OSError:
            writer.transport.abort()
            return
        for way in (self._requests(reader, forth), self._answers(back, writer)):
            task = asyncio.create_task(way)
            self._ways.add(task)
            task.add_done_callback(self._ways.discard)

    async def _requests(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                message = await source.readuntil(b"\r\n")
                if message.upper().startswith(_MESSAGES):
                    if not await self._may_pass():
                        break
                    size = int(message.split()[-1])
                    message += await source.readexactly(size + 2)
                sink.write(message)
                await sink.drain()
        # What has passed arrives.
        with suppress(OSError):
            sink.close()
            await sink.wait_closed()

    async def _may_pass(self) -> bool:
        kill = await self._victim
        if self._left == 0 and not self.killed:
            self.killed = True
            kill()
        self._left -= not self.killed
        return not self.killed

    async def _answers(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await source.read(_PIECE):
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


@asynccontextmanager
async def wire_to(url: str, lives: int) -> AsyncIterator[Wire]:
    """A wire to a server, for the duration of a block."""
    wire = Wire(url, lives)
    await wire.listen()
    try:
        yield wire
    finally:
        await wire.close()
