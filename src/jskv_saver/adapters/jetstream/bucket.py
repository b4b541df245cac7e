"""Every JetStream call that this package makes, once each: bytes and revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nats.aio.client import Client

from jskv_saver.adapters.jetstream.options import DEFAULT_BUCKET, BucketOptions


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest message of a key.

    Attributes:
        key: The key.
        value: Its bytes; empty for a marker.
        revision: Its sequence in the stream.
        marker: It says that the key was deleted or has expired.
    """

    key: str
    value: bytes
    revision: int
    marker: bool = False


class Put(NamedTuple):
    """One write of `put_many`.

    Attributes:
        key: The key.
        value: The bytes.
        expected: Store only if this is the newest revision under `expected_filter`
            (0: nothing is there); None: in any case.
        expected_filter: The filter that `expected` is about; None: the key itself.
    """

    key: str
    value: bytes
    expected: int | None = None
    expected_filter: str | None = None


class Bucket:
    """A KV bucket.

    Usable after `open()`; the other calls open by themselves when that was not done.
    """

    def __init__(
        self,
        client: Client | str | Sequence[str] | None = None,
        bucket: str = DEFAULT_BUCKET,
        options: BucketOptions | None = None,
        *,
        connect: Mapping[str, Any] | None = None,
        role: str = "store",
    ) -> None:
        """No I/O.

        Args:
            client: A connected client, which stays the caller's; or the addresses of
                servers; None: as the environment says.
            bucket: Name of the bucket.
            options: How to make it if it is not there, and how to reach it.
            connect: Options of `nats.connect`, for a connection of the bucket's own.
            role: Stands in the name of that connection.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Name of the bucket."""
        raise NotImplementedError

    @property
    def replicated(self) -> bool:
        """Whether `get` and `get_many` may be served by a follower that lags."""
        raise NotImplementedError

    @property
    def atomic(self) -> bool:
        """Whether `put_atomic` can be used."""
        raise NotImplementedError

    @property
    def client(self) -> Client:
        """The client in use; after `open`."""
        raise NotImplementedError

    async def open(self) -> None:
        """Bind the bucket, or make it if there is none. Idempotent.

        Raises:
            UnsuitableBucketError: A setting of an existing bucket does not fit.
            UnsupportedServerError: The server is older than 2.11.
        """
        raise NotImplementedError

    def max_value(self, key: str = "") -> int:
        """How many bytes a value may have; before `open`, on a stock server."""
        raise NotImplementedError

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        expected: int | None = None,
        expected_filter: str | None = None,
        ttl: float | None = None,
    ) -> int:
        """Store a value and return its revision.

        Args:
            key: The key.
            value: The bytes.
            expected: Store only if this is the newest revision under
                `expected_filter`, markers included; 0: nothing is there.
            expected_filter: The filter that `expected` is about, the key by default.
            ttl: Seconds after which the server removes it, at least 1, rounded up.

        Raises:
            VersionConflictError: Another revision is the newest; nothing was stored.
            DocumentTooLargeError: Nothing was sent.
            StorageFullError: Nothing was stored.
            UnknownOutcomeError: No answer; it may be stored.
        """
        raise NotImplementedError

    async def put_many(
        self, writes: Sequence[Put], *, exact: bool = True, relaxed: bool = False
    ) -> list[int]:
        """Store values in order and stop at the first failure: a prefix is stored.

        Args:
            writes: The writes.
            exact: Return the revision of each write, which takes one more round trip
                when there are several; else only the last one's, the others are 0.
            relaxed: Where the server has no fast batches: send neighbours without a
                condition at once; when one of them fails, others after it may be
                stored (all of them before the next conditional or the last write is
                sent). Without it such a server gets one write at a time.

        Raises:
            JskvError: Of the first write that failed, as `put`.
        """
        raise NotImplementedError

    async def put_atomic(self, writes: Sequence[Put]) -> list[int]:
        """Store all values or none; needs `atomic`. About 2.5 ms on file storage.

        Raises:
            VersionConflictError: A condition does not hold; nothing was stored.
        """
        raise NotImplementedError

    async def get(self, key: str) -> Entry | None:
        """The key's entry, or None when there is none or it was deleted."""
        raise NotImplementedError

    async def get_from_leader(self, key: str) -> Entry | None:
        """As `get`, never stale: asks the stream's leader."""
        raise NotImplementedError

    async def last(self, filter: str) -> Entry | None:
        """The newest message under a filter, which may be a marker; never stale."""
        raise NotImplementedError

    async def get_many(self, filters: Sequence[str]) -> list[Entry]:
        """The entries under keys and filters, without markers, by revision.

        On a replicated bucket a missing entry may be one that a follower does not
        have yet: silence is not absence; ask `get_from_leader`.
        """
        raise NotImplementedError

    async def names(self, filters: Sequence[str]) -> list[str]:
        """The keys under filters, sorted, each once; never stale.

        A key whose newest message is a marker (of a stock tool) is among them.
        """
        raise NotImplementedError

    async def delete(self, key: str, expected: int) -> None:
        """Remove a key if `expected` is its newest revision.

        A marker is written under the condition and purged: nothing stays.

        Raises:
            VersionConflictError: Another revision is the newest; nothing was removed.
        """
        raise NotImplementedError

    async def purge(self, filter: str, *, below: int | None = None) -> int:
        """Remove what is under a filter at once, without markers.

        Args:
            filter: A key, or a filter with at least one literal token.
            below: Only revisions smaller than this one.

        Returns:
            How many messages were removed.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Close the bucket's own connection, or leave the caller's. Idempotent."""
        raise NotImplementedError
