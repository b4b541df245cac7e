"""Opening a checkpoint namespace: its first message, which all others are fenced on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from jskv_saver.checkpoint.epochs import encode_epoch
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, RUNS, THREADS, Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.document.model import Write
from jskv_saver.document.port import ForeseesVersions
from jskv_saver.errors import VersionConflictError

MOST_FORESEEN = 65_536
"""Bytes of parts above which a wrong guess would cost more than a round trip."""
_MOST_SKIPPED = 64


class Openings:
    """Gives empty namespaces a first message to fence on: an epoch that names nobody.

    What precedes its first record (index entries, parts) could otherwise be erased by
    a delete that the record's own fence, "nothing is there", would not notice.

    A store that foresees the epoch's version takes it together with what is fenced on
    it. Was the guess wrong, that is refused, and the namespace is open.
    """

    def __init__(self, partition: Partition) -> None:
        store = partition.store
        self._store = store
        self._namespace = partition.namespace
        self._foreseeing = store if isinstance(store, ForeseesVersions) else None
        self._skip = self._penalty = 0

    def foreseen(self, parts: Mapping[bytes, bytes]) -> int | None:
        """The version that an epoch gets, if it is worth guessing."""
        if self._foreseeing is None:
            return None
        if self._skip:
            self._skip -= 1
            return None
        if sum(map(len, parts.values())) > MOST_FORESEEN:
            return None
        return self._foreseeing.next_version

    def was(self, right: bool) -> None:
        """What came of a guess: beside busy writers it is not tried again soon."""
        if right:
            self._penalty //= 2
        else:
            self._skip = self._penalty = min(2 * self._penalty + 2, _MOST_SKIPPED)

    def write(self, scope: Scope) -> Write:
        """The epoch that opens a namespace, fenced on nothing."""
        return (RECORDS, scope.record(EPOCH), encode_epoch(()), (scope.prefix, 0))

    async def open(self, scope: Scope) -> int:
        """Open a namespace; the version to fence on."""
        collection, id, data, _ = self.write(scope)
        opened = await self._store.put(
            self._namespace, collection, id, data, if_latest=(scope.prefix, 0)
        )
        return opened.version


async def reopen(partition: Partition, scope: Scope) -> None:
    """Open a namespace that has records and no epoch: its thread was deleted.

    The first slipped through the purge (docs/adr/0003), and who deleted died before he
    looked. If it has lost its parts it is named dead; the rest is indexed. Others may
    be faster; what they read is then right as well.
    """
    store, namespace = partition.store, partition.namespace
    found: list[Record] = []
    names = await partition.names(scope)
    for at in range(0, len(names), PAGE):
        page = names[at : at + PAGE]
        records, epoch = await partition.records(scope, page, epoch=True)
        if epoch is not None:
            return
        found += records.values()
    found.sort(key=lambda record: record.version)
    dead: dict[str, int] = {}
    if found and not await partition.is_whole(scope, found[0]):
        dead[found[0].id] = found[0].version
    runs = {each.run for each in found if each.run and each.id not in dead}
    writes: list[Write] = [
        (THREADS, scope.prefix, {}, None),
        *((RUNS, scope.run(run), {}, None) for run in sorted(runs)),
        (RECORDS, scope.record(EPOCH), encode_epoch(None, dead), 0),
    ]
    with suppress(VersionConflictError):
        await store.put_many(namespace, writes, exact=False)
    partition.heads.forget(scope)
