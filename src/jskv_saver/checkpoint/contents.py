"""The contents of records that were found: their values and their writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from langgraph.checkpoint.serde.types import TASKS

from jskv_saver.checkpoint.epochs import Epoch, decode_epoch
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
    scope_of,
)
from jskv_saver.checkpoint.parts import Parts
from jskv_saver.checkpoint.past import Past
from jskv_saver.checkpoint.values import Entry, Typed, join
from jskv_saver.checkpoint.writes import (
    PendingWrite,
    group_writes,
    incomplete,
    part_names,
)
from jskv_saver.document.model import Document, Path, Pattern, ReadKey, path_of

ATTEMPTS = 8
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


Writes: TypeAlias = Mapping[tuple[Scope, str], Sequence[PendingWrite]]
"""Pending writes by the checkpoint that they belong to."""
Ancestors: TypeAlias = dict[str, tuple[Record, Sequence[PendingWrite]]]
"""Records by id, each with its pending writes."""


class Contents:
    """Reads the contents of records of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace

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
        parts = Parts(self._partition.heads.parts)
        for scope, record in records:
            named = [part for part, _, _ in record.metadata.pieces() if part]
            if named:
                parts.at_hand(scope, record)
                parts.want(scope, record, named)
        await parts.read(self._store, self._namespace)
        result: list[Typed | None] = []
        for scope, record in records:
            try:
                content = join(record.metadata, record.inline, parts.of(scope))
            except KeyError as exc:
                if not await self._partition.is_gone(scope, record):
                    raise missing_part(scope, exc.args[0]) from exc
                result.append(None)
            else:
                result.append(Typed(record.metadata.kind, content))
        return result

    async def read_contents(
        self,
        records: Sequence[tuple[Scope, Record]],
        writes: Mapping[Path, Sequence[Path]] | None,
        at_hand: Writes | None = None,
        *,
        listed_late: bool = False,
    ) -> list[Loaded]:
        """Some records with their values and writes; removed ones are left out.

        Args:
            records: The records.
            writes: The ids of writes by record, where they were listed; else they are
                looked for, which suits a few records.
            at_hand: The writes, where they were read together with the records.
            listed_late: The ids of writes were listed after the records were read.
        """
        parts = Parts(self._partition.heads.parts)
        for scope, record in records:
            parts.at_hand(scope, record)
        # Without it its writes may be gone as well.
        once_more = at_hand is None and (writes is None or listed_late)
        reads: dict[tuple[str, Pattern], None] = {}
        for scope, record in records:
            parts.want(scope, record, record.digests())
            if at_hand is not None:
                continue
            if once_more:
                reads[RECORDS, scope.record(record.id)] = None
            for id in (record.id, record.parent if had_sends(record) else None):
                if id is None:
                    continue
                if writes is None:
                    reads.update(dict.fromkeys(scope.writes(id)))
                else:
                    found = writes.get(scope.record(id), ())
                    reads.update(dict.fromkeys((WRITES, path) for path in found))
        documents: list[Document] = []
        stored: Mapping[ReadKey, Document] = {}
        if together := [*reads, *parts.reads]:
            stored = await self._store.get_many(self._namespace, together)
            for (collection, _), document in stored.items():
                if collection == WRITES:
                    documents.append(document)
                else:
                    parts.take(collection, document)
            if parts.look_apart():
                await parts.read(self._store, self._namespace)
        grouped = await self._grouped(documents) if at_hand is None else at_hand
        result: list[Loaded] = []
        for scope, record in records:
            path = scope.record(record.id)
            if once_more:
                again = stored.get((RECORDS, path))
                if again is None or again.version != record.version:
                    continue
            elif writes and any(
                (WRITES, w) not in stored for w in writes.get(path, ())
            ):
                # Replaced by a later call, or gone with the record.
                if await self._partition.is_gone(scope, record):
                    continue
            try:
                result.append(loaded_from(scope, record, {}, parts.of(scope), grouped))
            except KeyError as exc:
                if not await self._partition.is_gone(scope, record):
                    raise missing_part(scope, exc.args[0]) from exc
        return result

    async def records_with_writes(
        self, scope: Scope, ids: Sequence[str], past: Past | None = None
    ) -> Ancestors:
        """Some records by id, each with its writes; missing ones are left out.

        Args:
            scope: Their namespace.
            ids: Their ids.
            past: What is remembered of it and proven; what is read is added.
        """
        result: Ancestors = {}
        reads: list[tuple[str, Pattern]] = []
        for id in ids:
            known = past.get(id) if past is not None else None
            if known is not None:
                result[id] = known
                continue
            reads += [(RECORDS, scope.record(id)), *scope.writes(id)]
        if not reads:
            return result
        since = 0 if past is None else past.since
        if past is not None:
            reads.append((RECORDS, scope.record(EPOCH)))
        found = await self._store.get_many(self._namespace, reads)
        records: dict[str, Record] = {}
        documents: list[Document] = []
        epoch: Epoch | None = None
        for (collection, _), document in found.items():
            if collection == WRITES:
                documents.append(document)
            elif is_epoch(document):
                epoch = decode_epoch(document)
            else:
                records[document.id[-1]] = decode_record(document)
        if past is not None and past.since == since and epoch is not None:
            # Of what an epoch names some writes may be gone already, and others about
            # to go: those of its first life, if it has a second one.
            alive = [r for r in records.values() if r.id not in epoch.dead]
            self._partition.remember(scope, past, alive, documents)
        grouped = await self._grouped(documents)
        for id, record in records.items():
            result[id] = record, grouped.get((scope, id), ())
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
        for attempt in range(ATTEMPTS):
            if not (torn := incomplete(by_path.values())):
                break
            # A delete took some parts of a call that is about to store them anew.
            await pause(attempt)
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
        named = {part for e in entries.values() for part, _, _ in e.pieces()}
        parts = await self._partition.parts(scope, record, named - {b""})
        try:
            return {
                channel: Typed(entry.kind, join(entry, record.inline, parts))
                for channel, entry in entries.items()
            }
        except KeyError as exc:
            raise missing_part(scope, exc.args[0]) from exc


async def pause(attempt: int) -> None:
    """Before another attempt, longer each time."""
    if attempt:
        await asyncio.sleep(0.001 * 2**attempt)


def loaded_from(
    scope: Scope,
    record: Record,
    at_hand: Mapping[str, Typed],
    parts: Mapping[bytes, bytes],
    writes: Writes,
) -> Loaded:
    """A record with its contents.

    Args:
        scope: Where it is.
        record: The record.
        at_hand: Channel values that need not be joined.
        parts: The parts that the others are made of.
        writes: Pending writes, by checkpoint.

    Raises:
        KeyError: A part is missing; its digest.
    """

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
