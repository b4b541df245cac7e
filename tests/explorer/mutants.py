"""The protocol, broken on purpose: each of these the explorer has to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.explorer.bringing import BROUGHT

from jskv_saver.checkpoint import choosing, pruner
from jskv_saver.checkpoint.epochs import Epoch
from jskv_saver.checkpoint.heads import Heads
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.layout import RECORDS, WRITES
from jskv_saver.checkpoint.openings import Openings
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.checkpoint.writer import Writer

Mutate = Callable[[pytest.MonkeyPatch], None]


class _Altered:
    """A store that others see differently."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _writer_on(patch: pytest.MonkeyPatch, altered: type[_Altered]) -> None:
    """Writers see the store altered."""
    made = Writer.__init__

    def init(self: Writer, partition: Partition, *more: Any) -> None:
        made(self, partition, *more)
        self._store = altered(partition.store)

    patch.setattr(Writer, "__init__", init)


def record_before_its_parts(patch: pytest.MonkeyPatch) -> None:
    class RecordFirst(_Altered):
        async def put_many(self, namespace: str, writes: Any, **how: Any) -> Any:
            *parts, whole = writes
            stored = await self._store.put_many(namespace, [whole, *parts], **how)
            return [*stored[1:], stored[0]]

    _writer_on(patch, RecordFirst)


def put_without_a_fence(patch: pytest.MonkeyPatch) -> None:
    class Unfenced(_Altered):
        async def put_many(self, namespace: str, writes: Any, **how: Any) -> Any:
            *parts, (name, id, data, condition) = writes
            if name == RECORDS:
                condition = None
            return await self._store.put_many(
                namespace, [*parts, (name, id, data, condition)], exact=True
            )

    _writer_on(patch, Unfenced)


def writes_without_compare_and_set(patch: pytest.MonkeyPatch) -> None:
    class Unconditional(_Altered):
        async def put_many(self, namespace: str, writes: Any, **how: Any) -> Any:
            unconditional = [
                (name, id, data, None if name == WRITES else condition)
                for name, id, data, condition in writes
            ]
            return await self._store.put_many(namespace, unconditional, **how)

    _writer_on(patch, Unconditional)


def parts_purged_at_any_age(patch: pytest.MonkeyPatch) -> None:
    """Without the bound by the epoch: also those that are about to be named."""
    original = Pruner._remove_parts

    async def remove(self: Pruner, scope: Any, epoch: int) -> None:
        await original(self, scope, 2**62)

    patch.setattr(Pruner, "_remove_parts", remove)


def memory_kept_after_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """A writer whose put was refused trusts the parts that it remembers."""
    forget = Heads.forget
    kept: dict[Any, Any] = {}

    def keep(self: Heads, scope: Any) -> None:
        head = self.get(scope)
        if head is not None and head.base is not None:
            kept[id(self), scope] = head.base
        forget(self, scope)

    base = Writer._base

    async def trusting(self: Writer, head: Any, draft: Any) -> Any:
        old = kept.get((id(self._heads), draft.scope))
        if old is not None and old.record.id == draft.parent:
            return old
        return await base(self, head, draft)

    patch.setattr(Heads, "forget", keep)
    patch.setattr(Writer, "_base", trusting)


def epoch_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A dead parent that is still there is as good as any."""
    patch.setattr(Epoch, "kills", lambda self, record: False)


def delta_ancestors_not_needed(patch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any) -> set[str]:
        return set()

    patch.setattr(choosing, "needed", nobody)
    patch.setattr(pruner, "needed", nobody)


def parents_first(patch: pytest.MonkeyPatch) -> None:
    """The dead are removed in an order that tears histories."""
    in_order = choosing.children_first

    def reverse(records: Any) -> list[list[str]]:
        return in_order(records)[::-1]

    patch.setattr(pruner, "children_first", reverse)


def no_epoch(patch: pytest.MonkeyPatch) -> None:
    """The dead are removed, but nobody is told."""

    original = Pruner._announce

    async def announce(self: Pruner, scope: Any, dead: Any, *rest: Any) -> int:
        if not dead:
            return await original(self, scope, dead, *rest)
        last = await self._partition.last_message(scope)
        return last.version + 1 if last else 1

    patch.setattr(Pruner, "_announce", announce)


def names_not_read_again(patch: pytest.MonkeyPatch) -> None:
    """What was put between the choice and the epoch spares nobody."""
    records = Pruner._records
    last: dict[int, Any] = {}

    async def once(self: Pruner, scope: Any, at_hand: Any = None) -> Any:
        if at_hand is None:
            last[id(self)] = await records(self, scope)
        return last[id(self)]

    patch.setattr(Pruner, "_records", once)


def survivors_read_before_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """Which parts are needed is decided on what was there before the epoch."""
    records, announce = Pruner._records, Pruner._announce
    before: dict[int, Any] = {}

    async def read_first(self: Pruner, scope: Any, *rest: Any) -> int:
        before[id(self)] = await records(self, scope)
        return await announce(self, scope, *rest)

    async def remove(self: Pruner, scope: Any, epoch: int) -> None:
        names = set(await self._partition.names(scope))
        alive = [r for r in before[id(self)].values() if r.id in names]
        for part in await self._litter.parts(scope, alive):
            await self._store.delete(self._namespace, "bl", part, below=epoch)

    patch.setattr(Pruner, "_announce", read_first)
    patch.setattr(Pruner, "_remove_parts", remove)


def dead_by_their_id_alone(patch: pytest.MonkeyPatch) -> None:
    """What was put again is removed as if it had not been."""
    patch.setattr(Epoch, "kills", lambda self, record: record.id in self.dead)
    announce = Pruner._announce

    async def with_the_last(self: Pruner, scope: Any, dead: Any, *rest: Any) -> int:
        _, epoch = await self._partition.records(scope, (), epoch=True)
        named = dict(epoch.dead) if epoch else {}
        return await announce(self, scope, {**named, **dead}, *rest)

    patch.setattr(Pruner, "_announce", with_the_last)


def dead_by_their_age(patch: pytest.MonkeyPatch) -> None:
    """What an epoch names, and is older: as it was before the explorer was there."""
    patch.setattr(
        Epoch,
        "kills",
        lambda self, record: record.id in self.dead and record.version < self.version,
    )


def records_purged_at_any_age(patch: pytest.MonkeyPatch) -> None:
    """A removal takes the second life of what it chose as well."""
    original = Pruner._remove_records

    async def remove(self: Pruner, scope: Any, dead: Any) -> None:
        young = {id: replace_version(record) for id, record in dead.items()}
        await original(self, scope, young)

    patch.setattr(Pruner, "_remove_records", remove)


def replace_version(record: Any) -> Any:
    """The record, younger than any."""
    if hasattr(record, "_replace"):
        return record._replace(version=2**61)
    return replace(record, version=2**61)


def writes_purged_at_any_age(patch: pytest.MonkeyPatch) -> None:
    """A removal takes the writes of a second life as well."""
    original = Pruner._remove_writes

    async def remove(self: Pruner, scope: Any, bounds: Any) -> None:
        await original(self, scope, dict.fromkeys(bounds, 2**61))

    patch.setattr(Pruner, "_remove_writes", remove)


def large_writes_not_looked_after(patch: pytest.MonkeyPatch) -> None:
    """A removal between a write's parts and its document goes unnoticed."""

    async def fine(*_: Any) -> bool:
        return True

    patch.setattr(Writer, "_keeps_parts", fine)


def opened_by_nothing(patch: pytest.MonkeyPatch) -> None:
    """The first put into a namespace is fenced on "nothing is there"."""

    async def none(*_: Any) -> int:
        return 0

    patch.setattr(Openings, "open", none)


def heads_not_moved(patch: pytest.MonkeyPatch) -> None:
    """Who takes a lease over leaves the heads as they are."""

    async def nothing(*_: Any) -> bool:
        return True

    patch.setattr(Holding, "_move_heads", nothing)


def no_guard(patch: pytest.MonkeyPatch) -> None:
    """Nothing tells the next holder that the last one may wake up."""

    async def taken(*_: Any) -> bool:
        return True

    patch.setattr(Holding, "_put_guard", taken)


def guard_gone_too_soon(patch: pytest.MonkeyPatch) -> None:
    """A put without an answer may arrive, but the guard is removed."""

    @contextmanager
    def putting(self: Holding) -> Iterator[None]:
        yield

    patch.setattr(Holding, "putting", putting)


def lease_looked_at_once(patch: pytest.MonkeyPatch) -> None:
    """A head that was read later is as good as the first one."""
    covers = Holding.covers

    async def once(self: Holding, scope: Any, fence: int) -> None:
        if scope in self._covered:
            self._covered[scope] = fence
        await covers(self, scope, fence)

    patch.setattr(Holding, "covers", once)


def lease_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Who has taken it trusts that he still has it when he reads his first head."""

    async def trusting(self: Holding, scope: Any, fence: int) -> None:
        self._cover(scope, fence)

    patch.setattr(Holding, "covers", trusting)


def lease_looked_at_before_the_head(patch: pytest.MonkeyPatch) -> None:
    """What is read after the look may be the head of the next holder."""
    put = Writer._put

    async def look_first(self: Writer, draft: Any, serde: Any, holding: Any) -> bool:
        if holding:
            await holding.check()
            # All heads that are met in this attempt pass for looked at.
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(holding, "covers", _looked_at)
                return await put(self, draft, serde, holding)
        return await put(self, draft, serde, holding)

    patch.setattr(Writer, "_put", look_first)


async def _looked_at(scope: Any, fence: int) -> None:
    return None


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "record before its parts": (record_before_its_parts, "two-prune"),
    "put without a fence": (put_without_a_fence, "two-prune"),
    "writes without compare-and-set": (writes_without_compare_and_set, "same-task"),
    "parts purged at any age": (parts_purged_at_any_age, "two-prune"),
    "memory kept after a refusal": (memory_kept_after_a_refusal, "two-runs"),
    "epoch not looked at": (epoch_not_looked_at, "two-runs"),
    "delta ancestors not needed": (delta_ancestors_not_needed, "delta-runs"),
    "parents first": (parents_first, "delta-order"),
    "no epoch": (no_epoch, "two-runs"),
    "names not read again": (names_not_read_again, "delta-prune"),
    "survivors read before the epoch": (survivors_read_before_the_epoch, "two-prune"),
    "dead by their id alone": (dead_by_their_id_alone, "again-repair"),
    "dead by their age": (dead_by_their_age, "again-twice"),
    "records purged at any age": (records_purged_at_any_age, "again-runs"),
    "writes purged at any age": (writes_purged_at_any_age, "again-runs"),
    "large writes not looked after": (large_writes_not_looked_after, "writes-delete"),
    "opened by nothing": (opened_by_nothing, "first-delete"),
    "heads not moved": (heads_not_moved, "lease-over"),
    "no guard": (no_guard, "lease-over"),
    "guard gone too soon": (guard_gone_too_soon, "lease-lost"),
    "lease looked at once": (lease_looked_at_once, "lease-look"),
    "lease not looked at": (lease_not_looked_at, "lease-first"),
    "lease looked at before the head": (lease_looked_at_before_the_head, "lease-over"),
    **BROUGHT,
}
