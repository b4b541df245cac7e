"""What happens in a memory store, as it happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jskv_saver.document.model import Change, Document, Path, id_of
from jskv_saver.document.names import PatternPath, matches
from jskv_saver.document.values import copy_data
from jskv_saver.errors import InvalidRequestError, StoreClosedError

if TYPE_CHECKING:
    from jskv_saver.adapters.memory.store import MemoryDocumentStore

_MOST: Final = 10_000
"""Changes that wait for a slow reader: more, and he reads what is there by then."""


class MemoryChanges:
    """The changes of some documents of a memory store.

    Args:
        store: The store, whose lock is held wherever this is used.
        namespace: The owner; None: all.
        reads: What is followed.
        removals: Ids whose removal is told.
        after: The version to go on after; None: from now on.
    """

    def __init__(
        self,
        store: MemoryDocumentStore,
        namespace: str | None,
        reads: Sequence[tuple[str, PatternPath]],
        removals: Sequence[PatternPath],
        after: int | None,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reads = reads
        self._removals = removals
        self._position = after
        self._waiting: deque[Change] = deque()
        self._most = _MOST
        self._opened = self._closed = False
        self._waker: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def open(self) -> None:
        if self._opened:
            return
        store = self._store
        with store._lock:
            newest = store._version
            if self._position is None:
                self._position = newest
            elif self._position > newest:
                raise InvalidRequestError(
                    f"version {self._position} was never reached in this store, whose "
                    f"newest is {newest}"
                )
            self._opened = True
            self._look()
            store._followed.add(self)

    async def next(self) -> Change:
        await self.open()
        while True:
            with self._store._lock:
                if self._closed:
                    raise StoreClosedError("what follows the store was closed")
                while self._waiting:
                    change = self._waiting.popleft()
                    if self._is_current(change):
                        self._position = change.version
                        return _copied(change)
                event = asyncio.Event()
                self._waker = asyncio.get_running_loop(), event
            await event.wait()

    async def close(self) -> None:
        with self._store._lock:
            self._store._followed.discard(self)
            self.end()

    def end(self) -> None:
        """End it, with the store's lock held."""
        self._closed = True
        self._waiting.clear()
        self._wake()

    def take(self, change: Change, path: Path) -> None:
        """Take a change if it is followed, with the store's lock held."""
        if not self._wants(change.namespace, change.collection, path):
            return
        self._waiting.append(change)
        if len(self._waiting) > self._most:
            # As a bucket: what was replaced meanwhile is told once.
            self._look()
        self._wake()

    def _wake(self) -> None:
        if self._waker is not None:
            (loop, event), self._waker = self._waker, None
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(event.set)

    def _wants(self, namespace: str, collection: str, path: Path) -> bool:
        if self._namespace not in (None, namespace):
            return False
        if not collection:
            return any(matches(path, pattern) for pattern in self._removals)
        return any(
            name == collection and matches(path, pattern)
            for name, pattern in self._reads
        )

    def _is_current(self, change: Change) -> bool:
        """Whether what was put then has not been replaced or removed since."""
        if change.document is None:
            return True
        found = self._store._collections.get((change.namespace, change.collection))
        id = change.id
        path = (id,) if isinstance(id, str) else id
        present = None if found is None else found.documents.get(path)
        return present is not None and present.version == change.version

    def _look(self) -> None:
        """Wait for what is there and newer, in the place of what was waited for."""
        assert self._position is not None
        found = [
            Change(
                namespace,
                name,
                id_of(path),
                document.version,
                document.updated_at,
                document,
            )
            for (namespace, name), collection in self._store._collections.items()
            for path, document in collection.documents.items()
            if document.version > self._position and self._wants(namespace, name, path)
        ]
        self._waiting = deque(sorted(found, key=lambda change: change.version))
        self._most = max(_MOST, 2 * len(found))


def _copied(change: Change) -> Change:
    document = change.document
    if document is None:
        return change
    copy = Document(
        document.id,
        copy_data(document.data),
        document.version,
        document.created_at,
        document.updated_at,
    )
    return Change(
        change.namespace,
        change.collection,
        change.id,
        change.version,
        change.at,
        copy,
    )
