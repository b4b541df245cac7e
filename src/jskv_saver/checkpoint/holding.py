"""The lease of a thread, as messages: taken, kept, held against others, given back.

    ls  agent, thread, "holder"   who has it; expires by the store's clock
    ls  agent, thread, "guard"    whose puts may still be under way; never expires

1. Take: create the holder's document, which is there as long as it is renewed. Then
   create the guard. Is there one already, its holder died, or was taken for dead, and
   may wake up: move the head of each namespace of the thread, so that whatever he
   fenced on is no more, and put the guard in the place of his.
2. Put: on a head, as ever. Before one is fenced on a head that this holding has not
   met, look whether the holder's document is still one's own. If it is, whoever takes
   it from here on moves that head first; a head that came of one's own put is as good.
3. Give back: remove the guard, unless a put may still arrive; then the document.

So no put arrives after the thread was taken by somebody else: it is refused, reads the
head again, looks, and finds the lease lost. A renewal moves no head and refuses no put.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from jskv_saver.checkpoint.capabilities import expiring
from jskv_saver.checkpoint.epochs import decode_epoch, encode_epoch
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, Scope
from jskv_saver.checkpoint.partition import Partition, scope_of
from jskv_saver.checkpoint.patience import persist
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.errors import (
    DocumentNotFoundError,
    JskvError,
    LeaseLostError,
    StoreUnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)

LEASES: Final = "ls"
HOLDER: Final = "holder"
GUARD: Final = "guard"
_MOST_COVERED = 4096
# Also counts while the machine is suspended, as the server's time does.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


class Holding:
    """One attempt to hold a thread, and what comes of it. Used on one event loop.

    Attributes:
        thread: The thread.
        ttl: Seconds for which it is held from each renewal on.
        holder: How others are told who has it.
        ended: It is given back, or is about to be.
        lost: It was somebody else's, or nobody's, when it was looked at.
    """

    def __init__(self, partition: Partition, thread: str, ttl: float) -> None:
        self.thread = thread
        self.ttl = ttl
        self.token = secrets.token_hex(8)
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{self.token}"
        self.ended = False
        self.lost = False
        self._partition = partition
        self._store, self._expiring = partition.store, expiring(partition.store)
        self._namespace = partition.namespace
        self._paths = (
            (partition.agent, thread, HOLDER),
            (partition.agent, thread, GUARD),
        )
        self._version = self._guard = 0
        self._theirs: str | None = None
        self._covered: dict[Scope, int] = {}
        self._writing = 0
        self._in_doubt = False
        self._confirmed = 0.0

    def is_of(self, partition: Partition) -> bool:
        """Whether it is of the saver that has this partition, or of its copy."""
        return self._partition is partition

    # -- taking ------------------------------------------------------------------------

    async def take(self) -> bool:
        """Take the lease, if nobody has it.

        Raises:
            UnknownOutcomeError: An answer was lost; it may be taken until it expires.
        """
        data = {"t": self.token, "w": self.holder}
        asked = _now()
        try:
            taken = await self._expiring.put_expiring(
                self._namespace,
                LEASES,
                self._paths[0],
                data,
                ttl=self.ttl,
                if_version=0,
            )
        except VersionConflictError:
            return False
        except UnknownOutcomeError as lost:
            # It is asked for once: if it is there, it was stored.
            try:
                mine = await self._is_mine()
            except StoreUnavailableError:
                raise lost from None
            if not mine:
                raise
        else:
            self._version, self._confirmed = taken.version, asked
        return await self._put_guard()

    async def _put_guard(self) -> bool:
        expected = 0
        while True:
            try:
                guard = await self._store.put(
                    self._namespace,
                    LEASES,
                    self._paths[1],
                    {"t": self.token},
                    if_version=expected,
                )
            except VersionConflictError:
                pass
            else:
                self._guard = guard.version
                return True
            before = await self._read(self._paths[1])
            if not await self._is_mine():
                return False
            expected = before.version if before else 0
            if before and not await self._move_heads():
                return False

    async def _move_heads(self) -> bool:
        """Break what an earlier holder may be fenced on, in all of the thread.

        Returns:
            Whether it is still held, after a long time.
        """
        partition = self._partition
        found = await self._store.ids(
            self._namespace, RECORDS, within=(partition.agent, self.thread)
        )
        for id in found:
            # One without an epoch is being deleted.
            if path_of(id)[-1] != EPOCH:
                continue
            if _now() - self._confirmed > self.ttl / 3 and not await self.renew():
                return False
            await persist(partial(self._move_head, scope_of(id)))
        return True

    async def _move_head(self, scope: Scope) -> bool:
        """Put the epoch once more, which says what it said."""
        path = scope.record(EPOCH)
        head = await self._partition.read_head(scope)
        document = await self._read(path, RECORDS)
        if document is None:
            return True
        self._partition.heads.forget(scope)
        epoch = decode_epoch(document).decided
        since = {id: epoch.named_at(id) for id in epoch.dead}
        try:
            await self._store.put(
                self._namespace,
                RECORDS,
                path,
                encode_epoch(head.known, epoch.dead, since),
                if_latest=(scope.prefix, head.fence),
            )
            return True
        except VersionConflictError:
            pass
        try:
            # A writer who never pauses lets no fenced one through; so the greatest ids
            # are not known.
            await self._store.put(
                self._namespace,
                RECORDS,
                path,
                encode_epoch(None, epoch.dead, since),
                if_version=epoch.version,
            )
        except VersionConflictError:
            return False
        return True

    # -- keeping -----------------------------------------------------------------------

    async def renew(self) -> bool:
        """Hold it for another `ttl` seconds; whether it is still held.

        Raises:
            UnknownOutcomeError: The answer was lost; it may be held that long.
        """
        asked = _now()
        try:
            renewed = await self._expiring.put_expiring(
                self._namespace,
                LEASES,
                self._paths[0],
                {"t": self.token, "w": self.holder},
                ttl=self.ttl,
                if_version=self._version,
            )
        except VersionConflictError:
            # A renewal without an answer may have arrived.
            return await self._is_mine()
        self._version, self._confirmed = renewed.version, asked
        return True

    async def check(self) -> None:
        """Look whether it is still held.

        Raises:
            LeaseLostError: It is not.
        """
        self.refuse()
        await self._is_mine()
        self.refuse()

    async def _is_mine(self) -> bool:
        found = await self._read(self._paths[0])
        if found is not None and found.data.get("t") == self.token:
            self._version = max(self._version, found.version)
            return True
        self.lost = True
        self._theirs = None if found is None else str(found.data.get("w"))
        return False

    async def _read(self, path: Path, collection: str = LEASES) -> Document | None:
        try:
            return await self._store.get(self._namespace, collection, path)
        except DocumentNotFoundError:
            return None

    async def other(self) -> str | None:
        """Who holds it now; None: nobody."""
        found = await self._read(self._paths[0])
        return None if found is None else str(found.data.get("w"))

    # -- putting -----------------------------------------------------------------------

    def refuse(self) -> None:
        """Raise `LeaseLostError` if it is known not to be held any more."""
        if self.lost:
            other = f"held by {self._theirs}" if self._theirs else "nobody's"
            raise LeaseLostError(
                f"the lease of thread {self.thread!r} was lost, and is {other} now: "
                "nothing was written; take it again, read the thread, and decide",
                holder=self._theirs,
            )
        if self.ended:
            raise LeaseLostError(
                f"the lease of thread {self.thread!r} was given back before this was "
                "put: nothing was written; wait for what puts before its block ends"
            )

    async def covers(self, scope: Scope, fence: int) -> None:
        """See to it that what is fenced on this head is refused once the lease is lost.

        Raises:
            LeaseLostError: It is lost.
        """
        self.refuse()
        if self._covered.get(scope) == fence:
            return
        # The head was read before: whoever takes the lease after this look moves it.
        await self.check()
        self._cover(scope, fence)

    @contextmanager
    def putting(self) -> Iterator[None]:
        """Around a fenced put: one that is not answered may arrive after the end."""
        self.refuse()
        self._writing += 1
        try:
            yield
        except VersionConflictError:
            raise
        except BaseException:
            self._in_doubt = True
            raise
        finally:
            self._writing -= 1

    def wrote(self, scope: Scope, fence: int) -> None:
        """A put moved the head that it was fenced on, which was covered."""
        self._cover(scope, fence)

    def _cover(self, scope: Scope, fence: int) -> None:
        if len(self._covered) >= _MOST_COVERED:
            # They are looked at once more.
            self._covered.clear()
        self._covered[scope] = fence

    async def confirm(self) -> None:
        """Before what no fence guards: look, unless it was renewed just now.

        Raises:
            LeaseLostError: It is lost.
        """
        self.refuse()
        if _CLOCK is None or _now() - self._confirmed > self.ttl / 2:
            await self.check()

    # -- giving back -------------------------------------------------------------------

    async def give_back(self) -> None:
        """Remove it, if it is held still. Nothing may be put under it any more.

        Raises:
            LeaseLostError: It was lost before.
        """
        self.ended = True
        if self.lost or not await self._is_mine():
            self.refuse()
        if not self._in_doubt and not self._writing:
            await self._remove(self._paths[1], self._guard)
        await self._remove(self._paths[0], self._version)

    async def drop(self) -> None:
        """As `give_back`, of one that is not held for certain; errors are left."""
        self.ended = True
        try:
            if await self._is_mine():
                await self._remove(self._paths[1], self._guard)
                await self._remove(self._paths[0], self._version)
        except JskvError:
            # It expires.
            return

    async def _remove(self, path: Path, version: int) -> None:
        """Remove a document unless somebody else has replaced it."""
        if version:
            await self._store.delete(self._namespace, LEASES, path, below=version + 1)


def _now() -> float:
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
