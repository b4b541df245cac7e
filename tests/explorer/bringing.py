"""The protocol of parts that records bring, broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jskv_saver.checkpoint import drafts, pruner
from jskv_saver.checkpoint.bringers import parts_to_keep, store_apart
from jskv_saver.checkpoint.layout import PARTS, RECORDS, Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import Parts
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.checkpoint.values import bytes_of
from jskv_saver.checkpoint.writer import Writer
from jskv_saver.document.model import Document, path_of


def nothing_kept_of_the_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pruner, "parts_to_keep", lambda *_: {})


def kept_for_those_of_before(patch: pytest.MonkeyPatch) -> None:
    """Who refers to the dead is decided on what was there before the epoch."""
    read = Pruner._records
    before: dict[str, Record] = {}

    async def records(self: Pruner, scope: Scope, at_hand: Any = None) -> Any:
        found = await read(self, scope, at_hand)
        if at_hand is None:
            before.clear()
            before.update(found)
        return found

    def kept(named: Any, dead: Any, now: Any) -> dict[bytes, bytes]:
        old = {id: each for id, each in now.items() if id in before}
        return parts_to_keep(named, dead, old)

    patch.setattr(Pruner, "_records", records)
    patch.setattr(pruner, "parts_to_keep", kept)


def kept_after_the_purge(patch: pytest.MonkeyPatch) -> None:
    remove = Pruner._remove_records
    waiting: list[Any] = []

    async def later(*what: Any) -> None:
        waiting[:] = what

    async def purge(self: Pruner, scope: Scope, dead: Any) -> None:
        await remove(self, scope, dead)
        await store_apart(*waiting)

    patch.setattr(pruner, "store_apart", later)
    patch.setattr(Pruner, "_remove_records", purge)


def kept_of_an_erased_thread(patch: pytest.MonkeyPatch) -> None:
    """What is stored after a delete stays."""

    async def store(partition: Partition, scope: Scope, parts: Any) -> None:
        writes = [(PARTS, scope.part(d), {"b": c}, None) for d, c in parts.items()]
        if writes:
            await partition.store.put_many(partition.namespace, writes, exact=False)

    patch.setattr(pruner, "store_apart", store)


def replaced_without_a_look(patch: pytest.MonkeyPatch) -> None:
    """Who puts a dead id again leaves it to others what that one brought."""
    original = Writer._store_checkpoint

    async def store(
        self: Writer, head: Any, base: Any, draft: Any, dead: Any, *more: Any
    ) -> Any:
        return await original(self, head, base, draft, None, *more)

    patch.setattr(Writer, "_store_checkpoint", store)


def greater_ids_referred_to(patch: pytest.MonkeyPatch) -> None:
    """Every id counts as greater than those that its parent refers to."""

    def greatest(id: str) -> bytes:
        return b"\xff" * 16 if bytes_of(id) else b""

    patch.setattr(drafts, "bytes_of", greatest)


def not_looked_for_apart(patch: pytest.MonkeyPatch) -> None:
    """Readers find parts only where the record says that they are."""
    patch.setattr(Parts, "look_apart", lambda self: False)

    async def read(self: Parts, store: Any, namespace: str) -> None:
        if self.reads:
            found = await store.get_many(namespace, self.reads)
            for (collection, _), document in found.items():
                self.take(collection, document)

    patch.setattr(Parts, "read", read)


def digests_not_compared(patch: pytest.MonkeyPatch) -> None:
    """What a record brings is what is looked for there, also in its second life."""
    original = Parts.take

    def take(self: Parts, collection: str, document: Document) -> None:
        original(self, collection, document)
        key = (collection, path_of(document.id))
        if collection == RECORDS and key in self._wanted and document.data.get("p"):
            scope, digests = self._wanted[key]
            for digest in digests:
                self._found[scope].setdefault(digest, document.data["p"])

    patch.setattr(Parts, "take", take)


def the_dead_are_whole(patch: pytest.MonkeyPatch) -> None:
    """A record whose end was announced counts as there, whatever it has lost."""

    async def is_gone(self: Partition, scope: Scope, record: Record) -> bool:
        found, _ = await self.records(scope, [record.id])
        return record.id not in found or found[record.id].version != record.version

    patch.setattr(Partition, "is_gone", is_gone)


BROUGHT: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "nothing kept of the dead": (nothing_kept_of_the_dead, "brought-prune"),
    "kept for those of before": (kept_for_those_of_before, "two-runs"),
    "kept after the purge": (kept_after_the_purge, "brought-prune"),
    "kept of an erased thread": (kept_of_an_erased_thread, "brought-delete"),
    "replaced without a look": (replaced_without_a_look, "brought-again"),
    "greater ids referred to": (greater_ids_referred_to, "brought-skewed"),
    "not looked for apart": (not_looked_for_apart, "brought-prune"),
    "digests not compared": (digests_not_compared, "brought-again"),
    "the dead are whole": (the_dead_are_whole, "brought-dead"),
}
