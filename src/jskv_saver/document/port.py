"""The contract of a document store. An adapter inherits nothing; it has this shape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from jskv_saver.document.model import (
    Change,
    CollectionSpec,
    Data,
    Document,
    DocumentId,
    Fence,
    Limits,
    Order,
    Page,
    Pattern,
    Predicate,
    ReadKey,
    Reads,
    Write,
)


@runtime_checkable
class DocumentStore(Protocol):
    """Documents in collections, each under the namespace of its owner.

    Values are `str, int, float, bool, None, bytes, datetime, list, dict[str, ...]`,
    nested at most 32 levels deep, of exactly these types. What was put is what is
    read: int stays int (signed 64 bits), bytes stay bytes, datetimes are aware and
    come back in UTC to the microsecond.

    Every method raises, besides what it names itself: `InvalidRequestError` before
    anything is sent when an argument breaks a rule, `StoreUnavailableError` when no
    server answers a read or nothing was sent, `PermissionDeniedError`,
    `BucketNotFoundError`, `StoreClosedError`. Those that write raise
    `UnknownOutcomeError` when the answer to a write is lost: it may have happened,
    and it is never repeated by itself. Those that read raise
    `CorruptDocumentError` or `UnsupportedFormatError`, naming the key.

    The collections `cp wr bl th rn ls ad pn` are the saver's: they exist in every
    namespace, take no declaration, are not listed and cannot be dropped.
    """

    @property
    def limits(self) -> Limits:
        """What one document may measure; before the first call, a stock server's."""
        ...

    async def ensure_collection(self, namespace: str, spec: CollectionSpec) -> None:
        """Declare a collection, or extend its declaration. Idempotent.

        What is declared already stays: fields and constraints are added, `indexed`
        and `unique` only ever become true. Present documents are indexed.

        Raises:
            IncompatibleDeclarationError: A field's type differs from the declared
                one, or a present document breaks the declaration, with `document`
                its id; nothing was changed.
        """
        ...

    async def drop_collection(self, namespace: str, name: str) -> None:
        """Remove a collection, its documents and its indexes.

        Raises:
            CollectionNotFoundError: There is no such collection.
        """
        ...

    async def collections(self, namespace: str) -> Sequence[str]:
        """The names of the declared collections, sorted; empty for an unknown owner."""
        ...

    async def put(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        if_version: int | None = None,
        if_latest: Fence | None = None,
    ) -> Document:
        """Replace the whole document and return it with its new version.

        Args:
            namespace: The owner.
            collection: A declared collection, or one of the saver's.
            id: One or more segments of any Unicode without NUL.
            data: The whole document, at most `limits.data` bytes encoded.
            if_version: Store only if the stored version is this one; 0 creates only.
            if_latest: Store only if the greatest version present below this prefix
                is this one (0: nothing is there). Excludes `if_version`.

        Returns:
            The document; its version is greater than every earlier one in the store.
            `created_at` is kept from the version it replaces, except in the saver's
            collections and in create-only and fenced puts, where it is its own time.

        Raises:
            CollectionNotFoundError: The collection is not declared.
            VersionConflictError: The condition does not hold; nothing was written.
            UniqueViolationError: Another document has these values.
            DocumentTooLargeError: The document or its key is too large.
            StorageFullError: Nothing was written.
        """
        ...

    async def get(self, namespace: str, collection: str, id: DocumentId) -> Document:
        """Read one document.

        Raises:
            CollectionNotFoundError: The collection is not declared.
            DocumentNotFoundError: No document has this id.
        """
        ...

    async def delete(
        self,
        namespace: str,
        collection: str | Sequence[str],
        id: Pattern,
        *,
        if_version: int | None = None,
        subtree: bool = False,
        below: int | None = None,
    ) -> None:
        """Remove a document, or everything below a prefix. Idempotent.

        Args:
            namespace: The owner.
            collection: One collection, or, with `subtree`, several.
            id: The document's id; with `subtree` a prefix, in which segments may be
                `ANY`: the documents strictly below it go, one at the prefix itself
                stays. An empty prefix is refused.
            if_version: Remove only this version. Not with `subtree` or `below`.
            subtree: Remove what is below the prefix, of any depth.
            below: Remove only versions smaller than this one.

        Raises:
            CollectionNotFoundError: A collection is not declared.
            VersionConflictError: With `if_version` (0 too): absent, or another
                version; nothing was removed.
        """
        ...

    async def find(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        limit: int = 100,
        cursor: str | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Page:
        """Read the documents that match all predicates, in order, a page at a time.

        Args:
            namespace: The owner.
            collection: A declared collection, or one of the saver's.
            where: Predicates `(field, operator, value)` on top-level fields.
            order_by: `(field, "asc" | "desc")`, with the id as tie-break in the same
                direction; None: by id, ascending. `("@version", "desc")`: newest
                written first; with `limit=1` and no predicate one round trip.
            limit: 1 to 1000.
            cursor: Of the page before, for the same namespace, collection,
                predicates, order and `within`; any other use raises.
            within: Only documents strictly below this prefix, or below one of a
                list of prefixes. A tuple is one prefix, a list several.

        Raises:
            CollectionNotFoundError: The collection is not declared.
        """
        ...

    async def count(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """How many documents match.

        Raises:
            CollectionNotFoundError: The collection is not declared.
        """
        ...

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        """Put documents in order, across collections; one round trip where it can be.

        Stops at the first failure, so that always a prefix of `writes` is stored.
        The condition of a write is an int (`if_version`), a pair of prefix and
        version (`if_latest`), or None.

        Args:
            namespace: The owner.
            writes: What to put.
            exact: Tell the version of every document, for which KV needs another
                round trip; else only the last one's is told, others may be 0.

        Returns:
            The stored documents, in the order of `writes`.

        Raises:
            As `put`: the error of the first write that failed. After
            `UnknownOutcomeError` any prefix may be stored.
        """
        ...

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        """Read documents by id, across collections; one round trip on KV.

        Args:
            namespace: The owner.
            reads: Pairs of collection and id. A segment of an id may be `ANY`: all
                documents of exactly that many segments that fit.

        Returns:
            The documents by collection and id (in normal form); missing ones absent.

        Raises:
            CollectionNotFoundError: A collection is not declared.
        """
        ...

    async def delete_many(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> int:
        """Remove the documents that match, each only at the version that was seen.

        Returns:
            How many were removed. One that changed meanwhile is left.
        """
        ...

    async def ids(
        self,
        namespace: str,
        collection: str,
        *,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Sequence[DocumentId]:
        """The ids of the documents, ascending by segments, without reading them.

        On KV the names of the keys, 0.7 us each (see docs/adr).
        """
        ...

    def iterate(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Document]:
        """All matching documents, page by page. Nothing is held between two pages."""
        ...

    async def close(self) -> None:
        """Release the client's own transport. Idempotent; storage goes on."""
        ...


@runtime_checkable
class ForeseesVersions(Protocol):
    """A store that has a guess at its next version, and puts many in one round trip."""

    @property
    def next_version(self) -> int | None:
        """The version that the next write gets if nobody writes before it; or None.

        A guess, never above the version that the write gets: a put whose condition
        rests on it is refused where it was wrong.
        """
        ...


@runtime_checkable
class FindsNewer(Protocol):
    """A store that finds what was written since, without reading the rest."""

    @property
    def finds_newer(self) -> bool:
        """Whether it does now; and whether what it reads is never older than that."""
        ...

    async def newer(
        self, namespace: str, collection: str, within: Pattern, since: int
    ) -> Sequence[Document] | None:
        """The saver's documents below a prefix from a version on, in their order.

        None: the first has another version, they are many, or they cannot be told.
        """
        ...


class Changes(Protocol):
    """Changes in a store, in the order of their versions."""

    async def open(self) -> None:
        """Begin: what is written from here on is given. `next` does it by itself."""
        ...

    async def next(self) -> Change:
        """Wait for the next change, however long that takes.

        A document that is written several times before it is given comes once, as it
        is then. Losing the server is waited out, and nothing is left out.

        Raises:
            InvalidRequestError: The version to go on after was never reached here.
            BucketNotFoundError: What was followed is gone.
            StoreClosedError: After `close`, and when the store is closed.
        """
        ...

    async def close(self) -> None:
        """End it, and leave nothing behind. Idempotent."""
        ...


@runtime_checkable
class OffersChanges(Protocol):
    """A store that tells what is written to it, by any process, as it is written."""

    def changes(
        self,
        namespace: str | None,
        reads: Reads,
        *,
        removals: Sequence[Pattern] = (),
        after: int | None = None,
    ) -> Changes:
        """Follow some of the saver's documents. Nothing is sent before `open`.

        A removal is told for a minute, and only where the store keeps a trace of it:
        that of everything below an id in all of the saver's collections.

        Args:
            namespace: The owner; None: all owners.
            reads: As for `get_many`: what to follow, in the saver's collections.
            removals: The ids whose removal, with everything below, is told.
            after: The version to go on after; 0: begin with what is there; None: with
                what is written from now on.
        """
        ...


@runtime_checkable
class ExpiresDocuments(Protocol):
    """A store that removes a document of the saver's collections in its own time."""

    async def put_expiring(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        ttl: float,
        if_version: int | None = None,
    ) -> Document:
        """As `put`, and the document is gone `ttl` seconds after it was stored.

        It may stay some tenths of a second longer. The store's clock alone counts.
        A later put of it has a time of its own, or none.

        Args:
            namespace: The owner.
            collection: One of the saver's.
            id: As for `put`.
            data: As for `put`.
            ttl: Seconds, 1 at least.
            if_version: As for `put`; what has expired is absent.

        Raises:
            UnsuitableBucketError: Nothing expires in this bucket.
            VersionConflictError: The condition does not hold; nothing was written.
        """
        ...
