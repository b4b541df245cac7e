"""Whether the secondary indexes agree with the documents, on any store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from jskv_saver import CollectionSpec, JetStreamDocumentStore
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.indexes import indexes_of
from jskv_saver.checkpoint.layout import (
    PARTS,
    RECORDS,
    RUNS,
    THREADS,
    WRITES,
    Record,
    Scope,
    decode_record,
    is_epoch,
)
from jskv_saver.checkpoint.partition import scope_of
from jskv_saver.checkpoint.values import uuid_of
from jskv_saver.checkpoint.writes import part_names
from jskv_saver.document.declarations import parse_spec
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.document.port import DocumentStore

OWNER = "default"
AGENT = "default"
_TASK_SEGMENTS = 5


async def check_threads(store: DocumentStore, *threads: str) -> None:
    """Every record is found by its indexes, and all that belongs to it is stored.

    An index entry or a part too many is harmless: it is looked at before it counts.
    """
    for thread in threads:
        index = await _paths(store, THREADS, thread) | await _paths(store, RUNS, thread)
        parts = await _paths(store, PARTS, thread)
        alive: set[Path] = set()
        records = [each async for each in _records(store, thread)]
        brought = {scope.record(r.id): r.brought for scope, r in records}
        for scope, record in records:
            alive.add(scope.record(record.id))
            wanted = {scope.prefix} | ({scope.run(record.run)} if record.run else set())
            assert wanted <= index, f"{record.id}: {wanted - index} are not indexed"
            located = record.located
            named = {
                scope.part(digest)
                for digest in record.digests()
                if digest not in located
                or digest not in brought.get(scope.record(uuid_of(located[digest])), {})
            }
            assert named <= parts, f"{record.id}: {named - parts} are not stored"
        pieces = await _paths(store, WRITES, thread)
        async for document in _tasks(store, thread):
            # Of writes to what is not there (yet) nothing is read.
            if path_of(document.id)[:4] in alive:
                missing = _named_by(document) - pieces
                assert not missing, f"{missing} are not stored"


async def left_over(store: DocumentStore, thread: str) -> set[Path]:
    """The parts of values and writes in a thread that nothing refers to."""
    parts = await _paths(store, PARTS, thread)
    async for scope, record in _records(store, thread):
        parts -= {scope.part(digest) for digest in record.digests()}
    pieces = {
        path
        for path in await _paths(store, WRITES, thread)
        if len(path) > _TASK_SEGMENTS
    }
    async for document in _tasks(store, thread):
        pieces -= _named_by(document)
    return parts | pieces


async def check_hints(
    store: JetStreamDocumentStore, owner: str, spec: CollectionSpec
) -> None:
    """Every document of a collection has its index keys, and no two a unique value.

    A key of what was, or was about to be, is harmless: it is looked at.
    """
    names = await store._bucket.names([keys.index_filter(owner, spec.name)])
    indexes = indexes_of(parse_spec(spec))
    taken: dict[tuple[Any, ...], Any] = {}
    async for document in store.iterate(owner, spec.name):
        for index in indexes:
            tokens = index.tokens(document.data)
            if tokens is None:
                continue
            path = path_of(document.id)
            front = keys.index_key(owner, spec.name, index.name, tokens, path) + "."
            mine = [
                name
                for name in names
                if name.startswith(front) and "." not in name[len(front) :]
            ]
            assert mine, f"{document.id!r} is not in the index of {index.fields}"
            unique = index.unique_tokens(document.data)
            if unique is not None:
                other = taken.setdefault((index.name, *unique), document.id)
                assert other == document.id, f"{other!r} and {document.id!r}: {unique}"


async def _records(
    store: DocumentStore, thread: str
) -> AsyncIterator[tuple[Scope, Record]]:
    async for document in store.iterate(OWNER, RECORDS, within=(AGENT, thread)):
        if not is_epoch(document):
            yield scope_of(document.id), decode_record(document)


async def _paths(store: DocumentStore, collection: str, thread: str) -> set[Path]:
    found = await store.ids(OWNER, collection, within=(AGENT, thread))
    return set(map(path_of, found))


async def _tasks(store: DocumentStore, thread: str) -> AsyncIterator[Document]:
    async for document in store.iterate(OWNER, WRITES, within=(AGENT, thread)):
        if len(path_of(document.id)) == _TASK_SEGMENTS:
            yield document


def _named_by(document: Document) -> set[Path]:
    return {(*path_of(document.id), name) for name in part_names(document)}
