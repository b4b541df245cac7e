"""A KV bucket: bytes and revisions, no documents."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nats.aio.client import Client

from jskv_saver._nats.connection import Connection
from jskv_saver._nats.requests import Requests
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.entry import Entry, Put
from jskv_saver.adapters.jetstream.feed import Feed
from jskv_saver.adapters.jetstream.options import DEFAULT_BUCKET, BucketOptions
from jskv_saver.adapters.jetstream.reads import Reads
from jskv_saver.adapters.jetstream.stream import (
    Features,
    check,
    level_of_version,
    stream_config,
    too_old,
)
from jskv_saver.adapters.jetstream.writes import Writes
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
    UnsuitableBucketError,
)

__all__ = ["Bucket", "BucketOptions", "Entry", "Put"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+").fullmatch

_log: Final = logging.getLogger(__name__)


class Bucket:
    """A KV bucket.

    Every call opens the bucket first if `open` was not called. No call is repeated by
    itself: what was sent and has no answer raises `StoreUnavailableError` for a read
    and `UnknownOutcomeError` for a write.
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
        """No I/O but for files that the environment names.

        Args:
            client: A connected client, which stays the caller's; or the addresses of
                servers; None: as the environment says.
            bucket: Name of the bucket.
            options: How to make it if it is not there, and how to reach it.
            connect: Options of `nats.connect`, for a connection of the bucket's own.
            role: Stands in the name of that connection.

        Raises:
            InvalidRequestError: A name or an option breaks a rule.
        """
        if not isinstance(bucket, str) or _NAME(bucket) is None:
            raise InvalidRequestError(f"{bucket!r} is no legal name of a bucket")
        self._name: Final = bucket
        self._options: Final = options or BucketOptions()
        connection = Connection(
            client, connect, role=role, on_change=lambda: self._requests.look_around()
        )
        self._requests: Final = Requests(
            connection, timeout=self._options.timeout, bucket=bucket
        )
        settings = connection.settings
        self._api: Final = Api(
            self._requests,
            bucket,
            domain=self._options.domain or settings.domain,
            api_prefix=self._options.api_prefix or settings.api_prefix,
        )
        self._reads: Final = Reads(self._requests, self._api)
        self._writes: Final = Writes(self._requests, self._api, self._reads)
        self._features: Features | None = None
        self._opening: asyncio.Task[None] | None = None
        self._bound: object = None

    @property
    def name(self) -> str:
        """Name of the bucket."""
        return self._name

    @property
    def read_only(self) -> bool:
        """Whether every call that writes is refused."""
        return self._options.read_only

    @property
    def replicated(self) -> bool:
        """Whether `get` and `get_many` may be served by a follower that lags."""
        return self._features is not None and self._features.replicated

    @property
    def history(self) -> int:
        """How many revisions of a key are kept; more than one only where others did."""
        return 1 if self._features is None else self._features.history

    @property
    def next_revision(self) -> int | None:
        """What the next write gets if nobody else writes before; None: not known.

        Only where the server has fast batches: a condition on it saves a round trip.
        """
        features, last = self._writes.features, self._writes.last_known
        if features is None or not (features.fast and last):
            return None
        # Replicas: a condition on a message that is still being replicated fails.
        if features.replicated or self._bound != self._requests.generation:
            return None
        return None if self._writes.under_way else last + 1

    @property
    def client(self) -> Client:
        """The client in use; after `open`."""
        client = self._requests.client
        if client is None:
            raise StoreUnavailableError(f"bucket {self._name!r} is not open")
        return client

    async def open(self) -> None:
        """Bind the bucket, or make it if there is none. Idempotent.

        Raises:
            UnsuitableBucketError: A setting of an existing bucket does not fit.
            UnsupportedServerError: The server is older than 2.11.
        """
        if self._features is None or self._bound != self._requests.generation:
            await self._open_once()

    def max_value(self, key: str = "") -> int:
        """How many bytes a value may have; before `open`, on a stock server."""
        return self._writes.max_value(key)

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
            ttl: Seconds after which the server removes it, 1 at least; None: never.

        Raises:
            UnsuitableBucketError: With `ttl`: entries cannot expire here.
            VersionConflictError: Another revision is the newest; nothing was stored.
            DocumentTooLargeError: Nothing was sent.
            StorageFullError: Nothing was stored.
            UnknownOutcomeError: No answer; it may be stored.
        """
        self._check_writable()
        if self._features is None:
            await self._open_once()
        if ttl is not None:
            self._check_expiry()
        return await self._writes.put(Put(key, value, expected, expected_filter, ttl))

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
        self._check_writable()
        if self._features is None or self._bound != self._requests.generation:
            # Another server may be another release: it must know fast batches, or it
            # would store their messages one by one.
            await self._open_once()
        if not writes:
            return []
        return await self._writes.put_in_order(writes, exact=exact, relaxed=relaxed)

    async def get(self, key: str) -> Entry | None:
        """The key's entry, or None when there is none or it was deleted."""
        if self._features is None:
            await self._open_once()
        entry = await self._reads.get(key)
        return None if entry is None or entry.marker else entry

    async def get_from_leader(self, key: str) -> Entry | None:
        """As `get`, never stale: asks the stream's leader."""
        if self._features is None:
            await self._open_once()
        if not self.replicated:
            return await self.get(key)
        entry = await self._reads.stored(key)
        return None if entry is None or entry.marker else entry

    async def last(self, filter: str) -> Entry | None:
        """The newest message under a filter, which may be a marker; never stale."""
        if self._features is None:
            await self._open_once()
        return await self._reads.last(filter)

    async def get_many(self, filters: Sequence[str]) -> list[Entry]:
        """The entries under keys and filters, without markers, by revision.

        On a replicated bucket a missing entry may be one that a follower does not
        have yet: silence is not absence; ask `get_from_leader`.
        """
        if self._features is None:
            await self._open_once()
        return await self._reads.many(filters)

    @property
    def finds_newer(self) -> bool:
        """Whether the leader answers all reads at once, with the newest revisions."""
        return self._reads.direct and not self.replicated and self.history == 1

    async def newer(self, filter: str, since: int, most: int) -> list[Entry] | None:
        """The entries under a filter from a revision on, in order.

        None: the first has another revision, they are more than `most`, or one is gone
        and has left a marker, or it cannot be told.
        """
        if self._features is None:
            await self._open_once()
        if not self.finds_newer:
            return None
        entries = await self._reads.newer(filter, since, most)
        if entries and any(entry.marker for entry in entries):
            return None
        return entries

    async def names(self, filters: Sequence[str]) -> list[str]:
        """The keys under filters, sorted, each once; never stale.

        A key whose newest message is a marker (of a stock tool) is among them.
        """
        if self._features is None:
            await self._open_once()
        return await self._reads.names(filters)

    async def delete(self, key: str, expected: int) -> None:
        """Remove a key if `expected` is its newest revision.

        A marker is written under the condition and purged: nothing stays.

        Raises:
            VersionConflictError: Another revision is the newest; nothing was removed.
        """
        self._check_writable()
        if self._features is None:
            await self._open_once()
        await self._writes.delete(key, expected)

    async def purge(self, filter: str, *, below: int | None = None) -> int:
        """Remove what is under a filter at once, without markers.

        Args:
            filter: A key, or a filter with at least one literal token.
            below: Only revisions smaller than this one.

        Returns:
            How many messages were removed.
        """
        self._check_writable()
        if self._features is None:
            await self._open_once()
        return await self._writes.purge(filter, below=below)

    async def announce(self, key: str, value: bytes = b"") -> bool:
        """Store a purge marker that goes by itself after a minute.

        Returns:
            False where the bucket keeps no entry for a time: nothing was stored.
        """
        self._check_writable()
        if self._features is None:
            await self._open_once()
        return await self._writes.announce(key, value)

    def feed(self, filters: Sequence[str], after: int | None) -> Feed:
        """The messages under filters, as they are stored; markers too.

        Args:
            filters: None of them meets a key of another one.
            after: The revision to go on after; None: from now on.
        """
        return Feed(self.open, self._requests, self._api, filters, after)

    async def close(self) -> None:
        """Close the bucket's own connection, or leave the caller's. Idempotent."""
        await self._requests.close()

    def _check_writable(self) -> None:
        if self._options.read_only:
            raise InvalidRequestError(
                f"bucket {self._name!r} was opened with read_only=True: nothing was "
                "sent; open the bucket itself, without it, to write"
            )

    def _check_expiry(self) -> None:
        assert self._features is not None
        if not self._features.ttl:
            raise UnsuitableBucketError(
                f"bucket {self._name!r} has allow_msg_ttl = False: what must expire "
                "would stay for ever; nothing was stored, set allow_msg_ttl on its "
                f"stream KV_{self._name} or name another bucket",
                bucket=self._name,
                setting="allow_msg_ttl",
            )

    async def _open_once(self) -> None:
        """Open once for all that wait for it."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        # Shielded: a caller that gives up does not stop the others.
        await asyncio.shield(self._opening)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening = None
        if not task.cancelled():
            # Marks an exception as seen when all callers have given up.
            task.exception()

    async def _open(self) -> None:
        client = await self._requests.ready()
        generation = self._requests.generation
        release = client.connected_server_version
        version = f"{release.major}.{release.minor}.{release.patch}"
        config = await self._api.config()
        if config is None:
            if self._features is not None:
                raise await self._api.unanswered()
            if self._options.read_only or not self._options.create:
                raise BucketNotFoundError(
                    f"there is no bucket {self._name!r}", bucket=self._name
                )
            config = await self._create(release.major, release.minor, version)
        read_only = self._options.read_only
        features = check(self._name, config, version, read_only=read_only)
        if features.origin is not None:
            self._api.mirrors(features.origin)
        self._reads.direct = features.direct
        self._reads.replicated = features.replicated
        self._writes.features = features
        self._writes.last_known = 0
        self._features = features
        self._bound = generation

    async def _create(self, major: int, minor: int, version: str) -> Mapping[str, Any]:
        level = await self._api.level()
        if level is None:
            level = level_of_version(major, minor)
        if level == 0:
            # Before anything is made: it would drop the settings it does not know.
            raise too_old(version)
        made = await self._api.create(stream_config(self._name, self._options, level))
        _log.info("bucket %r is made", self._name, extra={"event": "jskv.bucket.made"})
        return made
