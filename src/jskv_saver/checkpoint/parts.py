"""Where the parts of records are: in the record that brings one, or apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jskv_saver.checkpoint.envelope import locked
from jskv_saver.checkpoint.heads import KnownParts
from jskv_saver.checkpoint.layout import (
    DIGEST,
    PARTS,
    RECORDS,
    Record,
    Scope,
    content_of,
    key_of,
)
from jskv_saver.checkpoint.values import uuid_of
from jskv_saver.document.model import Document, Path, Pattern, path_of
from jskv_saver.document.port import DocumentStore

PAGE = 256
"""Documents that one read asks for at most, where it can be cut."""
Found = dict[bytes, bytes]
"""The content of parts, by digest."""


class Parts:
    """The parts that some records refer to: what to read, and what was found.

    A part that a record brings is looked for there first. If that record is gone, its
    part was stored by itself before: who misses it looks once more.

    Args:
        known: Parts that are remembered; what is read is remembered there.
    """

    def __init__(self, known: KnownParts | None = None) -> None:
        self._known = known
        self._found: dict[Scope, Found] = {}
        self._wanted: dict[tuple[str, Path], tuple[Scope, list[bytes]]] = {}

    def at_hand(self, scope: Scope, record: Record) -> None:
        """A record that was read: what it brings need not be looked for."""
        if record.own:
            self._found.setdefault(scope, {}).update(record.brought)

    def want(self, scope: Scope, record: Record, digests: Iterable[bytes]) -> None:
        """Some parts of a record are needed."""
        found = self._found.setdefault(scope, {})
        known = self._known
        located: Mapping[bytes, bytes] | None = None
        for digest in digests:
            if digest in found:
                continue
            if known is not None and (content := known.get(digest)) is not None:
                found[digest] = content
                continue
            if located is None:
                located = record.located
            id = located.get(digest)
            if id is None:
                key = (PARTS, scope.part(digest))
            else:
                key = (RECORDS, scope.record(uuid_of(id)))
            self._wanted.setdefault(key, (scope, []))[1].append(digest)

    @property
    def reads(self) -> list[tuple[str, Pattern]]:
        """What is to be read."""
        return list(self._wanted)

    def take(self, collection: str, document: Document) -> None:
        """A part's or a record's document that was read."""
        part = part_of(document) if collection == PARTS else brought_by(document)
        if part:
            found = self._found.setdefault(Scope(*path_of(document.id)[:3]), {})
            found[part[0]] = part[1]
            if self._known is not None:
                self._known.add(*part)

    def look_apart(self) -> bool:
        """Want apart what no record brings any more; whether there is any."""
        self._wanted = {
            (PARTS, scope.part(digest)): (scope, [digest])
            for (collection, _), (scope, digests) in self._wanted.items()
            if collection == RECORDS
            for digest in digests
            if digest not in self._found.get(scope, {})
        }
        return bool(self._wanted)

    async def read(self, store: DocumentStore, namespace: str) -> None:
        """Read all that is wanted."""
        while reads := self.reads:
            for at in range(0, len(reads), PAGE):
                found = await store.get_many(namespace, reads[at : at + PAGE])
                for (collection, _), document in found.items():
                    self.take(collection, document)
            if not self.look_apart():
                break

    def of(self, scope: Scope) -> Mapping[bytes, bytes]:
        """The parts that were found in a namespace, by digest."""
        return self._found.get(scope, {})


def part_of(document: Document) -> tuple[bytes, bytes]:
    """The digest and the content of a part."""
    return bytes.fromhex(document.id[-1]), content_of(PARTS, document)


def brought_by(document: Document) -> tuple[bytes, bytes] | None:
    """The digest and the content of the part that a record brings.

    Raises:
        EncryptionError: The record is encrypted, and no key was given.
    """
    data = document.data
    if error := locked(data, key_of(RECORDS, document.id)):
        raise error
    own = data.get("p")
    return (data["d"][:DIGEST], own) if own else None
