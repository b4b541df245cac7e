"""Records that go, and the parts that they bring to others that stay."""

from __future__ import annotations

from collections.abc import Mapping

from jskv_saver.checkpoint.layout import PARTS, Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.document.model import Write


def parts_to_keep(
    named: Mapping[str, Record],
    dead: Mapping[str, Record],
    records: Mapping[str, Record],
) -> dict[bytes, bytes]:
    """The parts that dead records bring and others refer to, by digest.

    Args:
        named: The records that an epoch named, as they were read before.
        dead: Those of them that are about to be removed: not who was spared.
        records: All records, read after they were named: whoever comes later refers
            to nothing more than these do.
    """
    brought: dict[bytes, bytes] = {}
    for id, record in named.items():
        # One that was spared may have been replaced while it was named.
        if id in dead or _is_other(record, records.get(id)):
            brought |= record.brought
    if not brought:
        return brought
    needed: set[bytes] = set()
    for id, record in records.items():
        if _is_other(record, dead.get(id)):
            needed |= brought.keys() & record.digests()
    return {digest: brought[digest] for digest in needed}


def _is_other(record: Record, other: Record | None) -> bool:
    return other is None or other.version != record.version


async def store_apart(
    partition: Partition, scope: Scope, parts: Mapping[bytes, bytes]
) -> None:
    """Store by themselves the parts of records that go."""
    store, namespace = partition.store, partition.namespace
    writes: list[Write] = [
        (PARTS, scope.part(digest), {"b": content}, None)
        for digest, content in parts.items()
    ]
    for at in range(0, len(writes), PAGE):
        page = writes[at : at + PAGE]
        stored = await store.put_many(namespace, page, exact=False)
        if await partition.epoch_version(scope):
            continue
        # The thread was deleted meanwhile, and nothing of it may come back.
        for collection, path, _, _ in page:
            await store.delete(
                namespace, collection, path, below=stored[-1].version + 1
            )
        return
