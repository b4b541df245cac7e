"""Removing checkpoints beside running writers: one protocol per namespace.

1. Read the names and the records, and choose the dead.
2. Put an epoch that names them, in place of the epoch that was read. No writer builds
   on a dead checkpoint from here on: his fence is broken, and he reads the epoch.
3. Read the names again. What was put meanwhile and needs a dead checkpoint spares it:
   the epoch is put again without it.
4. Store by themselves the parts that the dead bring and survivors refer to; purge the
   dead records at the versions seen, then their writes.
5. Read the survivors, and purge the parts that none refers to and that are older
   than the epoch.
6. Put an epoch that names nobody but the greatest ids, unless somebody wrote since.

A crash after 2 leaves whole checkpoints or unreferenced parts; the next prune of the
namespace finishes it. A repair is a prune that chooses nobody, and that goes to work
also where only unreferenced parts are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from jskv_saver.checkpoint.bringers import parts_to_keep, store_apart
from jskv_saver.checkpoint.choosing import (
    Choose,
    children_first,
    needed,
    none,
    of_runs,
)
from jskv_saver.checkpoint.claims import Claim
from jskv_saver.checkpoint.epochs import Epoch, encode_epoch
from jskv_saver.checkpoint.layout import (
    EPOCH,
    PARTS,
    RECORDS,
    RUNS,
    WRITES,
    Record,
    Scope,
)
from jskv_saver.checkpoint.litter import Litter
from jskv_saver.checkpoint.openings import reopen
from jskv_saver.checkpoint.partition import Partition, scope_of
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.patience import gather_some, persist
from jskv_saver.checkpoint.reports import PrunedNamespace, bytes_of_records
from jskv_saver.checkpoint.senders import senders_among
from jskv_saver.checkpoint.told import with_removed
from jskv_saver.checkpoint.values import KNOWN, pack
from jskv_saver.document.model import ANY, path_of
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import VersionConflictError

_VERSIONS = 36
"""Bytes that an epoch needs for the versions of one of the dead, at most."""


class Pruner:
    """Removes checkpoints of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace
        self._litter = Litter(partition)

    async def delete_thread(self, thread: str) -> None:
        """Erase a thread and all that belongs to it: one purge, and a look."""
        thread_prefix = (self._partition.agent, thread)
        torn = True
        while torn:
            await self._store.delete(
                self._namespace, RESERVED_COLLECTIONS, thread_prefix, subtree=True
            )
            # The server looks at a put's fence and then stores it, and a purge may
            # come in between: what is stored then has lost its parts, and the epoch
            # that every namespace of a living thread has.
            left = await self._store.ids(self._namespace, RECORDS, within=thread_prefix)
            opened = {scope_of(id) for id in left if path_of(id)[-1] == EPOCH}
            torn = any(scope_of(id) not in opened for id in left)
        self._partition.heads.forget_thread(*thread_prefix)

    async def prune(
        self, thread: str, choose: Choose, ns: str | None = None, *, look: bool = False
    ) -> list[PrunedNamespace]:
        """Remove what is chosen in each namespace of a thread, or in one.

        Args:
            thread: The thread.
            choose: Chooses, never what a survivor needs.
            ns: The namespace; None: all.
            look: Only look what would go.
        """
        found: list[PrunedNamespace] = []
        for scope in await self._scopes(thread):
            if ns not in (None, scope.ns):
                continue
            before: dict[str, Record] = {}
            dead: set[str] = set()
            if look:
                claim = await self._claim(scope, choose, repair=False, look=True)
                before, dead = dict(claim.records), set(claim.dead)
            else:
                await self._prune(scope, choose, seen=before, gone=dead)
            kept = [record for id, record in before.items() if id not in dead]
            size = bytes_of_records(before.values()) - bytes_of_records(kept)
            if dead:
                found.append(
                    PrunedNamespace(
                        thread, scope.ns, tuple(sorted(dead)), len(kept), size
                    )
                )
        return found

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
            if epoch is not None:
                await self._remove_runs(scope, present, epoch)

    async def repair(self, thread: str) -> None:
        """Remove what writers and removals that died left; no checkpoint.

        Writes of a checkpoint that does not exist stay, unless it was removed: they
        may have come before it.
        """
        for scope in await self._scopes(thread, RECORDS, PARTS, WRITES):
            await self._prune(scope, none, repair=True)

    async def _scopes(self, thread: str, *collections: str) -> list[Scope]:
        found: dict[Scope, None] = {}
        for collection in collections or (RECORDS,):
            for id in await self._store.ids(
                self._namespace, collection, within=(self._partition.agent, thread)
            ):
                found[scope_of(id)] = None
        return list(found)

    async def _prune(
        self,
        scope: Scope,
        choose: Choose,
        *,
        repair: bool = False,
        seen: dict[str, Record] | None = None,
        gone: set[str] | None = None,
    ) -> int | None:
        """Prune a namespace; the version of the epoch, None if nothing was there.

        `seen` is given the records that were there, `gone` the ids of the removed.
        """
        while True:
            claim = await self._claim(scope, choose, repair)
            if seen is not None:
                seen.update(claim.records)
            if gone is not None:
                gone.update(claim.dead)
            if not claim.empty:
                await self._remove(scope, claim, repair)
            if not claim.rest:
                return claim.version

    async def _claim(
        self, scope: Scope, choose: Choose, repair: bool, *, look: bool = False
    ) -> Claim:
        """Choose the dead and name them in an epoch, or only look who they are."""
        claim = Claim(None)

        async def attempt() -> bool:
            nonlocal claim
            _, epoch = await self._partition.records(scope, (), epoch=True)
            claimed = epoch is not None and epoch.claimed is not None
            epoch = epoch.decided if epoch else None
            records = await self._records(scope)
            litter = repair and await self._litter.lies_about(scope, records)
            if not records and not epoch and not litter:
                return True
            if records and not epoch and not look:
                await reopen(self._partition, scope)
                return False
            before = epoch.version if epoch else 0
            lost = await self._lost(scope, epoch, records)
            unfinished = {
                id for id, record in records.items() if epoch and epoch.kills(record)
            }
            senders = await senders_among(self._partition, scope, records)
            # Who named them may have died before he saw that they are needed.
            spared = needed(records, records.keys() - unfinished, senders) & unfinished
            unfinished -= spared
            alive = {id: r for id, r in records.items() if id not in unfinished}
            chosen = choose(alive, senders)
            if look:
                going = {id: records[id] for id in chosen | unfinished}
                claim = Claim(before, going, records=records)
                return True
            if not (chosen or unfinished or lost or spared or litter or claimed):
                claim = Claim(before, records=records)
                return True
            # The lost have no record any more, but who dies now must not forget them.
            earlier = unfinished | lost
            # In this order: none that was named comes back to life, and whoever looks
            # for the rest has got on.
            in_order = [*sorted(unfinished), *sorted(chosen), *sorted(lost)]
            named = self._fitting(in_order)
            dead = {id: records[id] for id in named if id in records}
            rest = len(dead) < len(unfinished) + len(chosen)
            versions = dict(epoch.dead) if epoch else {}
            versions |= {id: record.version for id, record in dead.items()}
            versions = {id: versions[id] for id in named}
            # Who named them first spares what was written since.
            since = {id: epoch.named_at(id) for id in earlier if epoch}
            try:
                version = first = await self._announce(scope, versions, before, since)
                # Who came before the epoch may need what it names, or be one of the
                # dead, put again.
                stay = {id: r for id, r in records.items() if id not in dead}
                now = await self._records(scope, stay)
                seen = {id: record.version for id, record in records.items()}
                new = {id for id, r in now.items() if r.version != seen.get(id)}
                spared = needed(now, new, senders) & chosen
                going = dead
                if spared & dead.keys():
                    dead = {id: r for id, r in dead.items() if id not in spared}
                    versions = {id: v for id, v in versions.items() if id not in spared}
                    since = dict.fromkeys(dead, first) | since
                    version = await self._announce(scope, versions, version, since)
            except VersionConflictError:
                return False
            # Also of the lost, which an earlier prune removed before it died.
            bounds = {id: since.get(id, first) for id in dead.keys() | lost}
            for id in new & dead.keys():
                bounds[id] = min(bounds[id], now[id].version)
            kept = parts_to_keep(going, dead, now)
            claim = Claim(version, dead, bounds, kept, rest, litter, records)
            return True

        await persist(attempt)
        return claim

    async def _announce(
        self,
        scope: Scope,
        dead: Mapping[str, int],
        before: int,
        since: Mapping[str, int],
    ) -> int:
        """Put an epoch in the place of the one that was read."""
        # Not fenced, or a writer who never pauses would never let it through; so the
        # greatest ids are not known.
        since = {id: at for id, at in since.items() if id in dead}
        put = await self._store.put(
            self._namespace,
            RECORDS,
            scope.record(EPOCH),
            encode_epoch(None, dead, since),
            if_version=before,
        )
        self._partition.heads.forget(scope)
        return put.version

    async def _lost(
        self, scope: Scope, epoch: Epoch | None, records: Mapping[str, Record]
    ) -> set[str]:
        """The dead whose records are gone, but not their writes."""
        gone = epoch.dead.keys() - records.keys() if epoch else set[str]()
        return gone & await self._written(scope) if gone else set()

    async def _written(self, scope: Scope) -> set[str]:
        """The checkpoints that have writes, whether they exist or not."""
        found = await self._store.ids(self._namespace, WRITES, within=scope.prefix)
        return {path_of(id)[3] for id in found}

    def _fitting(self, dead: Sequence[str]) -> dict[str, None]:
        """As many of the dead as one epoch can name; one at least."""
        room = self._store.limits.data // 2
        fitting: dict[str, None] = {}
        for id in dead:
            room -= 2 * len(pack(id)) + _VERSIONS
            if room < 0 and fitting:
                break
            fitting[id] = None
        return fitting

    async def _remove(self, scope: Scope, claim: Claim, repair: bool) -> None:
        """Remove what an epoch names, then the parts that nothing refers to."""
        assert claim.version is not None
        await store_apart(self._partition, scope, claim.kept)
        await self._remove_records(scope, claim.dead)
        await self._remove_writes(scope, claim.bounds)
        await self._remove_parts(scope, claim.version)
        runs = {each.run for each in claim.dead.values() if each.run}
        await self._remove_runs(scope, runs, claim.version)
        if repair:
            await self._litter.remove_writes(scope, claim.version)
        await self._say_what_is_known(scope, claim.version, claim.dead)

    async def _say_what_is_known(
        self, scope: Scope, epoch: int, removed: Iterable[str] = ()
    ) -> None:
        """Put an epoch that names the greatest ids, unless somebody wrote since."""
        names = await self._partition.names(scope)
        with suppress(VersionConflictError):
            # If somebody wrote meanwhile, his document says what is known.
            await self._store.put(
                self._namespace,
                RECORDS,
                scope.record(EPOCH),
                with_removed(encode_epoch(names[: -KNOWN - 1 : -1]), removed),
                if_latest=(scope.prefix, epoch),
            )

    async def _records(
        self, scope: Scope, at_hand: Mapping[str, Record] | None = None
    ) -> dict[str, Record]:
        """All records of a namespace; those at hand are not read again."""
        records = dict(at_hand or {})
        while True:
            names = await self._partition.names(scope)
            missing = [id for id in names if id not in records]
            for at in range(0, len(missing), PAGE):
                page, _ = await self._partition.records(scope, missing[at : at + PAGE])
                records.update(page)
            # One that was removed before it was read may have a child by now that
            # the names do not tell, with what it took over from it.
            if all(id in records for id in names):
                return {id: records[id] for id in names}

    async def _remove_records(self, scope: Scope, dead: Mapping[str, Record]) -> None:
        for ids in children_first(dead):
            await gather_some(
                self._store.delete(
                    self._namespace,
                    RECORDS,
                    scope.record(id),
                    below=dead[id].version + 1,
                )
                for id in ids
            )

    async def _remove_writes(self, scope: Scope, bounds: Mapping[str, int]) -> None:
        present = await self._written(scope)
        await gather_some(
            self._store.delete(
                self._namespace,
                WRITES,
                scope.record(id),
                subtree=True,
                below=bounds[id],
            )
            for id in present & bounds.keys()
        )

    async def _remove_runs(self, scope: Scope, runs: set[str], epoch: int) -> None:
        """Remove the index entries of those of some runs that have no checkpoint."""
        if not runs:
            return
        kept = {record.run for record in (await self._records(scope)).values()}
        await gather_some(
            self._store.delete(self._namespace, RUNS, scope.run(run), below=epoch)
            for run in runs - kept
        )

    async def _remove_parts(self, scope: Scope, epoch: int) -> None:
        records = await self._records(scope)
        await gather_some(
            self._store.delete(self._namespace, PARTS, id, below=epoch)
            for id in await self._litter.parts(scope, records.values())
        )
