"""Pins: threads that no retention touches.

pn  agent, thread, name     nothing; its key says all
"""

from __future__ import annotations

from typing import Final

from jskv_saver.checkpoint.layout import RECORDS, THREADS
from jskv_saver.checkpoint.partition import Partition, scope_of
from jskv_saver.document.model import path_of
from jskv_saver.errors import (
    DocumentNotFoundError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

PINS: Final = "pn"
_SEGMENTS: Final = 3


class Pins:
    """The pins of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace

    async def pin(self, thread: str, name: str) -> None:
        """Pin a thread that is there. Idempotent."""
        path = (self._partition.agent, thread, name)
        # First: a thread that cannot be read must not be left with a pin that nobody
        # was told of.
        if await self._is_there(thread):
            put = await self._store.put(self._namespace, PINS, path, {})
            # Whoever removes the thread looks at the pins after he has said so, and
            # this looks at the thread after it was pinned: one of them sees the other.
            try:
                if await self._is_there(thread):
                    return
            except StoreUnavailableError as exc:
                raise UnknownOutcomeError(
                    f"the pin of thread {thread!r} was stored, but the thread not "
                    f"looked at afterwards: a removal may have met it ({exc})"
                ) from exc
            await self._store.delete(self._namespace, PINS, path, below=put.version + 1)
        raise DocumentNotFoundError(
            f"there is no thread {thread!r} to pin", collection=RECORDS, id=thread
        )

    async def unpin(self, thread: str, name: str | None) -> None:
        """Remove a pin, or all of a thread. Idempotent."""
        prefix = (self._partition.agent, thread)
        if name is None:
            await self._store.delete(self._namespace, PINS, prefix, subtree=True)
        else:
            await self._store.delete(self._namespace, PINS, (*prefix, name))

    async def of(self, thread: str | None = None) -> dict[str, tuple[str, ...]]:
        """The names of the pins by thread, sorted; of one thread, or of all."""
        prefix = (self._partition.agent,)
        within = prefix if thread is None else (*prefix, thread)
        found: dict[str, tuple[str, ...]] = {}
        for id in await self._store.ids(self._namespace, PINS, within=within):
            path = path_of(id)
            if len(path) == _SEGMENTS:
                found[path[1]] = (*found.get(path[1], ()), path[2])
        return found

    async def _is_there(self, thread: str) -> bool:
        """Whether a checkpoint of a thread is there that is not about to be removed."""
        within = (self._partition.agent, thread)
        scopes = {
            scope_of(id): None
            for collection in (THREADS, RECORDS)
            for id in await self._store.ids(self._namespace, collection, within=within)
        }
        for scope in scopes:
            if (await self._partition.read_head(scope)).known:
                return True
        return False
