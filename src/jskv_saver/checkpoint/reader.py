"""Reading checkpoints: the latest, by id, or many, each in few round trips."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.serde.types import TASKS

from jskv_saver.checkpoint.drafts import Base
from jskv_saver.checkpoint.heads import Head
from jskv_saver.checkpoint.layout import (
    EPOCH,
    PARTS,
    RECORDS,
    WRITES,
    Record,
    Scope,
    decode_epoch,
    decode_record,
    had_sends,
    is_epoch,
)
from jskv_saver.checkpoint.partition import (
    Partition,
    missing_part,
    part_of,
    scope_of,
)
from jskv_saver.checkpoint.values import (
    KNOWN,
    Entry,
    Typed,
    join,
)
from jskv_saver.checkpoint.writes import (
    PendingWrite,
    group_writes,
    incomplete,
    part_names,
)
from jskv_saver.document.model import Document, Path, Pattern, path_of
from jskv_saver.errors import StoreUnavailableError

_ATTEMPTS = 8
"""How often a read starts again because what it was reading was deleted."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checkpoint that was read; its values are not deserialised.

    Attributes:
        scope: Where it is.
        record: Its record.
        skeleton: The checkpoint without channel values and versions.
        metadata: Its metadata.
        values: Its channel values.
        writes: Its pending writes, in LangGraph's order.
        sends: For a checkpoint of a format before 4, which kept them as writes of
            its parent: the tasks that were sent.
    """

    scope: Scope
    record: Record
    skeleton: Typed
    metadata: Typed
    values: Mapping[str, Typed]
    writes: Sequence[PendingWrite]
    sends: Sequence[Typed] = ()


class Reader:
    """Reads checkpoints of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace
        self._heads = partition.heads

    async def latest(self, scope: Scope) -> Loaded | None:
        """The checkpoint with the greatest id, or None."""
        for attempt in range(_ATTEMPTS):
            await _pause(attempt)
            last = await self._partition.last_message(scope)
            if last is None:
                return None
            if is_epoch(last):
                record = None
                known = await self._partition.known_of(scope, decode_epoch(last))
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
                    self._remember(loaded, last.version, known)
                return loaded
        raise _overtaken(scope)

    async def by_id(self, scope: Scope, id: str) -> Loaded | None:
        """The checkpoint with an id, or None."""
        key = (RECORDS, scope.record(id))
        for attempt in range(_ATTEMPTS):
            await _pause(attempt)
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
        raise _overtaken(scope)

    def _remember(self, loaded: Loaded, fence: int, known: tuple[str, ...]) -> None:
        record, scope = loaded.record, loaded.scope
        runs = frozenset((record.run,) if record.run else ())
        head = self._heads.get(scope)
        names = None
        if head and head.fence == fence:
            runs |= head.runs
            names = head.names
        base = Base(record, loaded.values)
        self._heads.set(scope, Head(fence, known, base, runs, names))
        self._heads.met(scope, record.id, record.id)

    async def _with_contents(
        self,
        scope: Scope,
        record: Record,
        writes: Iterable[Document] | None = None,
    ) -> Loaded | None:
        """A record with its values and writes; None if it was removed meanwhile."""
        at_hand = self._heads.base(scope, record.id)
        if at_hand is None or at_hand.record.version != record.version:
            at_hand = None
        values = at_hand.values if at_hand else {}
        digests = {
            run.part
            for entry in (
                record.skeleton,
                record.metadata,
                *(e for name, e in record.channels.items() if name not in values),
            )
            for run in entry.runs
            if run.part
        }
        reads: list[tuple[str, Pattern]] = [
            (PARTS, scope.part(digest)) for digest in digests
        ]
        if writes is None:
            reads += scope.writes(record.id)
        if had_sends(record):
            reads += scope.writes(record.parent or "")
        parts: dict[bytes, bytes] = {}
        documents: list[Document] = list(writes or ())
        if reads:
            found = await self._store.get_many(self._namespace, reads)
            for (collection, _), document in found.items():
                if collection == PARTS:
                    digest, content = part_of(document)
                    parts[digest] = content
                else:
                    documents.append(document)
        grouped = await self._grouped(documents)
        try:
            return _loaded(scope, record, values, parts, grouped)
        except KeyError as exc:
            if await self._is_gone(scope, record):
                return None
            raise missing_part(scope, exc.args[0]) from exc

    async def _is_gone(self, scope: Scope, record: Record) -> bool:
        found, _ = await self._partition.records(scope, [record.id])
        return record.id not in found or found[record.id].version != record.version

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
        chosen.sort(key=lambda path: (path[-1], path), reverse=True)
        return chosen

    async def newest(self, thread: str, ns: str, count: int) -> list[Path]:
        """The ids of a namespace's newest records, newest first, without a listing.

        What the newest message knows. Some of them may have been removed; then older
        ones that are there may be missing. Empty where it does not know enough.
        """
        scope = Scope(self._partition.agent, thread, ns)
        head = await self._partition.read_head(scope)
        if count > len(head.known) and len(head.known) >= KNOWN:
            return []
        return [scope.record(id) for id in head.known[:count]]

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

    async def read_records(self, paths: Sequence[Path]) -> list[tuple[Scope, Record]]:
        """The records with some ids, in their order; missing ones are left out."""
        found = await self._store.get_many(
            self._namespace, [(RECORDS, path) for path in paths]
        )
        return [
            (scope_of(path), decode_record(found[RECORDS, path]))
            for path in paths
            if (RECORDS, path) in found
        ]

    async def read_metadata(
        self, records: Sequence[tuple[Scope, Record]]
    ) -> list[Typed | None]:
        """The metadata of some records; None where it is gone."""
        parts = await self._parts(
            (scope, run.part)
            for scope, record in records
            for run in record.metadata.runs
            if run.part
        )
        result: list[Typed | None] = []
        for scope, record in records:
            try:
                content = join(record.metadata, record.inline, parts.get(scope, {}))
            except KeyError as exc:
                if not await self._is_gone(scope, record):
                    raise missing_part(scope, exc.args[0]) from exc
                result.append(None)
            else:
                result.append(Typed(record.metadata.kind, content))
        return result

    async def read_contents(
        self,
        records: Sequence[tuple[Scope, Record]],
        writes: Mapping[Path, Sequence[Path]] | None,
    ) -> list[Loaded]:
        """Some records with their values and writes; removed ones are left out.

        Args:
            records: The records.
            writes: The ids of writes by record, where they are at hand; else they are
                looked for, which suits a few records.
        """
        reads: dict[tuple[str, Pattern], None] = {}
        for scope, record in records:
            for digest in record.digests():
                reads[PARTS, scope.part(digest)] = None
            for id in (record.id, record.parent if had_sends(record) else None):
                if id is None:
                    continue
                if writes is None:
                    reads.update(dict.fromkeys(scope.writes(id)))
                else:
                    found = writes.get(scope.record(id), ())
                    reads.update(dict.fromkeys((WRITES, path) for path in found))
        parts: dict[Scope, dict[bytes, bytes]] = {}
        documents: list[Document] = []
        if reads:
            stored = await self._store.get_many(self._namespace, list(reads))
            for (collection, _), document in stored.items():
                if collection == PARTS:
                    digest, content = part_of(document)
                    parts.setdefault(scope_of(document.id), {})[digest] = content
                else:
                    documents.append(document)
        grouped = await self._grouped(documents)
        result: list[Loaded] = []
        for scope, record in records:
            try:
                result.append(_loaded(scope, record, {}, parts.get(scope, {}), grouped))
            except KeyError as exc:
                if not await self._is_gone(scope, record):
                    raise missing_part(scope, exc.args[0]) from exc
        return result

    async def read_writes(
        self, paths: Sequence[Path]
    ) -> dict[tuple[Scope, str], list[PendingWrite]]:
        """The writes in some documents, parts included, by checkpoint, in order."""
        if not paths:
            return {}
        found = await self._store.get_many(
            self._namespace, [(WRITES, path) for path in paths]
        )
        return await self._grouped(found.values())

    async def _grouped(
        self, documents: Iterable[Document]
    ) -> dict[tuple[Scope, str], list[PendingWrite]]:
        """Writes by checkpoint; what was replaced while it was read is read again."""
        by_path = {path_of(document.id): document for document in documents}
        for attempt in range(_ATTEMPTS):
            if not (torn := incomplete(by_path.values())):
                break
            # A delete took some parts of a call that is about to store them anew.
            await _pause(attempt)
            reads: list[tuple[str, Pattern]] = []
            for path in torn:
                names = part_names(by_path.pop(path))
                reads += [(WRITES, path), *((WRITES, (*path, n)) for n in names)]
            found = await self._store.get_many(self._namespace, reads)
            by_path |= {path_of(document.id): document for document in found.values()}
        return group_writes(by_path.values())

    async def read_values(
        self, scope: Scope, record: Record, channels: Iterable[str]
    ) -> dict[str, Typed]:
        """Some channel values of a record."""
        entries = {channel: record.channels[channel] for channel in channels}
        parts = await self._partition.parts(
            scope,
            {run.part for entry in entries.values() for run in entry.runs} - {b""},
        )
        try:
            return {
                channel: Typed(entry.kind, join(entry, record.inline, parts))
                for channel, entry in entries.items()
            }
        except KeyError as exc:
            raise missing_part(scope, exc.args[0]) from exc

    async def _parts(
        self, wanted: Iterable[tuple[Scope, bytes]]
    ) -> dict[Scope, dict[bytes, bytes]]:
        reads = [(PARTS, scope.part(digest)) for scope, digest in dict.fromkeys(wanted)]
        parts: dict[Scope, dict[bytes, bytes]] = {}
        if reads:
            found = await self._store.get_many(self._namespace, reads)
            for document in found.values():
                digest, content = part_of(document)
                parts.setdefault(scope_of(document.id), {})[digest] = content
        return parts


async def _pause(attempt: int) -> None:
    """Before another attempt, longer each time."""
    if attempt:
        await asyncio.sleep(0.001 * 2**attempt)


def _overtaken(scope: Scope) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"checkpoints of thread {scope.thread!r} were removed faster than they could "
        "be read; read again"
    )


def _loaded(
    scope: Scope,
    record: Record,
    at_hand: Mapping[str, Typed],
    parts: Mapping[bytes, bytes],
    writes: Mapping[tuple[Scope, str], Sequence[PendingWrite]],
) -> Loaded:
    def typed(entry: Entry) -> Typed:
        return Typed(entry.kind, join(entry, record.inline, parts))

    sends: list[Typed] = []
    if had_sends(record):
        sends = [
            write.value
            for write in writes.get((scope, record.parent or ""), ())
            if write.channel == TASKS
        ]
    return Loaded(
        scope=scope,
        record=record,
        skeleton=typed(record.skeleton),
        metadata=typed(record.metadata),
        values={
            name: at_hand[name] if name in at_hand else typed(entry)
            for name, entry in record.channels.items()
        },
        writes=writes.get((scope, record.id), ()),
        sends=sends,
    )
