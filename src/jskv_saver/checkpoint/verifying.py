"""Looking at all that is stored of threads: what is damaged, missing or left over.

Nothing is deserialised and nothing is written. A thread is looked at beside its
writers: what is found is looked for again after a moment, and counts if it is still so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from jskv_saver.checkpoint.admissions import ADMISSIONS, decode_admission
from jskv_saver.checkpoint.epochs import Epoch, decode_epoch
from jskv_saver.checkpoint.holding import LEASES
from jskv_saver.checkpoint.layout import (
    EPOCH,
    PARTS,
    RECORDS,
    RUNS,
    THREADS,
    WRITES,
    Record,
    Scope,
    decode_record,
    key_of,
)
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pins import PINS
from jskv_saver.checkpoint.values import uuid_of
from jskv_saver.checkpoint.writes import decode_writes, part_names
from jskv_saver.document.findings import Finding, Kind, settled
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

_PAGE = 64
_SEGMENTS = {
    RECORDS: (4,),
    PARTS: (4,),
    WRITES: (5, 6),
    THREADS: (3,),
    RUNS: (4,),
    ADMISSIONS: (3,),
    PINS: (3,),
    LEASES: (3,),
}
_TASK = 5


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        findings: What is not as it should be, sorted.
        threads: How many threads were looked at.
        checkpoints: How many checkpoints they have.
        waiting: How many documents of pending writes belong to no checkpoint (yet):
            they may come before it. No finding.
    """

    findings: tuple[Finding, ...]
    threads: int
    checkpoints: int
    waiting: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(slots=True)
class _Space:
    """What is stored of one checkpoint namespace."""

    records: dict[str, Record] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    epoch: Epoch | None = None
    has_epoch: bool = False
    is_indexed: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)


class Verifier:
    """Looks at the threads of a partition.

    Args:
        partition: The partition.
        settle: Seconds for which something must be wrong to be found.
    """

    def __init__(self, partition: Partition, settle: float) -> None:
        self._partition = partition
        self._settle = settle

    async def threads(self) -> list[str]:
        """All threads of which anything is stored, sorted."""
        store, agent = self._partition.store, self._partition.agent
        lists = await asyncio.gather(
            *(
                store.ids(self._partition.namespace, name, within=(agent,))
                for name in RESERVED_COLLECTIONS
            )
        )
        return sorted({path_of(id)[1] for ids in lists for id in ids})

    async def verify(
        self,
        threads: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> VerifyReport:
        """Look at some threads."""
        findings: list[Finding] = []
        checkpoints = waiting = 0
        for done, thread in enumerate(threads, 1):
            view = _View(self._partition, thread)
            findings += await settled(view.look, self._settle, asyncio.sleep)
            checkpoints += view.checkpoints
            waiting += view.waiting
            if on_progress is not None:
                on_progress(done, len(threads))
        return VerifyReport(tuple(sorted(findings)), len(threads), checkpoints, waiting)


class _View:
    """Looks at one thread."""

    def __init__(self, partition: Partition, thread: str) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace
        self._within = (partition.agent, thread)
        self.checkpoints = self.waiting = 0
        self._found: list[Finding] = []
        self._spaces: dict[Scope, _Space] = {}

    async def look(self) -> list[Finding]:
        """Look at everything once."""
        self._found, self._spaces = [], {}
        await asyncio.gather(*map(self._look_beside, (ADMISSIONS, PINS, LEASES)))
        # Records last: what they refer to is older, and is listed before it can go.
        parts, writes, runs, threads, records = [
            await self._names(name) for name in (PARTS, WRITES, RUNS, THREADS, RECORDS)
        ]
        for name, paths in ((THREADS, threads), (RUNS, runs)):
            async for path, _ in self._read(name, paths):
                if name == THREADS:
                    self._space(path).is_indexed = True
                else:
                    space = self._space((*path[:2], path[3]))
                    space.runs.add(path[2])
        await self._read_records(records)
        await self._read_parts(parts)
        await self._look_at_writes(writes)
        for scope, space in self._spaces.items():
            self._look_at_records(scope, space)
            self._look_at_indexes(scope, space)
        self.checkpoints = sum(len(each.records) for each in self._spaces.values())
        return self._found

    async def _look_beside(self, collection: str) -> None:
        """What belongs to no checkpoint: each is whole by itself."""
        names = await self._names(collection)
        async for path, document in self._read(collection, names):
            if collection == ADMISSIONS:
                try:
                    decode_admission(document)
                except CorruptDocumentError as exc:
                    self._damaged(collection, path, exc)

    async def _names(self, collection: str) -> list[Path]:
        found: list[Path] = []
        ids = await self._store.ids(self._namespace, collection, within=self._within)
        for path in map(path_of, ids):
            if len(path) in _SEGMENTS[collection]:
                found.append(path)
            else:
                self._add("foreign", collection, path, "is no key of this package")
        return found

    async def _read(
        self, collection: str, paths: Iterable[Path]
    ) -> AsyncIterator[tuple[Path, Document]]:
        """Documents by path; one that is damaged is found, missing ones left out."""
        wanted = list(paths)
        pages = [wanted[at : at + _PAGE] for at in range(0, len(wanted), _PAGE)][::-1]
        while pages:
            page = pages.pop()
            try:
                found = await self._store.get_many(
                    self._namespace, [(collection, path) for path in page]
                )
            except (CorruptDocumentError, UnsupportedFormatError) as exc:
                if len(page) == 1:
                    self._damaged(collection, page[0], exc)
                else:
                    # One of them: the others are read all the same.
                    half = len(page) // 2
                    pages += [page[half:], page[:half]]
                continue
            for document in found.values():
                yield path_of(document.id), document

    async def _read_records(self, paths: Sequence[Path]) -> None:
        async for path, document in self._read(RECORDS, paths):
            space = self._space(path)
            try:
                if path[-1] == EPOCH:
                    space.epoch = decode_epoch(document)
                else:
                    space.records[path[-1]] = decode_record(document)
            except CorruptDocumentError as exc:
                self._damaged(RECORDS, path, exc)
        for path in paths:
            space = self._space(path)
            if path[-1] == EPOCH:
                space.has_epoch = True
            elif path[-1] not in space.records:
                space.unread.add(path[-1])

    async def _read_parts(self, paths: Sequence[Path]) -> None:
        for path in paths:
            # Listed, and maybe damaged.
            self._space(path).parts[path[-1]] = -1
        async for path, document in self._read(PARTS, paths):
            content = document.data.get("b")
            scope = Scope(*path[:3])
            if not isinstance(content, bytes):
                self._add("corrupt", PARTS, path, "is no part of a value")
            elif not self._partition.fits(scope, path[-1], content):
                self._add("wrong-part", PARTS, path, "has not the content of its name")
            else:
                self._space(path).parts[path[-1]] = len(content)

    async def _look_at_writes(self, paths: Sequence[Path]) -> None:
        self.waiting = 0
        tasks = [path for path in paths if len(path) == _TASK]
        pieces = {path for path in paths if len(path) > _TASK}
        named: set[Path] = set()
        unread = set(tasks)
        async for path, document in self._read(WRITES, tasks):
            unread.discard(path)
            space = self._space(path)
            if path[3] not in space.records and path[3] not in space.unread:
                self.waiting += 1
            try:
                own = [(*path, name) for name in part_names(document)]
                named.update(own)
                missing = [each for each in own if each not in pieces]
                if missing:
                    self._missing_writes(path, missing, space)
                    continue
                read = {each[-1]: doc async for each, doc in self._read(WRITES, own)}
                if len(read) == len(own):
                    decode_writes(document, read)
            except CorruptDocumentError as exc:
                self._damaged(WRITES, path, exc)
        for path in sorted(pieces - named):
            if path[:_TASK] not in unread:
                self._add("unreachable", WRITES, path, "is named by no writes")

    def _missing_writes(
        self, path: Path, missing: Sequence[Path], space: _Space
    ) -> None:
        if path[3] in space.records:
            for each in missing:
                self._add("missing-part", WRITES, each, "is needed and not stored")
        else:
            text = "lacks a part, and so is of no use"
            self._add("unreachable", WRITES, path, text)

    def _look_at_records(self, scope: Scope, space: _Space) -> None:
        referred: set[str] = set()
        if space.epoch and space.epoch.claimed is not None:
            text = "was to expire, and that is neither done nor taken back"
            self._add("unfinished", RECORDS, scope.record(EPOCH), text)
        for record in space.records.values():
            path = scope.record(record.id)
            if space.epoch and space.epoch.decided.kills(record):
                self._add("unfinished", RECORDS, path, "was to be removed, and is not")
            extents: dict[bytes, int] = {}
            for entry in record.entries():
                for part, offset, length in entry.pieces():
                    extents[part] = max(extents.get(part, 0), offset + length)
            referred.update(part.hex() for part in extents)
            if extents.pop(b"", 0) > len(record.inline):
                self._add("corrupt", RECORDS, path, "refers to more than it has")
            for digest, own in record.brought.items():
                if not self._partition.fits(scope, digest.hex(), own):
                    text = "brings a part that has not the content of its name"
                    self._add("corrupt", RECORDS, path, text)
            located = record.located
            for part, extent in extents.items():
                part_path = scope.part(part)
                size = _size_of(space, part, located.get(part))
                if size is None:
                    text = f"is needed by checkpoint {record.id!r}, and is not stored"
                    self._add("missing-part", PARTS, part_path, text)
                elif 0 <= size < extent:
                    text = f"is shorter than checkpoint {record.id!r} needs"
                    self._add("wrong-part", PARTS, part_path, text)
            if gap := _gap(space, record):
                text = f"keeps changes only, and its ancestor {gap!r} is not stored"
                self._add("broken-history", RECORDS, path, text)
        if space.unread:
            # What these refer to is not known.
            return
        for name in sorted(space.parts.keys() - referred):
            path = (*scope.prefix, name)
            self._add("unreachable", PARTS, path, "is needed by no checkpoint")

    def _look_at_indexes(self, scope: Scope, space: _Space) -> None:
        there = bool(space.records or space.unread)
        if there and not space.is_indexed:
            self._add("missing-index", THREADS, scope.prefix, "is not there")
        if not there and space.is_indexed and not space.has_epoch:
            text = "names a thread that has no checkpoint"
            self._add("stale-index", THREADS, scope.prefix, text)
        if not there and space.has_epoch and not space.is_indexed:
            text = "opens a checkpoint namespace that is empty"
            self._add("empty", RECORDS, scope.record(EPOCH), text)
        runs = {record.run for record in space.records.values() if record.run}
        for run in sorted(runs - space.runs):
            self._add("missing-index", RUNS, scope.run(run), "is not there")
        if not space.unread:
            for run in sorted(space.runs - runs):
                text = "names a run that has no checkpoint"
                self._add("stale-index", RUNS, scope.run(run), text)

    def _space(self, path: Sequence[str]) -> _Space:
        return self._spaces.setdefault(Scope(*path[:3]), _Space())

    def _damaged(self, collection: str, path: Path, error: Exception) -> None:
        unknown = isinstance(error, UnsupportedFormatError)
        kind: Kind = "unsupported-format" if unknown else "corrupt"
        self._add(kind, collection, path, str(error))

    def _add(self, kind: Kind, collection: str, path: Path, text: str) -> None:
        key = key_of(collection, path)
        self._found.append(Finding(self._namespace, key, kind, text))


def _size_of(space: _Space, part: bytes, bringer: bytes | None) -> int | None:
    """The bytes of a part, in the record that brings it or apart; None: not stored.

    Below 0 where it cannot be read.
    """
    if bringer is not None:
        id = uuid_of(bringer)
        if id in space.unread:
            return -1
        if id in space.records and part in space.records[id].brought:
            return len(space.records[id].own)
    return space.parts.get(part.hex())


def _gap(space: _Space, record: Record) -> str | None:
    """The first ancestor that a record's delta channels need and that is not there."""
    for channel in record.deltas:
        at, met = record, {record.id}
        while at.parent and at.parent not in met:
            met.add(at.parent)
            if at.parent not in space.records:
                return at.parent
            at = space.records[at.parent]
            if channel in at.channels:
                break
    return None
