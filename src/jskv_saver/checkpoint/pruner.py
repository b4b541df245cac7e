"""Removing checkpoints beside running writers: one protocol per namespace.

1. Read the fence, the names and the records, and choose the dead.
2. Put the epoch, fenced: it names the greatest survivors and the dead. From here on
   no writer builds on a dead checkpoint.
3. Purge the dead records, then their writes.
4. Read the survivors, and purge the parts that none refers to and that are older
   than the epoch.

A crash after 2 leaves whole checkpoints or unreferenced parts; the next prune of the
namespace finishes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from jskv_saver.checkpoint.layout import (
    EPOCH,
    PARTS,
    RECORDS,
    RUNS,
    THREAD_COLLECTIONS,
    WRITES,
    Record,
    Scope,
    encode_epoch,
    greatest,
)
from jskv_saver.checkpoint.partition import PAGE, Partition, scope_of
from jskv_saver.document.model import ANY, path_of
from jskv_saver.errors import VersionConflictError

Choose = Callable[[Mapping[str, Record]], set[str]]

_MOST_DEAD = 10_000
"""Ids that one epoch names at most, so that it fits a document."""
_CONCURRENT = 64


class Pruner:
    """Removes checkpoints of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace

    async def delete_thread(self, thread: str) -> None:
        """Erase a thread and all that belongs to it: one purge."""
        agent = self._partition.agent
        await self._store.delete(
            self._namespace, THREAD_COLLECTIONS, (agent, thread), subtree=True
        )
        self._partition.heads.forget_thread(agent, thread)

    async def keep_latest(self, thread: str) -> None:
        """Remove all but the latest checkpoint of each namespace of a thread.

        The ancestors that hold the history of its delta channels stay as well.
        """
        for scope in await self._scopes(thread):
            await self._prune(scope, all_but_latest)

    async def delete_runs(self, runs: Sequence[str]) -> None:
        """Remove the checkpoints of some runs, but for what survivors' deltas need."""
        wanted = frozenset(runs)
        found: dict[Scope, set[str]] = {}
        for run in sorted(wanted):
            within = (self._partition.agent, ANY, run)
            for id in await self._store.ids(self._namespace, RUNS, within=within):
                agent, thread, _, ns = path_of(id)
                found.setdefault(Scope(agent, thread, ns), set()).add(run)
        for scope, present in found.items():
            epoch = await self._prune(scope, of_runs(wanted))
            if epoch is None:
                continue
            kept = {r.run for r in (await self._records(scope)).values()}
            await _all(
                self._store.delete(self._namespace, RUNS, scope.run(run), below=epoch)
                for run in present - kept
            )

    async def _scopes(self, thread: str) -> list[Scope]:
        found = await self._store.ids(
            self._namespace, RECORDS, within=(self._partition.agent, thread)
        )
        return list(dict.fromkeys(scope_of(id) for id in found))

    async def _prune(self, scope: Scope, choose: Choose) -> int | None:
        """Prune a namespace; the version of the epoch, None if nothing was there."""
        version: int | None = None
        while True:
            last = await self._partition.last_message(scope)
            if last is None:
                return version
            records = await self._records(scope)
            _, epoch = await self._partition.records(scope, (), epoch=True)
            dead = choose(records)
            unfinished = epoch.dead if epoch else frozenset()
            dead |= unfinished & records.keys()
            now = sorted(dead)[:_MOST_DEAD]
            if not now and not unfinished:
                return last.version
            known = greatest(records.keys() - set(now))
            try:
                put = await self._store.put(
                    self._namespace,
                    RECORDS,
                    scope.record(EPOCH),
                    encode_epoch(known, now),
                    if_latest=(scope.prefix, last.version),
                )
            except VersionConflictError:
                await asyncio.sleep(0)
                continue
            version = put.version
            self._partition.heads.forget(scope)
            await self._remove_records(scope, {id: records[id] for id in now})
            await self._remove_writes(scope, {*now, *unfinished}, version)
            if len(dead) == len(now):
                await self._remove_parts(scope, version)
                return version

    async def _records(self, scope: Scope) -> dict[str, Record]:
        names = await self._partition.names(scope)
        records: dict[str, Record] = {}
        for at in range(0, len(names), PAGE):
            page, _ = await self._partition.records(scope, names[at : at + PAGE])
            records.update(page)
        return records

    async def _remove_records(self, scope: Scope, dead: Mapping[str, Record]) -> None:
        await _all(
            self._store.delete(
                self._namespace,
                RECORDS,
                scope.record(id),
                below=record.version + 1,
            )
            for id, record in dead.items()
        )

    async def _remove_writes(self, scope: Scope, dead: set[str], epoch: int) -> None:
        found = await self._store.ids(self._namespace, WRITES, within=scope.prefix)
        present = {path_of(id)[3] for id in found}
        await _all(
            self._store.delete(
                self._namespace, WRITES, scope.record(id), subtree=True, below=epoch
            )
            for id in present & dead
        )

    async def _remove_parts(self, scope: Scope, epoch: int) -> None:
        marked: set[bytes] = set()
        for record in (await self._records(scope)).values():
            marked |= record.digests()
        stored = await self._store.ids(self._namespace, PARTS, within=scope.prefix)
        await _all(
            self._store.delete(self._namespace, PARTS, id, below=epoch)
            for id in stored
            if bytes.fromhex(path_of(id)[-1]) not in marked
        )


def all_but_latest(records: Mapping[str, Record]) -> set[str]:
    """All but the greatest id and what its delta channels need."""
    if not records:
        return set()
    kept = max(records)
    return records.keys() - {kept} - needed(records, [kept])


def of_runs(runs: frozenset[str]) -> Choose:
    """The checkpoints of some runs, but for what the others' delta channels need."""

    def choose(records: Mapping[str, Record]) -> set[str]:
        dead = {id for id, record in records.items() if record.run in runs}
        return dead - needed(records, records.keys() - dead)

    return choose


def needed(records: Mapping[str, Record], kept: Iterable[str]) -> set[str]:
    """The ancestors that hold the history of the delta channels of some records."""
    found: set[str] = set()
    visited: set[tuple[str, str]] = set()
    for id in kept:
        for channel in records[id].deltas:
            parent = records[id].parent
            while parent and parent in records and (parent, channel) not in visited:
                visited.add((parent, channel))
                found.add(parent)
                if channel in records[parent].channels:
                    break
                parent = records[parent].parent
    return found


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Await calls, `_CONCURRENT` at a time; the first failure ends it."""
    waiting: list[Awaitable[None]] = []
    for call in calls:
        waiting.append(call)
        if len(waiting) == _CONCURRENT:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)
