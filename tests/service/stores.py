"""Stores behind a service that a test can hold up or break."""

from __future__ import annotations

import asyncio
from typing import Any

from jskv_saver import Document, MemoryDocumentStore


class Gated(MemoryDocumentStore):
    """Its gets and puts wait at a gate, which is open at first.

    Attributes:
        gate: Closed by `clear`.
        begun: Ids of the calls that have come to the gate.
        given_up: Ids of those that were cancelled there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun: list[Any] = []
        self.given_up: list[Any] = []

    async def put(self, *args: Any, **options: Any) -> Document:
        await self._wait(args[2])
        return await super().put(*args, **options)

    async def get(self, *args: Any) -> Document:
        await self._wait(args[2])
        return await super().get(*args)

    async def _wait(self, id: Any) -> None:
        self.begun.append(id)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.given_up.append(id)
            raise


class Broken(MemoryDocumentStore):
    """Its calls raise what they are told to."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    async def get(self, *args: Any) -> Document:
        raise self._error
