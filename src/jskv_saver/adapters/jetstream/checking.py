"""Looking at users' collections: documents, declarations, index keys; and mending them.

What is promised is that a document has its hints; a hint that says what is not so is
harmless, and litter. Nothing is found that a writer is about to put right: it is looked
for again after a moment.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from jskv_saver._nats.tokens import decode_token, encode_token
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.adapters.jetstream.catalog import Catalog, State, decode_catalog
from jskv_saver.adapters.jetstream.declarations import Declarations
from jskv_saver.adapters.jetstream.entries import CHUNK, Entries
from jskv_saver.adapters.jetstream.indexes import HINT, Index, backfill, says
from jskv_saver.adapters.jetstream.records import Record, decode_record
from jskv_saver.adapters.jetstream.repairs import Repairs
from jskv_saver.document.findings import Finding, Kind, settled
from jskv_saver.document.names import check_declarable
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

_UNFINISHED: Final = {
    State.BUILDING: "its declaration was extended, and that is not finished",
    State.DROPPED: "was dropped, and something is left of it",
}


@dataclass(slots=True)
class _Sight:
    """What one look has seen.

    Attributes:
        findings: What is wrong.
        catalogs: The declarations by the token of their name in keys.
        missing: Index keys that are not there.
        stale: Index keys that say what is not so: of which index, and the key of the
            document, by declaration.
        orphans: The tokens of collections that are not declared.
    """

    findings: list[Finding] = field(default_factory=list)
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    stale: dict[str, dict[Index, dict[str, str]]] = field(default_factory=dict)
    orphans: set[str] = field(default_factory=set)


class Checking:
    """Looks at the collections of a bucket, and mends their indexes.

    Args:
        bucket: The bucket.
        entries: Its entries.
        repairs: What is done about stale hints.
        declarations: Its declarations.
    """

    def __init__(
        self,
        bucket: Bucket,
        entries: Entries,
        repairs: Repairs,
        declarations: Declarations,
    ) -> None:
        self._bucket = bucket
        self._entries = entries
        self._repairs = repairs
        self._declarations = declarations

    async def owners(self) -> list[str]:
        """The owners of declared collections, sorted."""
        found = await self._bucket.names([keys.declarations_filter()])
        declared = [name for name in found if "./" in name]
        return sorted(keys.owners(name.replace("./", ".", 1) for name in declared))

    async def thread_owners(self) -> list[str]:
        """The owners of anything that belongs to threads, indexed or not, sorted."""
        found = await self._bucket.names(
            [f"{name}.>" for name in sorted(keys.RESERVED)]
        )
        return sorted(keys.owners(found))

    async def verify(self, namespace: str, settle: float) -> list[Finding]:
        """What is wrong in the collections of an owner."""

        async def look() -> list[Finding]:
            return (await self._look(namespace)).findings

        return await settled(look, settle, asyncio.sleep)

    async def repair(self, namespace: str) -> None:
        """Mend the indexes, finish what was begun, remove what is left over."""
        sight = await self._look(namespace)
        for catalog in sight.catalogs.values():
            await self._declarations.finish(namespace, catalog)
        for token in sight.orphans:
            with suppress(ValueError):
                # Not where the name is a digest, or of another program.
                name = decode_token(token)
                if isinstance(name, str):
                    await self._declarations.clear(namespace, check_declarable(name))
        for at in range(0, len(sight.missing), CHUNK):
            page = [Put(key, HINT) for key in sight.missing[at : at + CHUNK]]
            await self._bucket.put_many(page, exact=False, relaxed=True)
        for token, by_index in sight.stale.items():
            for index, suspects in by_index.items():
                await self._repairs.remove(
                    namespace, sight.catalogs[token], index, suspects
                )

    async def _look(self, namespace: str) -> _Sight:
        sight = _Sight()
        await self._look_at_declarations(namespace, sight)
        # Hints first: a document that is there when they were listed has its own.
        filters = keys.owner_filters(namespace)
        documents = _by_collection(await self._bucket.names(filters[:1]), 0)
        hints = _by_collection(await self._bucket.names(filters[1:]), 2)
        # Of one whose declaration is damaged, that says enough.
        damaged = {finding.key.split(".", 1)[0] for finding in sight.findings}
        declared = sight.catalogs.keys() | damaged
        for token in sorted((documents.keys() | hints.keys()) - declared):
            sight.orphans.add(token)
            count = len(documents.get(token, ())) + len(hints.get(token, ()))
            text = f"{count} keys of a collection that is not declared"
            key = f"{token}./{encode_token(namespace)}"
            sight.findings.append(Finding(namespace, key, "unreachable", text))
        for token, catalog in sight.catalogs.items():
            if catalog.state is State.READY:
                await self._look_at_documents(
                    namespace,
                    sight,
                    token,
                    documents.get(token, ()),
                    hints.get(token, ()),
                )
        return sight

    async def _look_at_declarations(self, namespace: str, sight: _Sight) -> None:
        names = await self._bucket.names([keys.catalog_filter(namespace)])
        for key, entry in (await self._entries.read_newest(names)).items():
            try:
                catalog = decode_catalog(entry)
            except (CorruptDocumentError, UnsupportedFormatError) as exc:
                sight.findings.append(_damaged(namespace, key, exc))
                continue
            sight.catalogs[key.split(".", 1)[0]] = catalog
            if catalog.state in _UNFINISHED:
                text = _UNFINISHED[catalog.state]
                sight.findings.append(Finding(namespace, key, "unfinished", text))

    async def _look_at_documents(
        self,
        namespace: str,
        sight: _Sight,
        token: str,
        documents: Sequence[str],
        hints: Sequence[str],
    ) -> None:
        catalog = sight.catalogs[token]
        indexes = {index.name: index for index in catalog.indexes}
        there = set(hints)
        unread: set[str] = set()
        data: dict[str, Mapping[str, Any]] = {}
        holders: dict[tuple[str, ...], str] = {}
        for at in range(0, len(documents), CHUNK):
            page = documents[at : at + CHUNK]
            for key, entry in (await self._entries.read(page)).items():
                try:
                    record = decode_record(entry)
                except (CorruptDocumentError, UnsupportedFormatError) as exc:
                    sight.findings.append(_damaged(namespace, key, exc))
                    unread.add(key)
                    continue
                data[key] = record.document.data
                self._look_at_document(namespace, sight, catalog, record, there)
                for other in _held_by_others(catalog.indexes, record, holders):
                    text = f"has the unique values of {other!r}"
                    sight.findings.append(Finding(namespace, key, "duplicate", text))
        for hint in hints:
            try:
                index = indexes.get(keys.index_name(hint))
                if index is None:
                    # Of a declaration that was taken back: of no use and no harm.
                    continue
                _, key = keys.split_index_key(hint, width=len(index.fields), tail=1)
            except CorruptDocumentError:
                text = "is no index key of this package"
                sight.findings.append(Finding(namespace, hint, "foreign", text))
                continue
            if key not in unread and not says(index, hint, data.get(key)):
                by_index = sight.stale.setdefault(token, defaultdict(dict))
                by_index[index][hint] = key
                text = f"says of {key!r} what is not so"
                sight.findings.append(Finding(namespace, hint, "stale-index", text))

    def _look_at_document(
        self,
        namespace: str,
        sight: _Sight,
        catalog: Catalog,
        record: Record,
        there: set[str],
    ) -> None:
        name = catalog.spec.name
        needed = backfill(namespace, name, record, catalog.indexes, catalog.birth)
        for hint in needed:
            if hint not in there:
                sight.missing.append(hint)
                text = f"is not there, so {record.key!r} is not found by it"
                sight.findings.append(Finding(namespace, hint, "missing-index", text))


def _held_by_others(
    indexes: Iterable[Index], record: Record, holders: dict[tuple[str, ...], str]
) -> list[str]:
    """The keys of other documents that have a document's unique values."""
    others: list[str] = []
    for index in indexes:
        tokens = index.unique_tokens(record.document.data)
        if tokens is not None:
            holder = holders.setdefault((index.name, *tokens), record.key)
            if holder != record.key:
                others.append(holder)
    return others


def _by_collection(names: Iterable[str], at: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        # A removal of a thread is announced under its collection's name.
        if (token := name.split(".", at + 1)[at]) not in keys.RESERVED:
            found.setdefault(token, []).append(name)
    return found


def _damaged(namespace: str, key: str, error: Exception) -> Finding:
    unknown = isinstance(error, UnsupportedFormatError)
    kind: Kind = "unsupported-format" if unknown else "corrupt"
    return Finding(namespace, key, kind, str(error))
