"""Storing checkpoints and pending writes: fenced, parts first, the whole last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Literal

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.conflicts import alike, writer_conflict
from jskv_saver.checkpoint.drafts import INLINE, Base, Draft, lay_out, value_bytes
from jskv_saver.checkpoint.heads import Head, with_metadata, with_name
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.layout import (
    PARTS,
    RECORDS,
    RUNS,
    THREADS,
    WRITES,
    Record,
    Scope,
    encode_record,
)
from jskv_saver.checkpoint.openings import Openings, reopen
from jskv_saver.checkpoint.packing import part_size_in
from jskv_saver.checkpoint.partition import Partition, missing_part
from jskv_saver.checkpoint.patience import persist
from jskv_saver.checkpoint.turns import Turns
from jskv_saver.checkpoint.values import Typed, greatest, join
from jskv_saver.checkpoint.writes import (
    PendingWrite,
    decode_writes,
    encode_writes,
    merge,
    part_names,
)
from jskv_saver.document.model import Write
from jskv_saver.errors import (
    DivergentCheckpointError,
    DocumentNotFoundError,
    LeaseLostError,
    StoreUnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)

ConflictPolicy = Literal["fork", "raise"]

_MOST_RUNS = 32
"""Runs whose index entry is remembered; more are written once more."""


class Writer:
    """Stores checkpoints and pending writes of a partition."""

    def __init__(self, partition: Partition, on_conflict: ConflictPolicy) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace
        self._heads = partition.heads
        self._on_conflict = on_conflict
        self._turns = Turns()
        self._openings = Openings(partition)

    # -- checkpoints -----------------------------------------------------------------

    async def put(
        self, draft: Draft, serde: SerializerProtocol, holding: Holding | None = None
    ) -> None:
        """Store a checkpoint, whole or not at all.

        Args:
            draft: The checkpoint.
            serde: Compares it, where one is stored under its id.
            holding: The lease under which it is put.

        Raises:
            LeaseLostError: The lease is lost.
            DivergentCheckpointError: Other content is stored under its id.
            WriterConflictError: With the policy `raise`, if the head was moved.
            UnknownOutcomeError: The answer was lost and the checkpoint is not there.
        """
        try:
            async with self._turns.take(draft.scope):
                await persist(lambda: self._put(draft, serde, holding))
        except UnknownOutcomeError as lost:
            self._heads.forget(draft.scope)
            # Never repeated: if it is there, it was stored; if not, it may still be.
            try:
                stored, _ = await self._look_up(draft, serde)
            except StoreUnavailableError:
                raise lost from None
            if not stored:
                raise

    async def _put(
        self, draft: Draft, serde: SerializerProtocol, holding: Holding | None
    ) -> bool:
        scope, heads = draft.scope, self._heads
        remembered = heads.get(scope)
        head = remembered or await self._partition.read_head(scope)
        if holding and head.fence:
            await holding.covers(scope, head.fence)
        dead: Record | None = None
        if draft.id <= head.greatest:
            # Not above the greatest: it may be there already.
            stored, dead = await self._look_up(draft, serde)
            if stored:
                return True
        if self._is_conflict(head, draft):
            heads.forget(scope)
            # What is remembered may be older than the reading of the parent.
            if remembered:
                return False
            raise writer_conflict(head, draft)
        try:
            base = await self._base(head, draft)
            if base and draft.is_behind(base):
                # It takes over what the parent has, and may not refer to it.
                own = base.record.channels.keys() - base.values.keys()
                rest = await self._partition.values(draft.scope, base.record, own)
                base = base._replace(values={**base.values, **rest})
            head = await self._store_checkpoint(head, base, draft, dead, holding)
        except LeaseLostError:
            raise
        except VersionConflictError:
            heads.forget(scope)
            return False
        except DocumentNotFoundError:
            heads.forget(scope)
            # It may be stored already, which a remembered head does not know.
            if remembered:
                return False
            raise
        heads.set(scope, head)
        heads.met(scope, draft.id, head.known[0])
        return True

    def _is_conflict(self, head: Head, draft: Draft) -> bool:
        if self._on_conflict == "fork" or draft.source != "loop" or draft.scope.ns:
            return False
        current = head.known[0] if head.known else None
        if current is not None and draft.id <= current:
            # A clock is behind: it would be stored, and never be the latest.
            return True
        if current == draft.parent:
            return False
        if draft.parent is not None:
            met = self._heads.head_when_met(draft.scope, draft.parent)
            if met is not None and met == current:
                return False
        base = head.base.record if head.base else None
        return not (base and base.id == current and draft.run and base.run == draft.run)

    async def _base(self, head: Head, draft: Draft) -> Base | None:
        """The parent that a draft may refer to, under the fence of `head`."""
        parent, scope = draft.parent, draft.scope
        if parent is None:
            return None
        if head.base and head.base.record.id == parent:
            return head.base
        # The fence of an empty namespace would not notice that the parent goes again.
        ids = [parent] if head.fence else []
        records, epoch = await self._partition.records(scope, ids, epoch=True)
        if head.fence and epoch is None:
            # What the parent refers to may have been deleted.
            await reopen(self._partition, scope)
            raise VersionConflictError("the namespace is open again")
        if epoch and parent in records and epoch.kills(records[parent]):
            records = {}
        if parent not in records:
            # A pruned thread's oldest checkpoints need no more than they have.
            if draft.deltas and not draft.is_copy:
                raise DocumentNotFoundError(
                    f"checkpoint {draft.id!r} of thread {scope.thread!r} keeps only "
                    f"changes of {list(draft.deltas)}, and its parent {parent!r} was "
                    "deleted: nothing was stored; start from a checkpoint that exists",
                    collection=RECORDS,
                    id=scope.record(parent),
                )
            return None
        record = records[parent]
        changed = [
            name
            for name in draft.values.keys() & record.channels.keys() & draft.changed
            if record.channels[name].length > INLINE
        ]
        return Base(record, await self._partition.values(scope, record, changed))

    async def _store_checkpoint(
        self,
        head: Head,
        base: Base | None,
        draft: Draft,
        dead: Record | None,
        holding: Holding | None,
    ) -> Head:
        scope, heads = draft.scope, self._heads
        naming = self._partition.naming(scope)
        part_size = part_size_in(self._store.limits)
        new, parts = lay_out(draft, base, head.known, part_size, naming)
        if dead:
            # Others may refer to the part that the replaced record brought.
            parts |= dead.brought
        fence = head.fence
        writes: list[Write] = []
        # Under a lease what is opened has to be looked at: see `Holding`.
        guess = None if fence or holding else self._openings.foreseen(parts)
        if guess:
            fence = guess
            writes.append(self._openings.write(scope))
        elif not fence:
            fence = await self._openings.open(scope)
            if holding:
                await holding.covers(scope, fence)
        if not head.known:
            writes.append((THREADS, scope.prefix, {}, None))
        runs = head.runs
        if draft.run and draft.run not in runs:
            runs = (runs if len(runs) < _MOST_RUNS else frozenset()) | {draft.run}
            writes.append((RUNS, scope.run(draft.run), {}, None))
        writes += [
            (PARTS, scope.part(name), {"b": content}, None)
            for name, content in parts.items()
        ]
        whole, guard = encode_record(new.record), (scope.prefix, fence)
        writes.append((RECORDS, scope.record(draft.id), whole, guard))
        try:
            with holding.putting() if holding else nullcontext():
                stored = await self._store.put_many(
                    self._namespace, writes, exact=False
                )
        except VersionConflictError:
            if guess:
                self._openings.was(right=False)
            raise
        if guess:
            self._openings.was(right=True)
        record = new.record._replace(version=stored[-1].version)
        if holding:
            holding.wrote(scope, record.version)
        for digest, content in (parts | record.brought).items():
            heads.parts.add(digest, content)
        known = greatest(head.known, record.id)
        names = with_name(head.names if head.fence else [], record.id)
        metadata = with_metadata(head.metadata, record.id, draft.metadata)
        if (past := head.past) is not None:
            past.forget(record.id)
        base = new._replace(record=record)
        return Head(record.version, known, base, runs, names, "", metadata, past)

    async def _look_up(
        self, draft: Draft, serde: SerializerProtocol
    ) -> tuple[bool, Record | None]:
        """Whether the checkpoint is there, with the same content.

        Not there, but about to be removed: its record.
        """
        scope = draft.scope
        records, epoch = await self._partition.records(scope, [draft.id], epoch=True)
        record = records.get(draft.id)
        if record is None:
            return False, None
        if epoch and epoch.kills(record):
            return False, record
        parts = await self._partition.parts(scope, record, record.digests())
        try:
            stored = value_bytes(record, parts)
            skeleton = join(record.skeleton, record.inline, parts)
            metadata = join(record.metadata, record.inline, parts)
        except KeyError as exc:
            if not await self._partition.is_gone(scope, record):
                raise missing_part(scope, exc.args[0]) from exc
            # Removed while it was compared; or what a deletion left of it.
            return await self._look_up(draft, serde) if epoch else (False, None)
        pairs = [
            (Typed(record.skeleton.kind, skeleton), draft.skeleton),
            (Typed(record.metadata.kind, metadata), draft.metadata),
            # What was assumed is unchanged since the parent, as in what is stored: the
            # parent and the versions are compared.
            *(
                (old, draft.values.get(name, old))
                for name, old in stored.items()
                if name not in draft.assumed
            ),
        ]
        if (
            record.parent == draft.parent
            and record.versions == draft.versions
            and stored.keys() == draft.values.keys()
            and all(alike(old, new, serde) for old, new in pairs)
        ):
            return True, None
        raise DivergentCheckpointError(
            f"checkpoint {draft.id!r} of thread {scope.thread!r} is stored already, "
            "with other content; a checkpoint never changes: give the new one an id "
            "of its own",
            checkpoint_id=draft.id,
        )

    # -- pending writes --------------------------------------------------------------

    async def put_writes(
        self,
        scope: Scope,
        id: str,
        task: str,
        new: list[PendingWrite],
        holding: Holding | None = None,
    ) -> None:
        """Store the writes of one call of a task, all or none.

        Raises:
            LeaseLostError: The lease is lost.
            UnknownOutcomeError: The answer was lost; the call may be repeated.
        """
        if not new:
            return
        if holding:
            await holding.confirm()
        stored: list[PendingWrite] = []
        version = 0

        async def attempt() -> bool:
            nonlocal stored, version
            merged = merge(stored, new)
            if version and merged == stored:
                return True
            try:
                return await self._store_writes(scope, id, task, merged, version)
            except VersionConflictError:
                version, stored = await self.task_writes(scope, id, task)
                return False

        await persist(attempt)

    async def _store_writes(
        self, scope: Scope, id: str, task: str, writes: list[PendingWrite], version: int
    ) -> bool:
        in_store = False
        while True:
            encoded = encode_writes(writes, part_size_in(self._store.limits))
            parts: list[Write] = [
                (WRITES, scope.task_part(id, task, name), {"b": content}, None)
                for name, content in encoded.parts.items()
            ]
            whole: Write = (WRITES, scope.task(id, task), encoded.document, version)
            try:
                stored = await self._store.put_many(
                    self._namespace, [*parts, whole], exact=False
                )
                in_store = True
                version = stored[-1].version
                if not parts or await self._keeps_parts(scope, parts):
                    return True
            except StoreUnavailableError as exc:
                if in_store:
                    raise UnknownOutcomeError(
                        f"the writes of task {task!r} were stored, but not looked at "
                        f"afterwards: a removal may have met them ({exc})"
                    ) from exc
                raise

    async def _keeps_parts(self, scope: Scope, parts: Sequence[Write]) -> bool:
        """Whether no removal came between the parts and the document that names them.

        A delete took the parts with it. A prune takes, sooner or later, what is older
        than its epoch: parts that are must be stored again, younger, for the document
        stays.
        """
        found, epoch = await asyncio.gather(
            self._store.get_many(self._namespace, [(WRITES, p[1]) for p in parts]),
            self._partition.epoch_version(scope),
        )
        if len(found) < len(parts):
            return False
        return epoch < min(part.version for part in found.values())

    async def task_writes(
        self, scope: Scope, id: str, task: str
    ) -> tuple[int, list[PendingWrite]]:
        """The stored writes of a task, and their version; 0 if there are none."""
        path = scope.task(id, task)
        found = await self._store.get_many(self._namespace, [(WRITES, path)])
        document = found.get((WRITES, path))
        if document is None:
            return 0, []
        names = part_names(document)
        parts = await self._store.get_many(
            self._namespace, [(WRITES, (*path, name)) for name in names]
        )
        if len(parts) < len(names):
            # Left by a delete in between: nothing refers to it, write it anew.
            return document.version, []
        by_name = {part.id[-1]: part for part in parts.values()}
        return document.version, decode_writes(document, by_name)
