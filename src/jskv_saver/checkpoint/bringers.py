"""Records that go, and the parts that they bring to others that stay."""

from __future__ import annotations

from collections.abc import Mapping

from jskv_saver.checkpoint.layout import PARTS, Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.document.model import Write


def parts_to_keep(
    dead: Mapping[str, Record], records: Mapping[str, Record]
) -> dict[bytes, bytes]:
    """The parts that dead records bring and others refer to, by digest.

    Args:
        dead: The records that are about to be removed, as they were read.
        records: All records, read after the dead were named: whoever comes later
            refers to nothing more than these do.
    """
    brought: dict[bytes, bytes] = {}
    for record in dead.values():
        brought |= record.brought
    if not brought:
        return brought
    needed: set[bytes] = set()
    for id, record in records.items():
        if id not in dead or dead[id].version != record.version:
            needed |= brought.keys() & record.digests()
    return {digest: brought[digest] for digest in needed}


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
