"""The documents of one module namespace and agent: reads that all parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.checkpoint.epochs import Epoch, decode_epoch
from jskv_saver.checkpoint.heads import Head, Heads
from jskv_saver.checkpoint.layout import (
    EPOCH,
    PARTS,
    RECORDS,
    WRITES,
    Record,
    Scope,
    decode_record,
    digest_of,
    is_epoch,
    key_of,
)
from jskv_saver.checkpoint.parts import PAGE, Parts
from jskv_saver.checkpoint.past import Past
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.checkpoint.values import KNOWN, Typed, join
from jskv_saver.document.model import Document, DocumentId, Path, path_of
from jskv_saver.document.port import DocumentStore, FindsNewer
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError


@dataclass(frozen=True, slots=True)
class Partition:
    """Where a saver's documents live, and what it remembers of them."""

    store: DocumentStore
    namespace: str
    agent: str
    heads: Heads = field(default_factory=Heads)

    @property
    def encryption(self) -> Encryption | None:
        """The keys, where the documents are encrypted."""
        return self.store.encryption if isinstance(self.store, SealedStore) else None

    def naming(self, scope: Scope) -> Callable[[bytes], bytes]:
        """What gives the parts of a namespace their names, by their content."""
        if self.encryption is None:
            return digest_of
        return self.encryption.naming(self.namespace, *scope)

    def fits(self, scope: Scope, name: str, content: bytes) -> bool:
        """Whether a part with this name may have this content.

        It was named with the key that was current then, or without one.
        """
        keys = self.encryption
        namings = keys.namings(self.namespace, *scope) if keys else []
        if keys is None or keys.accept_plaintext:
            namings.append(digest_of)
        return any(naming(content).hex() == name for naming in namings)

    async def last_message(self, scope: Scope) -> Document | None:
        """The newest document among the records of a namespace: one round trip."""
        return await self._newest(RECORDS, scope)

    async def _newest(self, collection: str, scope: Scope) -> Document | None:
        page = await self.store.find(
            self.namespace,
            collection,
            order_by=("@version", "desc"),
            limit=1,
            within=scope.prefix,
        )
        return page.items[0] if page.items else None

    async def past(self, scope: Scope) -> Past | None:
        """What is remembered of a namespace, with all writes that precede this call.

        It is empty where nothing was, and None where that cannot be proven: others
        have written records since, or the store does not tell what is newer.
        """
        store, heads = self.store, self.heads
        head = heads.get(scope)
        if head is None or not (isinstance(store, FindsNewer) and store.finds_newer):
            return None
        past = held = head.past
        if past is not None and past.since:
            told = await store.newer(self.namespace, WRITES, scope.prefix, past.since)
            if told is None:
                past = None
            else:
                past.take(told)
        else:
            newest = await self._newest(WRITES, scope)
            past = Past(newest.version if newest else 0)
        # After the writes: see the module `past`.
        last = await self.last_message(scope)
        head = heads.get(scope)
        if last is None or head is None or head.fence != last.version:
            return None
        if past is held and head.past is not held:
            # Others have written meanwhile, and this head is not the one it was of.
            past = None
        # Once more, for it may have grown.
        heads.set(scope, head._replace(past=past))
        return past

    def remember(
        self,
        scope: Scope,
        past: Past,
        records: Iterable[Record],
        documents: Iterable[Document],
    ) -> None:
        """Add records and their writes to a past, unless others have written since."""
        head = self.heads.get(scope)
        if head is None or head.past is not past:
            return
        writes: dict[str, list[Document]] = {}
        for document in documents:
            writes.setdefault(document.id[3], []).append(document)
        for record in records:
            past.add(record, writes.get(record.id, ()))
        self.heads.set(scope, head)

    async def read_head(self, scope: Scope) -> Head:
        """The state of a namespace, read anew."""
        return await self.head_at(scope, await self.last_message(scope))

    async def head_at(self, scope: Scope, last: Document | None) -> Head:
        """The state of a namespace whose newest document is `last`."""
        if last is None:
            return Head(0)
        if is_epoch(last):
            epoch = decode_epoch(last)
            known = await self.known_of(scope, epoch)
            return Head(last.version, known, named=max(epoch.dead, default=""))
        record = decode_record(last)
        runs = frozenset((record.run,) if record.run else ())
        return Head(last.version, record.known, None, runs)

    async def known_of(self, scope: Scope, epoch: Epoch) -> tuple[str, ...]:
        """The greatest ids when an epoch is the newest document.

        The dead may still be there. One that was put again just before the epoch is
        not dead.
        """
        # One that knows of none may have been moved behind others, in a copied bucket.
        if epoch.known:
            return epoch.known
        names = await self.names(scope)
        alive = [id for id in names if id not in epoch.dead]
        floor = alive[-KNOWN] if len(alive) >= KNOWN else EPOCH
        doubtful = [id for id in reversed(names) if id in epoch.dead and id > floor]
        for at in range(0, len(doubtful), PAGE):
            page = doubtful[at : at + PAGE]
            records, _ = await self.records(scope, page)
            again = [id for id, each in records.items() if not epoch.kills(each)]
            alive = sorted([*alive, *again])
            if len(alive) >= KNOWN and alive[-KNOWN] > page[-1]:
                break
        return tuple(reversed(alive[-KNOWN:]))

    async def epoch_version(self, scope: Scope) -> int:
        """The version of the epoch of a namespace, never a stale one; 0: none."""
        try:
            epoch = await self.store.get(self.namespace, RECORDS, scope.record(EPOCH))
        except DocumentNotFoundError:
            return 0
        return epoch.version

    async def names(self, scope: Scope) -> list[str]:
        """The ids of the checkpoints of a namespace, ascending."""
        found = await self.store.ids(self.namespace, RECORDS, within=scope.prefix)
        return [id[-1] for id in found if id[-1] != EPOCH]

    async def all_ids(self, scope: Scope) -> Sequence[str]:
        """The ids of a namespace, ascending, and maybe some that were removed since.

        One round trip where nobody wrote since they were read or written here.
        """
        last = await self.last_message(scope)
        if last is None:
            return ()
        head = self.heads.get(scope)
        if head is None or head.fence != last.version:
            head = await self.head_at(scope, last)
        if head.names is None:
            head = head._replace(names=await self.names(scope))
            self.heads.set(scope, head)
        return tuple(head.names or ())

    async def records(
        self, scope: Scope, ids: Iterable[str], *, epoch: bool = False
    ) -> tuple[dict[str, Record], Epoch | None]:
        """The records of some ids, those that are missing left out, and the epoch."""
        wanted = [(RECORDS, scope.record(id)) for id in ids]
        if epoch:
            wanted.append((RECORDS, scope.record(EPOCH)))
        found = await self.store.get_many(self.namespace, wanted)
        read: Epoch | None = None
        records: dict[str, Record] = {}
        for document in found.values():
            if is_epoch(document):
                read = decode_epoch(document)
            else:
                records[document.id[-1]] = decode_record(document)
        return records, read

    async def parts(
        self, scope: Scope, record: Record, digests: Iterable[bytes]
    ) -> Mapping[bytes, bytes]:
        """Some of the parts of a record; missing ones are left out."""
        parts = Parts(self.heads.parts)
        parts.at_hand(scope, record)
        parts.want(scope, record, digests)
        await parts.read(self.store, self.namespace)
        return parts.of(scope)

    async def values(
        self, scope: Scope, record: Record, channels: Iterable[str]
    ) -> dict[str, Typed]:
        """Some values of a record; those that are not whole are left out."""
        entries = {name: record.channels[name] for name in channels}
        digests = {part for e in entries.values() for part, _, _ in e.pieces()}
        parts = await self.parts(scope, record, digests - {b""})
        return {
            name: Typed(entry.kind, join(entry, record.inline, parts))
            for name, entry in entries.items()
            if all(not part or part in parts for part, _, _ in entry.pieces())
        }

    async def is_whole(self, scope: Scope, record: Record) -> bool:
        """Whether all that a record refers to is stored, whatever is remembered."""
        parts = Parts()
        parts.at_hand(scope, record)
        parts.want(scope, record, record.digests())
        await parts.read(self.store, self.namespace)
        return parts.of(scope).keys() >= set(record.digests())

    async def is_gone(self, scope: Scope, record: Record) -> bool:
        """Whether a record was removed, or replaced, or is about to be removed.

        Or it slipped through the removal of its thread (docs/adr/0003): it is the
        first one in a namespace without an epoch.
        """
        found, epoch = await self.records(scope, [record.id], epoch=True)
        stored = found.get(record.id)
        if stored is None or stored.version != record.version:
            return True
        if epoch is None:
            return await self.is_first(scope, record)
        return epoch.kills(stored)

    async def is_first(self, scope: Scope, record: Record) -> bool:
        """Whether no record of its namespace is older."""
        names = await self.names(scope)
        for at in range(0, len(names), PAGE):
            found, _ = await self.records(scope, names[at : at + PAGE])
            if any(other.version < record.version for other in found.values()):
                return False
        return True


def missing_part(scope: Scope, digest: bytes) -> CorruptDocumentError:
    """The error that names a part which is not there."""
    key = key_of(PARTS, scope.part(digest))
    return CorruptDocumentError(
        f"a checkpoint of thread {scope.thread!r} refers to {key!r}, which is not "
        "stored any more: its state cannot be given whole",
        key=key,
    )


def scope_of(id: DocumentId) -> Scope:
    """The namespace that a record's, part's or write's document belongs to."""
    path: Path = path_of(id)
    return Scope(*path[:3])
