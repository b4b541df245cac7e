"""Repair: indexes are mended, and what died half-way goes, beside writers."""

from __future__ import annotations

from collections.abc import Mapping

from jskv_saver.checkpoint.epochs import Epoch
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.checkpoint.layout import (
    PARTS,
    RECORDS,
    RUNS,
    THREADS,
    WRITES,
    Record,
    Scope,
)
from jskv_saver.checkpoint.patience import persist
from jskv_saver.document.model import Path, path_of
from jskv_saver.errors import VersionConflictError


class Mender(Expirer):
    """Repairs the threads of a partition."""

    async def repair(self, thread: str) -> None:
        """Mend the indexes of a thread, and remove what writers and removals left.

        Writes of a checkpoint that does not exist stay, unless it was removed: they
        may have come before it.
        """
        await super().repair(thread)
        scopes = await self._scopes(thread, RECORDS, PARTS, WRITES, THREADS)
        for scope in dict.fromkeys([*scopes, *await self._run_scopes(thread)]):
            await self._mend(scope)

    async def _run_scopes(self, thread: str) -> list[Scope]:
        within = self._prefix(thread)
        paths = map(
            path_of, await self._store.ids(self._namespace, RUNS, within=within)
        )
        return [Scope(agent, thread, ns) for agent, thread, _, ns in paths]

    async def _mend(self, scope: Scope) -> None:
        records = await self._records(scope)
        is_indexed, runs = await self._indexes(scope)
        present = {record.run for record in records.values() if record.run}
        missing: list[tuple[str, Path]] = [
            (RUNS, scope.run(run)) for run in sorted(present - runs)
        ]
        if records and not is_indexed:
            missing.append((THREADS, scope.prefix))
        for collection, path in missing:
            await self._add(scope, collection, path)
        if runs - present or not records:
            await self._clear(scope, runs - present)

    async def _indexes(self, scope: Scope) -> tuple[bool, set[str]]:
        """Whether the namespace is in the index, and the runs that are."""
        within = self._prefix(scope.thread)
        threads = await self._store.ids(self._namespace, THREADS, within=within)
        runs = await self._store.ids(self._namespace, RUNS, within=within)
        return scope.prefix in map(path_of, threads), {
            path[2] for path in map(path_of, runs) if path[3] == scope.ns
        }

    async def _add(self, scope: Scope, collection: str, path: Path) -> None:
        """Put an index entry, unless what it is about goes at this moment."""
        put = await self._store.put(self._namespace, collection, path, {})
        records = await self._records(scope)
        if collection == RUNS:
            is_right = any(record.run == path[2] for record in records.values())
        else:
            is_right = bool(records)
        if not is_right:
            await self._store.delete(
                self._namespace, collection, path, below=put.version + 1
            )

    async def _clear(self, scope: Scope, stale: set[str]) -> None:
        """Remove stale index entries of runs, and all of an empty namespace.

        Whoever is about to need them is refused by the epoch, and puts them again.
        """
        epoch = 0
        found: Mapping[str, Record] = {}

        async def announced() -> bool:
            nonlocal epoch, found
            _, before = await self._partition.records(scope, (), epoch=True)
            before = before.decided if before else None
            found = await self._records(scope)
            is_indexed, _ = await self._indexes(scope)
            if not stale and (found or bool(before) == is_indexed):
                # Nothing there, or open and empty as a removal of all leaves it.
                return True
            try:
                epoch = await self._say_again(scope, before)
            except VersionConflictError:
                return False
            return True

        await persist(announced)
        if not epoch:
            return
        await self._remove_runs(scope, stale, epoch)
        if found or await self._records(scope):
            await self._say_what_is_known(scope, epoch)
            return
        await self._store.delete(self._namespace, THREADS, scope.prefix, below=epoch)
        await self._forget(scope, epoch)

    async def _say_again(self, scope: Scope, before: Epoch | None) -> int:
        """Put an epoch that says the same: all fences fall."""
        dead = dict(before.dead) if before else {}
        since = {id: before.named_at(id) for id in dead} if before else {}
        return await self._announce(scope, dead, before.version if before else 0, since)
