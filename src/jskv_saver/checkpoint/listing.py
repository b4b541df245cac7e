"""Listing checkpoints, page by page, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from jskv_saver.checkpoint.contents import Loaded, Writes
from jskv_saver.checkpoint.heads import KnownMetadata
from jskv_saver.checkpoint.layout import (
    Record,
    Scope,
    had_sends,
)
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import (
    KNOWN,
    Typed,
)
from jskv_saver.document.model import Path

_FEW = 32
"""Checkpoints whose writes are looked for one by one; of more all are listed."""
_PAGE_BYTES = 16 * 1024 * 1024
"""Bytes of values that a page holds, unless its first checkpoint has more."""
_AT_ONCE = 1024
"""Metadata that is compared before others have their turn on the event loop."""


class Listing:
    """A listing, read page by page.

    Args:
        reader: Reads.
        thread: The thread; None: all threads.
        ns: The checkpoint namespace; None: all.
        id: Only this checkpoint.
        before: Only ids smaller than this one.
        limit: How many to give at most; None: all.
        accept: Whether metadata matches; None: all does.
    """

    def __init__(
        self,
        reader: Reader,
        thread: str | None,
        ns: str | None,
        id: str | None,
        before: str | None,
        limit: int | None,
        accept: Callable[[Typed], bool] | None,
    ) -> None:
        self._reader = reader
        self._where = (thread, ns)
        self._bounds = (id, before)
        self._left = limit
        self._accept = accept
        self._names: list[Path] | None = None
        self._known = KnownMetadata()
        self._writes: dict[Path, list[Path]] | None = None
        self._at_hand: Writes | None = None
        self._listed_late = False
        self._found: list[tuple[Scope, Record]] = []
        self._at = 0
        self._is_short = False

    async def next_page(self) -> list[Loaded] | None:
        """The next checkpoints, newest first; None at the end."""
        while self._left is None or self._left > 0:
            if not self._found and not await self._find_more():
                return None
            page = self._cut()
            at_hand = self._at_hand if self._is_short else None
            if at_hand is None and self._writes is None and len(page) > _FEW:
                self._writes = await self._reader.names_of_writes(*self._where)
                self._listed_late = True
            loaded = await self._reader.read_contents(
                page, self._writes, at_hand, listed_late=self._listed_late
            )
            if self._is_short and len(loaded) < len(page) and not self._found:
                # Older ones take the place of those that were removed meanwhile.
                self._is_short = False
                self._names, self._at = None, 0
                self._bounds = None, page[-1][1].id
            if self._left is not None:
                self._left -= len(loaded)
            if loaded:
                return loaded
        return None

    async def _find_more(self) -> bool:
        """Look for records until some match; whether there are any."""
        if self._names is None:
            if await self._find_newest():
                return True
            self._names = await self._reader.names(*self._where, *self._bounds)
            if self._accept and self._bounds[0] is None:
                # Whose names were read: its head is that of now.
                self._known = self._reader.known_metadata(*self._where)
            most = len(self._names) if self._left is None else self._left
            if min(most, len(self._names)) > _FEW and not self._accept:
                self._writes = await self._reader.names_of_writes(*self._where)
        while not self._found and self._at < len(self._names):
            if self._accept:
                paths = self._candidates(self._names, self._accept)
                if not paths:
                    await asyncio.sleep(0)
                    continue
                records = await self._reader.read_records(paths)
                records = await self._matching(records, self._accept)
            else:
                size = PAGE if self._left is None else min(self._left, PAGE)
                paths = self._names[self._at : self._at + size]
                self._at += len(paths)
                records = await self._reader.read_records(paths)
            self._found = records[: self._left]
        return bool(self._found)

    def _candidates(
        self, names: Sequence[Path], accept: Callable[[Typed], bool]
    ) -> list[Path]:
        """The next ones that may match: what is remembered of the others does not."""
        found: list[Path] = []
        most = PAGE if self._left is None else min(self._left, PAGE)
        matching = 0
        end = min(self._at + _AT_ONCE, len(names))
        while self._at < end and len(found) < PAGE and matching < most:
            path = names[self._at]
            self._at += 1
            metadata = self._known.get(path[-1])
            if metadata is None or accept(metadata):
                found.append(path)
                matching += metadata is not None
        return found

    async def _find_newest(self) -> bool:
        """Find the newest ones without the names of all, where that can be."""
        thread, ns = self._where
        if self._left is None or self._accept or self._bounds != (None, None):
            return False
        if thread is None or ns is None or self._left > KNOWN:
            return False
        scope, ids = await self._reader.newest(thread, ns, self._left)
        found = await self._reader.records_with_writes(scope, ids) if ids else {}
        if not ids or len(found) < len(ids):
            return False
        if any(had_sends(record) for record, _ in found.values()):
            return False
        self._found = [(scope, found[id][0]) for id in ids]
        self._at_hand = {(scope, id): writes for id, (_, writes) in found.items()}
        self._names = [scope.record(id) for id in ids]
        self._at = len(ids)
        self._is_short = True
        return True

    def _cut(self) -> list[tuple[Scope, Record]]:
        """As many of the records that were found as may be held at once."""
        size = 0
        for at, (_, record) in enumerate(self._found):
            size += sum(entry.length for entry in record.entries())
            if at and size > _PAGE_BYTES:
                break
        else:
            at = len(self._found)
        cut, self._found = self._found[:at], self._found[at:]
        return cut

    async def _matching(
        self,
        records: Sequence[tuple[Scope, Record]],
        accept: Callable[[Typed], bool],
    ) -> list[tuple[Scope, Record]]:
        metadata = await self._reader.read_metadata(records)
        self._known.add(
            {
                record.id: typed
                for (_, record), typed in zip(records, metadata, strict=True)
                if typed is not None
            }
        )
        return [
            found
            for found, typed in zip(records, metadata, strict=True)
            if typed is not None and accept(typed)
        ]
