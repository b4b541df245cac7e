"""Removing a whole thread, unless somebody has used it since it was looked at.

1. Look: the newest message of each checkpoint namespace, then the records; the newest
   writes and admissions; leases and pins.
2. Put an epoch that claims all records into each namespace, fenced on the newest
   message that was seen there. Refused: somebody was here, the thread stays. From here
   on nobody builds on what is there; whoever goes on stores all that he has.
3. Look again. New namespaces, writes or admissions, a lease or a pin: the thread stays,
   and the epochs are put back to what they said before.
4. Put epochs in their place that name the dead for good, the root's first. Refused:
   another removal came across the claim, and has ended it; the thread stays.
5. Purge all that is older than the first of the claims, then the epochs themselves
   where nobody has written since.

A crash after 2 leaves claims, which any other removal ends and a retention makes again;
after 4 the next removal finishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jskv_saver.checkpoint.admissions import ADMISSIONS
from jskv_saver.checkpoint.epochs import Epoch, encode_claim
from jskv_saver.checkpoint.holding import HOLDER, LEASES
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, THREADS, WRITES, Record, Scope
from jskv_saver.checkpoint.pins import PINS
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.document.model import Document, path_of
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import VersionConflictError

_BUSY: Final = (WRITES, ADMISSIONS)
"""Collections in which something new says that the thread is in use."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A checkpoint namespace as it was.

    Attributes:
        fence: The version of its newest message.
        epoch: Its epoch.
        records: Its records.
    """

    fence: int
    epoch: Epoch | None
    records: Mapping[str, Record]

    @property
    def all(self) -> dict[str, int]:
        """All records, and those that an epoch names already, with their versions."""
        dead = dict(self.epoch.dead) if self.epoch else {}
        return dead | {id: record.version for id, record in self.records.items()}

    @property
    def said(self) -> tuple[dict[str, int], dict[str, int]]:
        """Those that an epoch names already, and the first one's version for each."""
        if self.epoch is None:
            return {}, {}
        dead = dict(self.epoch.dead)
        return dead, {id: self.epoch.named_at(id) for id in dead}

    @property
    def since(self) -> dict[str, int]:
        """The same, but for second lives: these are named for the first time."""
        dead, named = self.said
        every = self.all
        return {id: at for id, at in named.items() if dead[id] == every[id]}


@dataclass(frozen=True, slots=True)
class Survey:
    """A thread as it was.

    Attributes:
        scopes: Its checkpoint namespaces, the root first.
        newest: The newest version in each collection that says it is in use.
        first: When it began.
        last: When it was used last.
        is_held: Whether somebody has a lease on it, or has pinned it.
    """

    scopes: Mapping[Scope, _Seen]
    newest: Mapping[str, int]
    first: datetime | None
    last: datetime | None
    is_held: bool

    @property
    def records(self) -> list[Record]:
        """All its records."""
        return [each for seen in self.scopes.values() for each in seen.records.values()]


class Expirer(Pruner):
    """Removes whole threads of a partition, if nobody uses them."""

    async def survey(self, thread: str) -> Survey:
        """Look at a thread."""
        busy = await self._newest(thread)
        is_held = await self._is_held(thread)
        scopes: dict[Scope, _Seen] = {}
        for scope in await self._record_scopes(thread):
            # First, so that what comes while the records are read breaks the fence.
            last = await self._partition.last_message(scope)
            if last is None:
                continue
            _, epoch = await self._partition.records(scope, (), epoch=True)
            before = epoch.decided if epoch else None
            scopes[scope] = _Seen(last.version, before, await self._records(scope))
        index = [
            document.updated_at
            for document in (
                await self._store.get_many(
                    self._namespace, [(THREADS, scope.prefix) for scope in scopes]
                )
            ).values()
        ]
        stored = [
            record.stored_at
            for seen in scopes.values()
            for record in seen.records.values()
        ]
        used = [document.updated_at for document in busy.values()]
        return Survey(
            scopes,
            {name: document.version for name, document in busy.items()},
            min([*index, *stored], default=None),
            max([*stored, *used] or index, default=None),
            is_held,
        )

    def is_large(self, survey: Survey) -> bool:
        """Whether one epoch cannot name all: prune it first."""
        every = [list(seen.all) for seen in survey.scopes.values()]
        return any(len(self._fitting(ids)) < len(ids) for ids in every)

    async def expire(self, thread: str, survey: Survey) -> bool:
        """Remove a thread; false, and it stays, if it was used since the survey."""
        if survey.is_held or not survey.scopes:
            return False
        epochs: dict[Scope, int] = {}
        try:
            for scope, seen in survey.scopes.items():
                epochs[scope] = await self._close(scope, seen)
        except VersionConflictError:
            await self._withdraw(survey, epochs)
            return False
        if await self._is_used(thread, survey):
            await self._withdraw(survey, epochs)
            return False
        bound = min(epochs.values())
        if not await self._decide(survey, epochs):
            return False
        # A lease that somebody has by now is younger: he begins a new life. A guard has
        # nothing to guard any more, for all heads have moved.
        await self._store.delete(
            self._namespace,
            RESERVED_COLLECTIONS,
            self._prefix(thread),
            subtree=True,
            below=bound,
        )
        for scope, epoch in epochs.items():
            await self._forget(scope, epoch)
        self._partition.heads.forget_thread(*self._prefix(thread))
        return True

    def _prefix(self, thread: str) -> tuple[str, str]:
        return (self._partition.agent, thread)

    async def _record_scopes(self, thread: str) -> list[Scope]:
        return sorted(await self._scopes(thread))

    async def _newest(self, thread: str) -> dict[str, Document]:
        """The newest documents of the collections that say whether it is in use."""
        found: dict[str, Document] = {}
        for name in _BUSY:
            page = await self._store.find(
                self._namespace,
                name,
                order_by=("@version", "desc"),
                limit=1,
                within=self._prefix(thread),
            )
            if page.items:
                found[name] = page.items[0]
        return found

    async def _is_held(self, thread: str) -> bool:
        """Whether somebody has a lease on it, or has pinned it."""
        within = self._prefix(thread)
        if await self._store.ids(self._namespace, PINS, within=within):
            return True
        leases = await self._store.ids(self._namespace, LEASES, within=within)
        # The guard of a holder who died stays; the thread may go.
        return any(path_of(id)[-1] == HOLDER for id in leases)

    async def _is_used(self, thread: str, survey: Survey) -> bool:
        """Whether anything came since the survey that no fence has noticed."""
        if await self._is_held(thread):
            return True
        if set(await self._record_scopes(thread)) - survey.scopes.keys():
            return True
        newest = await self._newest(thread)
        return any(
            document.version > survey.newest.get(name, 0)
            for name, document in newest.items()
        )

    async def _close(self, scope: Scope, seen: _Seen) -> int:
        """Claim all records of a namespace, if it is still as it was."""
        before, named = seen.said
        put = await self._store.put(
            self._namespace,
            RECORDS,
            scope.record(EPOCH),
            encode_claim(seen.all, seen.since, before, named),
            if_latest=(scope.prefix, seen.fence),
        )
        self._partition.heads.forget(scope)
        return put.version

    async def _decide(self, survey: Survey, epochs: dict[Scope, int]) -> bool:
        """Make the claims final, the root's first; false if another one ended it.

        If another removal ended that of a namespace below, what is decided is carried
        out without it; the next retention sees to the rest.
        """
        decided: dict[Scope, int] = {}
        for scope, version in [*epochs.items()]:
            seen = survey.scopes[scope]
            try:
                decided[scope] = await self._announce(
                    scope, seen.all, version, seen.since
                )
            except VersionConflictError:
                if decided:
                    await super().repair(scope.thread)
                await self._withdraw(
                    survey, {s: v for s, v in epochs.items() if s not in decided}
                )
                return False
        epochs.update(decided)
        return True

    async def _withdraw(self, survey: Survey, epochs: Mapping[Scope, int]) -> None:
        """Say what the epochs said before, unless another removal has begun since."""
        for scope, version in epochs.items():
            before, named = survey.scopes[scope].said
            with suppress(VersionConflictError):
                await self._announce(scope, before, version, named)

    async def _forget(self, scope: Scope, epoch: int) -> None:
        """Remove the epoch of a namespace that is empty now."""
        last = await self._partition.last_message(scope)
        while last is not None and last.version == epoch:
            await self._store.delete(
                self._namespace, RECORDS, scope.record(EPOCH), below=epoch + 1
            )
            last = await self._partition.last_message(scope)
            if last is None or await self._partition.epoch_version(scope):
                return
            # Somebody came in between: his namespace is opened again, not fenced, or
            # a writer who never pauses would never let it through.
            try:
                epoch = await self._announce(scope, {}, 0, {})
            except VersionConflictError:
                return
            if await self._partition.names(scope):
                return
            # And a removal has taken what he wrote.
            last = await self._partition.last_message(scope)
