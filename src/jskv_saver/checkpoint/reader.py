"""Reading checkpoints: the latest, by id, or many, each in few round trips."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

from jskv_saver.checkpoint.contents import (
    ATTEMPTS,
    Contents,
    Loaded,
    loaded_from,
    pause,
)
from jskv_saver.checkpoint.drafts import Base
from jskv_saver.checkpoint.epochs import decode_epoch
from jskv_saver.checkpoint.heads import Head, KnownMetadata
from jskv_saver.checkpoint.layout import (
    EPOCH,
    RECORDS,
    WRITES,
    Record,
    Scope,
    decode_record,
    had_sends,
    is_epoch,
)
from jskv_saver.checkpoint.partition import (
    Partition,
    missing_part,
)
from jskv_saver.checkpoint.parts import Parts
from jskv_saver.checkpoint.values import (
    KNOWN,
)
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.port import FindsNewer
from jskv_saver.errors import StoreUnavailableError


class Reader(Contents):
    """Reads checkpoints of a partition."""

    def __init__(self, partition: Partition) -> None:
        super().__init__(partition)
        self._heads = partition.heads

    async def latest(self, scope: Scope) -> Loaded | None:
        """The checkpoint with the greatest id, or None."""
        seen = 0
        for attempt in range(ATTEMPTS):
            await pause(attempt)
            last, loaded = await self._last_message(scope)
            if loaded is not None:
                return loaded
            if last is None:
                # What comes next is a run's first put: its fence will tell.
                self._heads.set(scope, Head(0, names=[]))
                return None
            named = EPOCH
            if is_epoch(last):
                record, epoch = None, decode_epoch(last)
                named = max(epoch.dead, default=EPOCH)
                known = await self._partition.known_of(scope, epoch)
                if not known:
                    return None
            else:
                record = decode_record(last)
                known = record.known
            if record is None or record.id != known[0]:
                found, _ = await self._partition.records(scope, known[:1])
                record = found.get(known[0])
            # Removed without an epoch (by hand): look what is left, and build on
            # nothing, for it may be about to be removed.
            is_head = record is not None
            if record is None:
                names = await self._partition.names(scope)
                if not names:
                    return None
                found, _ = await self._partition.records(scope, names[-1:])
                record = found.get(names[-1])
                if record is None:
                    continue
            loaded = await self._with_contents(scope, record)
            if loaded is not None:
                if is_head:
                    self._remember(loaded, last.version, known, named)
                return loaded
            if record.version == seen:
                return await self._newest_whole(scope)
            seen = record.version
        raise _overtaken(scope)

    async def _newest_whole(self, scope: Scope) -> Loaded | None:
        """The latest, where one with a greater id is a remnant of a deleted thread."""
        for id in reversed(await self._partition.names(scope)):
            if loaded := await self.by_id(scope, id):
                return loaded
        return None

    async def _last_message(
        self, scope: Scope
    ) -> tuple[Document | None, Loaded | None]:
        """The newest message, and the latest checkpoint if it is what was remembered.

        Then its writes are read at the same time, and nothing else is needed.
        """
        head = self._heads.get(scope)
        base = head.base if head else None
        if head is None or base is None or head.known[:1] != (base.record.id,):
            return await self._partition.last_message(scope), None
        id = base.record.id
        key = (RECORDS, scope.record(id))
        last, found = await asyncio.gather(
            self._partition.last_message(scope),
            self._store.get_many(self._namespace, [key, *scope.writes(id)]),
        )
        record = found.get(key)
        if last is None or last.version != head.fence or last.id[-1] != id:
            return last, None
        if record is None or record.version != base.record.version:
            return last, None
        self._heads.met(scope, id, id)
        writes = [document for at, document in found.items() if at != key]
        return last, await self._with_contents(scope, base.record, writes)

    async def by_id(self, scope: Scope, id: str) -> Loaded | None:
        """The checkpoint with an id, or None."""
        key = (RECORDS, scope.record(id))
        seen = 0
        for attempt in range(ATTEMPTS):
            await pause(attempt)
            found = await self._store.get_many(
                self._namespace, [key, *scope.writes(id)]
            )
            if key not in found or id == EPOCH:
                return None
            record = decode_record(found[key])
            writes = [document for at, document in found.items() if at != key]
            loaded = await self._with_contents(scope, record, writes)
            if loaded is not None:
                head = self._heads.get(scope)
                if head and head.known:
                    self._heads.met(scope, id, head.known[0])
                return loaded
            if record.version == seen:
                # Not gone, and not whole any more: it is about to be removed.
                return None
            seen = record.version
        raise _overtaken(scope)

    def _remember(
        self, loaded: Loaded, fence: int, known: tuple[str, ...], named: str
    ) -> None:
        record, scope = loaded.record, loaded.scope
        runs = frozenset((record.run,) if record.run else ())
        head = self._heads.get(scope)
        names = metadata = past = None
        if head and head.fence == fence:
            runs |= head.runs
            names, metadata, past = head.names, head.metadata, head.past
        base = Base(record, loaded.values)
        new = Head(fence, known, base, runs, names, named, metadata, past)
        self._heads.set(scope, new)
        self._heads.met(scope, record.id, record.id)

    async def _with_contents(
        self,
        scope: Scope,
        record: Record,
        writes: Iterable[Document] | None = None,
    ) -> Loaded | None:
        """A record with its values and writes; None if it was removed meanwhile."""
        at_hand = self._heads.base(scope, record.id)
        if at_hand is not None and at_hand.record.version != record.version:
            # The id has a second life: what is remembered is of the first one.
            self._heads.forget(scope)
            at_hand = None
        values = at_hand.values if at_hand else {}
        entries = [record.skeleton, record.metadata]
        entries += [e for name, e in record.channels.items() if name not in values]
        parts = Parts(self._heads.parts)
        parts.at_hand(scope, record)
        named = {part for entry in entries for part, _, _ in entry.pieces()}
        parts.want(scope, record, named - {b""})
        reads = parts.reads
        own, epoch = (RECORDS, scope.record(record.id)), (RECORDS, scope.record(EPOCH))
        if writes is None:
            # Once more with its writes: without it they may be gone as well.
            reads += [own, epoch, *scope.writes(record.id)]
        if had_sends(record):
            reads += scope.writes(record.parent or "")
        documents: list[Document] = list(writes or ())
        if reads:
            found = dict(await self._store.get_many(self._namespace, reads))
            again = found.pop(own, None)
            if writes is None:
                if again is None or again.version != record.version:
                    return None
                if not found.pop(epoch, None):
                    # Of a deleted thread: what is remembered of it may be gone.
                    if not await self._partition.is_whole(scope, record):
                        return None
            for (collection, _), document in found.items():
                if collection == WRITES:
                    documents.append(document)
                else:
                    parts.take(collection, document)
            if parts.look_apart():
                await parts.read(self._store, self._namespace)
        grouped = await self._grouped(documents)
        try:
            return loaded_from(scope, record, values, parts.of(scope), grouped)
        except KeyError as exc:
            if await self._partition.is_gone(scope, record):
                return None
            raise missing_part(scope, exc.args[0]) from exc

    async def names(
        self, thread: str | None, ns: str | None, id: str | None, before: str | None
    ) -> list[Path]:
        """The ids of the records that a listing is about, newest first."""
        if thread is not None and ns is not None:
            scope = Scope(self._partition.agent, thread, ns)
            if id is not None:
                ids: Sequence[str] = (
                    () if before is not None and id >= before else (id,)
                )
            else:
                ids = await self._partition.all_ids(scope)
                ids = ids[: None if before is None else bisect_left(ids, before)]
            return [scope.record(id) for id in reversed(ids)]
        found = await self._store.ids(
            self._namespace, RECORDS, within=self._prefix(thread, ns)
        )
        chosen = [
            path
            for path in map(path_of, found)
            if path[-1] != EPOCH
            and (id is None or path[-1] == id)
            and (before is None or path[-1] < before)
        ]
        chosen.sort(key=itemgetter(-1, slice(None)), reverse=True)
        return chosen

    def known_metadata(self, thread: str | None, ns: str | None) -> KnownMetadata:
        """What is remembered of a namespace whose names were just read."""
        store = self._store
        # Followers may lag: what they give of a record need not be that of the fence.
        lags = isinstance(store, FindsNewer) and not store.finds_newer
        if thread is None or ns is None or lags:
            return KnownMetadata()
        return KnownMetadata(self._heads, Scope(self._partition.agent, thread, ns))

    async def newest(
        self, thread: str, ns: str, count: int
    ) -> tuple[Scope, Sequence[str]]:
        """A namespace and its newest ids, newest first, without a listing.

        What the newest message knows. Some of them may have been removed; then older
        ones that are there may be missing. Empty where it does not know enough.
        """
        scope = Scope(self._partition.agent, thread, ns)
        last = await self._partition.last_message(scope)
        if last is None or is_epoch(last):
            # A removal is under way, or was the last thing that happened.
            return scope, ()
        known = decode_record(last).known
        if count > len(known) >= KNOWN:
            return scope, ()
        return scope, known[:count]

    async def names_of_writes(
        self, thread: str | None, ns: str | None
    ) -> dict[Path, list[Path]]:
        """The ids of all writes there, parts included, by their record's id."""
        found: dict[Path, list[Path]] = {}
        for id in await self._store.ids(
            self._namespace, WRITES, within=self._prefix(thread, ns)
        ):
            path = path_of(id)
            found.setdefault(path[:4], []).append(path)
        return found

    def _prefix(self, thread: str | None, ns: str | None) -> Path:
        agent = self._partition.agent
        if thread is None:
            return (agent,)
        return (agent, thread) if ns is None else (agent, thread, ns)


def _overtaken(scope: Scope) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"checkpoints of thread {scope.thread!r} were removed faster than they could "
        "be read; read again"
    )
