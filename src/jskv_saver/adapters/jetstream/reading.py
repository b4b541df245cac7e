"""Reads of documents: by id, by prefix, by query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jskv_saver._nats.tokens import encode_token
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.bucket import Bucket, Entry
from jskv_saver.adapters.jetstream.catalog import Catalog
from jskv_saver.adapters.jetstream.entries import (
    CHUNK,
    Entries,
    catalog_in,
    required,
)
from jskv_saver.adapters.jetstream.indexes import Index, Lookup, plan_lookup, says
from jskv_saver.adapters.jetstream.records import (
    Record,
    decode_record,
)
from jskv_saver.adapters.jetstream.repairs import Repairs
from jskv_saver.document.model import (
    Document,
    Page,
    Path,
    ReadKey,
    id_of,
)
from jskv_saver.document.names import PatternPath, is_exact, is_reserved
from jskv_saver.document.query import Query
from jskv_saver.errors import DocumentNotFoundError, JskvError

_FIRST_CHUNK: Final = 64
_MOST_NEWER: Final = 512
"""Documents that are told to be newer; more are read as any others."""
_SPARE: Final = 4
"""Matching documents held while sorting, in pages."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What may match a query.

    Attributes:
        located: Paths and keys, sorted.
        hinted: By an index: the keys and their hints.
        index: The index.
        catalog: The declaration, read before the hints.
    """

    located: list[tuple[Path, str]]
    hinted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    index: Index | None = None
    catalog: Catalog | None = None

    def doubtful(self, key: str, data: dict[str, Any] | None) -> dict[str, str]:
        """The hints of a document that say what is not so, with its key."""
        index = self.index
        if index is None:
            return {}
        hints = self.hinted.get(key, ())
        return {hint: key for hint in hints if not says(index, hint, data)}


class Reading:
    """The reads of the document port.

    Args:
        bucket: The bucket.
        entries: Its entries.
        repairs: What to do about stale hints.
    """

    def __init__(self, bucket: Bucket, entries: Entries, repairs: Repairs) -> None:
        self._bucket = bucket
        self._entries = entries
        self._repairs = repairs

    async def get(self, namespace: str, collection: str, path: Path) -> Document:
        """The document, or `DocumentNotFoundError`."""
        key = keys.document_key(namespace, collection, path)
        if is_reserved(collection):
            entry = await self._bucket.get_from_leader(key)
        else:
            catalog = keys.catalog_key(namespace, collection)
            found = await self._entries.read_newest([catalog, key])
            required(catalog_in(found, catalog), namespace, collection)
            entry = found.get(key)
        if entry is None:
            raise DocumentNotFoundError(
                f"no document {id_of(path)!r} in {collection!r}",
                collection=collection,
                id=id_of(path),
            )
        return decode_record(entry, path).document

    async def get_many(
        self, namespace: str, reads: Sequence[tuple[str, PatternPath]]
    ) -> dict[ReadKey, Document]:
        """The documents by collection and id."""
        wanted: dict[str, tuple[str, Path]] = {}
        filters: dict[str, None] = {}
        catalogs: dict[str, str] = {}
        for collection, pattern in reads:
            if not is_reserved(collection):
                catalogs[collection] = keys.catalog_key(namespace, collection)
            if is_exact(pattern):
                key = keys.document_key(namespace, collection, pattern)
                wanted[key] = collection, pattern
            else:
                filters[keys.document_filter(namespace, collection, pattern)] = None
        found, under = await self._read([*catalogs.values(), *wanted], list(filters))
        for name, key in catalogs.items():
            required(catalog_in(found, key), namespace, name)
        answer: dict[ReadKey, Document] = {}
        for key, (collection, path) in wanted.items():
            if key in found:
                document = decode_record(found[key], path).document
                answer[collection, document.id] = document
        if under:
            names = {encode_token(collection): collection for collection, _ in reads}
            for entry in under:
                document = decode_record(entry).document
                answer[names[entry.key.split(".", 1)[0]], document.id] = document
        return answer

    async def newer(
        self, namespace: str, collection: str, prefix: PatternPath, since: int
    ) -> list[Document] | None:
        """The documents below a prefix from a version on; None: they are many."""
        filter = keys.document_filter(namespace, collection, prefix, deep=True)
        entries = await self._bucket.newer(filter, since, _MOST_NEWER)
        if entries is None:
            return None
        return [decode_record(entry).document for entry in entries]

    async def find(self, query: Query) -> Page:
        """A page of the documents that match."""
        if (
            query.by_version
            and query.descending
            and query.limit == 1
            and query.cursor_anchor is None
            and not query.filters
        ):
            return await self._latest(query)
        candidates = await self._candidates(query)
        if query.by_id:
            return await self._page_by_id(query, candidates)
        return await self._page_by_order(query, candidates)

    async def count(self, query: Query) -> int:
        """How many documents match; without predicates their names are counted."""
        candidates = await self._candidates(query)
        if not query.filters:
            return len(candidates.located)
        count = 0
        async for _ in self._matching(query, candidates):
            count += 1
        return count

    async def ids(self, query: Query) -> list[Path]:
        """The paths of the documents within, sorted."""
        return [path for path, _ in (await self._candidates(query)).located]

    async def matching(self, query: Query) -> AsyncIterator[Record]:
        """All that match, in the order of ids."""
        async for record in self._matching(query, await self._candidates(query)):
            yield record

    async def records(self, wanted: Sequence[str]) -> AsyncIterator[Record]:
        """The documents of some keys, in any order; missing ones are left out."""
        for start in range(0, len(wanted), CHUNK):
            found = await self._entries.read(wanted[start : start + CHUNK])
            for entry in found.values():
                yield decode_record(entry)

    async def everything(
        self, namespace: str, collection: str
    ) -> AsyncIterator[Record]:
        """All documents of a collection, in any order."""
        names = await self._bucket.names(
            [keys.document_filter(namespace, collection, (), deep=True)]
        )
        async for record in self.records(names):
            yield record

    async def hinted(
        self, namespace: str, collection: str, lookups: Sequence[Lookup]
    ) -> dict[str, list[str]]:
        """The keys of the documents that hints name, each with its hints."""
        listed = await asyncio.gather(
            *(
                self._bucket.names(
                    [
                        keys.index_filter(
                            namespace, collection, lookup.index.name, lookup.exact
                        )
                    ]
                )
                for lookup in lookups
            )
        )
        found: dict[str, list[str]] = {}
        for lookup, names in zip(lookups, listed, strict=True):
            width = len(lookup.index.fields)
            for name in names:
                values, key = keys.split_index_key(name, width=width, tail=1)
                if lookup.keeps(values[0]):
                    found.setdefault(key, []).append(name)
        return found

    async def _latest(self, query: Query) -> Page:
        filters = _filters(query)
        if not is_reserved(query.collection):
            catalog, newest = await asyncio.gather(
                self._entries.catalog(query.namespace, query.collection),
                self._newest(filters),
            )
            required(catalog, query.namespace, query.collection)
        else:
            newest = await self._newest(filters)
        if newest is None:
            return Page()
        document = decode_record(newest).document
        # Whether another one follows is not known, so a cursor is due.
        return Page((document,), query.cursor_after(document))

    async def _newest(self, filters: Sequence[str]) -> Entry | None:
        if len(filters) == 1:
            return await self._entries.newest(filters[0])
        entries = await asyncio.gather(*map(self._entries.newest, filters))
        present = [entry for entry in entries if entry is not None]
        return max(present, key=_revision, default=None)

    async def _candidates(self, query: Query) -> _Candidates:
        namespace, collection = query.namespace, query.collection
        filters = _filters(query)
        if is_reserved(collection):
            return _Candidates(await self._located(await self._names(filters)))
        if not query.filters:
            catalog, names = await asyncio.gather(
                self._entries.catalog(namespace, collection), self._names(filters)
            )
            required(catalog, namespace, collection)
            return _Candidates(await self._located(names))
        catalog = required(
            await self._entries.catalog(namespace, collection), namespace, collection
        )
        lookup = plan_lookup(catalog.usable, query.filters)
        if lookup is None:
            return _Candidates(await self._located(await self._names(filters)))
        hinted = await self.hinted(namespace, collection, [lookup])
        located = await self._located(hinted)
        return _Candidates(
            [(path, key) for path, key in located if query.matches_path(path)],
            hinted,
            lookup.index,
            catalog,
        )

    async def _names(self, filters: Sequence[str]) -> list[str]:
        return await self._bucket.names(filters) if filters else []

    async def _located(self, names: Iterable[str]) -> list[tuple[Path, str]]:
        located: list[tuple[Path, str]] = []
        partial: list[str] = []
        for path, name in keys.paths_of_keys(names):
            if path is None:
                partial.append(name)
            else:
                located.append((path, name))
        for start in range(0, len(partial), CHUNK):
            # The key holds a digest only: the whole id stands in the document.
            found = await self._entries.read(partial[start : start + CHUNK])
            located += [
                (decode_record(entry).path, key) for key, entry in found.items()
            ]
        located.sort()
        return located

    async def _matching(
        self, query: Query, candidates: _Candidates
    ) -> AsyncIterator[Record]:
        """What matches of what was located, in its order, read as it is taken."""
        located = candidates.located
        start, size = 0, _FIRST_CHUNK if query.filters else query.limit + 1
        while start < len(located):
            chunk = located[start : start + size]
            found = await self._entries.read([key for _, key in chunk])
            matching: list[Record] = []
            suspects: dict[str, str] = {}
            for path, key in chunk:
                data: dict[str, Any] | None = None
                if (entry := found.get(key)) is not None:
                    record = decode_record(entry, path)
                    data = record.document.data
                    if query.matches_data(data):
                        matching.append(record)
                        continue
                suspects.update(candidates.doubtful(key, data))
            if suspects:
                await self._repair(query, candidates, suspects)
            for record in matching:
                yield record
            start, size = start + size, 2 * size

    async def _repair(
        self, query: Query, candidates: _Candidates, suspects: dict[str, str]
    ) -> None:
        catalog, index = candidates.catalog, candidates.index
        assert catalog is not None
        assert index is not None
        with suppress(JskvError):
            # It is the reader's answer that counts; he may have no right to remove.
            await self._repairs.remove(query.namespace, catalog, index, suspects)

    async def _page_by_id(self, query: Query, candidates: _Candidates) -> Page:
        paths = [path for path, _ in candidates.located]
        rest = query.paths_after_cursor(paths)
        candidates = replace(
            candidates, located=candidates.located[len(paths) - len(rest) :]
        )
        documents: list[Document] = []
        async for record in self._matching(query, candidates):
            documents.append(record.document)
            if len(documents) > query.limit:
                break
        return query.page(documents)

    async def _page_by_order(self, query: Query, candidates: _Candidates) -> Page:
        best: list[Document] = []
        async for record in self._matching(query, candidates):
            if query.after_cursor(record.document):
                best.append(record.document)
                if len(best) > _SPARE * (query.limit + 1):
                    best = query.sort(best)[: query.limit + 1]
        return query.page(query.sort(best))

    async def _read(
        self, wanted: Sequence[str], filters: Sequence[str]
    ) -> tuple[dict[str, Entry], list[Entry]]:
        """The entries of keys, and those under filters: one request where it can be."""
        if not filters:
            return await self._entries.read(wanted), []
        await self._bucket.open()
        if self._bucket.replicated or len(wanted) > CHUNK:
            return await asyncio.gather(
                self._entries.read(wanted), self._under(filters)
            )
        exact = frozenset(wanted)
        found: dict[str, Entry] = {}
        under: list[Entry] = []
        for entry in await self._bucket.get_many([*wanted, *filters]):
            if entry.key in exact:
                found[entry.key] = entry
            else:
                under.append(entry)
        return found, under

    async def _under(self, filters: Sequence[str]) -> list[Entry]:
        await self._bucket.open()
        if not self._bucket.replicated:
            return await self._bucket.get_many(filters)
        found = await self._entries.read(await self._bucket.names(filters))
        return list(found.values())


def _filters(query: Query) -> list[str]:
    prefixes = ((),) if query.within is None else query.within
    return [
        keys.document_filter(query.namespace, query.collection, prefix, deep=True)
        for prefix in prefixes
    ]


def _revision(entry: Entry) -> int:
    return entry.revision
