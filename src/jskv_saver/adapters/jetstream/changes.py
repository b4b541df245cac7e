"""A feed of a bucket as changes of documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from jskv_saver._nats.tokens import Digested
from jskv_saver._portal import Portal
from jskv_saver.adapters.jetstream import codec, keys
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.feed import Feed, Seen
from jskv_saver.adapters.jetstream.records import decode_record
from jskv_saver.document.model import Change, id_of
from jskv_saver.document.names import PatternPath
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

_log: Final = logging.getLogger(__name__)


class BucketChanges:
    """The changes of some documents of a bucket.

    Args:
        portal: Where the bucket lives.
        bucket: The bucket.
        namespace: The owner; None: all.
        reads: What is followed.
        removals: Ids whose removal is told.
        after: The version to go on after; None: from now on.
        followed: Has those that are begun and not closed.
    """

    def __init__(
        self,
        portal: Portal,
        bucket: Bucket,
        namespace: str | None,
        reads: Sequence[tuple[str, PatternPath]],
        removals: Sequence[PatternPath],
        after: int | None,
        followed: set[BucketChanges],
    ) -> None:
        self._portal = portal
        self._bucket = bucket
        self._namespace = namespace
        self._filters = [
            *(keys.change_filter(namespace, name, path) for name, path in reads),
            *(keys.removal_filter(namespace, pattern) for pattern in removals),
        ]
        self._after = after
        self._feed: Feed | None = None
        self._followed = followed

    async def open(self) -> None:
        await self._portal.arun(self._open)

    async def next(self) -> Change:
        return await self._portal.arun(self._next)

    async def close(self) -> None:
        await self._portal.arun(self.end)

    async def end(self) -> None:
        """As `close`, for one who lives on the same portal."""
        feed = self._its_feed()
        self._followed.discard(self)
        await feed.close()

    def _its_feed(self) -> Feed:
        if self._feed is None:
            self._feed = self._bucket.feed(self._filters, self._after)
            self._followed.add(self)
        return self._feed

    async def _open(self) -> None:
        await self._its_feed().open()

    async def _next(self) -> Change:
        feed = self._its_feed()
        while True:
            seen = await feed.next()
            try:
                change = self._change(seen)
            except (CorruptDocumentError, UnsupportedFormatError) as exc:
                # Another program's key, or what `verify` finds: no end of the feed.
                _log.warning(
                    "left out of the changes: %s",
                    exc,
                    extra={"event": "jskv.watch.left_out"},
                )
                continue
            if change is not None:
                return change

    def _change(self, seen: Seen) -> Change | None:
        entry = seen.entry
        owner, removal = keys.owner_and_removal(entry.key)
        namespace = self._namespace
        if namespace is None:
            if isinstance(owner, Digested):
                # As in `namespaces`: the name of such an owner is not in the key.
                return None
            namespace = owner
        collection = "" if removal else entry.key.split(".", 1)[0]
        if not entry.marker:
            if removal:
                return None
            document = decode_record(entry).document
            return Change(
                namespace, collection, document.id, entry.revision, seen.at, document
            )
        path = keys.path_of_key(entry.key)
        if not keys.is_complete(path):
            if not entry.value:
                # A marker of a stock tool on a key that does not hold its id.
                return None
            kept = codec.decode(entry.key, entry.value).path
            if kept is None:
                return None
            path = kept
        id = id_of(path)
        return Change(namespace, collection, id, entry.revision, seen.at, None)
