"""What is stored at a moment of a game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.explorer.answers import Told, run_now, told
from tests.explorer.contents import digest
from tests.explorer.messages import Message
from tests.explorer.sizes import DOCUMENT
from tests.explorer.versions import Stamps

from jskv_saver import MemoryDocumentStore
from jskv_saver.adapters.memory.collection import Collection
from jskv_saver.checkpoint.layout import RECORDS, WRITES
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.errors import JskvError

Collections = dict[tuple[str, str], Collection]


def record_versions(
    collections: Mapping[tuple[str, str], Collection],
) -> dict[str, int]:
    """The versions of the records that are there, by id."""
    found = collections.get(("default", RECORDS))
    documents = found.documents.items() if found else ()
    return {path[-1]: document.version for path, document in documents}


def present(
    collections: Mapping[tuple[str, str], Collection],
) -> set[tuple[str, ...]]:
    """The checkpoints that are there, and the tasks with writes, by id."""
    found = collections.get(("default", WRITES))
    paths = found.documents if found else ()
    return {(id,) for id in record_versions(collections)} | {
        path[3:] for path in paths if len(path) == 5
    }


def copy_collection(collection: Collection) -> Collection:
    """Another collection with the same documents."""
    copied = Collection(collection.spec)
    copied.documents = dict(collection.documents)
    copied._paths = list(collection._paths)
    return copied


def copy_store(store: MemoryDocumentStore) -> MemoryDocumentStore:
    """Another store with the same documents at the same versions."""
    return store_with(store._collections, store._version)


def store_with(
    collections: Mapping[tuple[str, str], Collection], version: int
) -> MemoryDocumentStore:
    """A store with copies of collections."""
    store = MemoryDocumentStore(max_document_bytes=DOCUMENT)
    store._version = version
    for key, collection in collections.items():
        store._collections[key] = copy_collection(collection)
    return store


class Shelf:
    """All documents at a moment. It never changes: steps make new ones of it."""

    __slots__ = ("_live", "_told", "_versions", "collections")

    def __init__(
        self, collections: Collections, known: dict[tuple[str, Path], Told]
    ) -> None:
        self.collections = collections
        self._told = known
        self._live: tuple[bytes, list[int]] | None = None
        self._versions: dict[str, int] | None = None

    @classmethod
    def of(cls, collections: Collections) -> Shelf:
        """What is in these collections."""
        known = {
            (name, path): told(name, document)
            for (_, name), collection in collections.items()
            for path, document in collection.documents.items()
        }
        return cls(collections, known)

    def with_document(
        self, collections: Collections, collection: str, document: Document
    ) -> Shelf:
        """The shelf after a document was put."""
        one = (collection, path_of(document.id)), told(collection, document)
        return Shelf(collections, {**self._told, one[0]: one[1]})

    def without(self, collections: Collections) -> Shelf:
        """The shelf after something was purged."""
        return Shelf(collections, self._told)

    def tell(self, collection: str, document: Document) -> Told:
        """What a document says that is there."""
        return self._told[collection, path_of(document.id)]

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the records, by id."""
        if self._versions is None:
            self._versions = record_versions(self.collections)
        return self._versions

    @property
    def live(self) -> tuple[bytes, list[int]]:
        """A name for what is stored without versions, and these in the same order."""
        if self._live is None:
            there: list[Any] = []
            versions: list[int] = []
            for (_, name), collection in sorted(self.collections.items()):
                for path in collection._paths:
                    named, mentioned = self._told[name, path]
                    there.append(named)
                    versions += mentioned
            self._live = digest(there), versions
        return self._live


class Board:
    """Lets messages through to shelves."""

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._store = MemoryDocumentStore(max_document_bytes=DOCUMENT)

    def send(
        self, shelf: Shelf, message: Message, count: int
    ) -> tuple[Any, JskvError | None, Shelf]:
        """The answer to a message or the error, and the shelf afterwards.

        Args:
            shelf: Where it arrives.
            message: The message.
            count: The number of what it puts.
        """
        store = self._store
        collections = store._collections = dict(shelf.collections)
        for area in message.puts + message.purges:
            for name in area.collections:
                found = collections.get(("default", name))
                if found is not None:
                    collections["default", name] = copy_collection(found)
        stamp(store, self._stamps, message, count)
        answer, error = run_now(lambda: message.act(store, message))
        if error is not None or not message.changes:
            return answer, error, shelf
        for area in message.puts:
            (name,) = area.collections
            return answer, None, shelf.with_document(collections, name, answer[0])
        if _size(collections) == _size(shelf.collections):
            return answer, None, shelf
        return answer, None, shelf.without(collections)


def stamp(
    store: MemoryDocumentStore, stamps: Stamps, message: Message, count: int
) -> None:
    """Set the version that a store gives next."""
    for area in message.puts:
        (name,) = area.collections
        store._version = stamps.version(count, name, area.path) - 1


def _size(collections: Collections) -> int:
    return sum(len(each.documents) for each in collections.values())
