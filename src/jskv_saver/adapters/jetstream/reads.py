"""Reading a bucket: by key, by filter, many at once, and the names alone."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from jskv_saver._nats.faults import ApiError, Status, error_of
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.tap import Answer, Reply, status_of
from jskv_saver._nats.waiting import Message, NobodyListensError
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.entry import (
    Entry,
    checked_filter,
    checked_key,
    entry_of,
    entry_of_stored,
    is_plain,
    pending_after,
)
from jskv_saver.errors import StoreUnavailableError

# The server answers at most 1024 subjects at once (ADR-31), and cuts a client off that
# has 64 MB to receive.
_CHUNK: Final = 1000
_REQUEST_BYTES: Final = 256 * 1024
_REQUEST_FRAME: Final = 128
"""Bytes of a read of many without its filters, at most."""
_PAGE_BYTES: Final = 4 * 1024 * 1024
_IN_FLIGHT_BYTES: Final = 32 * 1024 * 1024
_SINGLE_READS: Final = 64
_LISTING_ATTEMPTS: Final = 5
_log: Final = logging.getLogger(__name__)


class Reads:
    """The reads of one bucket; `direct` and `replicated` as its settings say.

    Args:
        requests: Sends them.
        api: Of the bucket.
    """

    def __init__(self, requests: Requests, api: Api) -> None:
        self._requests: Final = requests
        self._api: Final = api
        self._from_stream: Final = f"\r\nNats-Stream: {api.stream}\r\n".encode()
        self._pages = asyncio.Semaphore(_IN_FLIGHT_BYTES // _PAGE_BYTES)
        self._singles = asyncio.Semaphore(_SINGLE_READS)
        self.direct = True
        self.replicated = False

    async def get(self, key: str) -> Entry | None:
        """The newest message of a key, a marker too; a follower's word, if need be."""
        if not self.direct:
            return await self.stored(key)
        return await self._direct(self._api.direct_key + checked_key(key), b"", key)

    async def last(self, filter: str) -> Entry | None:
        """The newest message under a filter, a marker too; the leader's word."""
        if self.replicated or not self.direct:
            return await self.stored(filter)
        request = json.dumps({"last_by_subj": self._api.keys + checked_filter(filter)})
        return await self._direct(self._api.direct, request.encode(), filter)

    async def _direct(self, subject: str, payload: bytes, filter: str) -> Entry | None:
        sent = Message(subject, payload)
        try:
            msg = await self._requests.request(sent, write=False)
        except NobodyListensError:
            msg = await self._api.again(
                lambda: self._requests.request(sent, write=False)
            )
        if status_of(msg) is None:
            entry = entry_of(msg, len(self._api.keys))
            if self._is_foreign(msg):
                return await self.stored(filter)
            return entry
        self._check_status(msg)
        return None

    def _is_foreign(self, msg: Answer) -> bool:
        """Whether a mirror has answered, which may lag: the leader is asked then."""
        if isinstance(msg, Reply):
            foreign = not msg.has(self._from_stream)
        else:
            foreign = (msg.headers or {}).get("Nats-Stream") != self._api.stream
        if foreign and self.direct:
            self.direct = False
            _log.warning(
                "a mirror answers reads of bucket %r, and may lag: they go to its "
                "leader, one by one; set mirror_direct=false on the mirror",
                self._api.bucket,
                extra={"event": "jskv.bucket.mirrored"},
            )
        return foreign

    async def stored(self, filter: str) -> Entry | None:
        """The newest message under a filter, from the leader."""
        request = {"last_by_subj": self._api.keys + checked_filter(filter)}
        answer = await self._api.ask(f"STREAM.MSG.GET.{self._api.stream}", request)
        error = answer.get("error")
        if error is None:
            return entry_of_stored(answer["message"], len(self._api.keys))
        if error.get("err_code") == ApiError.NO_MESSAGE_FOUND:
            return None
        raise error_of(error, bucket=self._api.bucket)

    async def many(self, filters: Sequence[str]) -> list[Entry]:
        """The newest messages under filters, without markers, by revision."""
        wanted = list(dict.fromkeys(map(checked_filter, filters)))
        if not wanted:
            return []
        if not self.direct:
            entries = await self.from_leader(await self._keys_of(wanted))
        else:
            parts = self._chunked(wanted)
            if len(parts) == 1:
                # The usual case without the detour of a task.
                entries = await self._chunk(wanted)
            else:
                chunks = await asyncio.gather(*map(self._chunk, parts))
                entries = [entry for chunk in chunks for entry in chunk]
        # What was written again between two pages is there twice, the newer one last.
        newest = {entry.key: entry for entry in entries}
        found = (entry for entry in newest.values() if not entry.marker)
        return sorted(found, key=lambda entry: entry.revision)

    async def newer(self, filter: str, since: int, most: int) -> list[Entry] | None:
        """The messages under a filter from a revision on, markers too, in order.

        None: the first of them has not that revision, they are `most` or large, or not
        the leader has told them.
        """
        request: dict[str, Any] = {
            "next_by_subj": self._api.keys + checked_filter(filter),
            "seq": since,
            "batch": most,
            "max_bytes": _PAGE_BYTES,
        }
        async with self._pages:
            messages = await self._page(json.dumps(request).encode())
        end = messages.pop()
        if status_of(end) != Status.END_OF_BATCH:
            self._check_status(end)
        if not messages or self._is_foreign(messages[-1]):
            return None
        entries = [entry_of(msg, len(self._api.keys)) for msg in messages]
        # How many follow 2.11 does not tell aright; what was not cut is surely short.
        size = sum([len(entry.value) for entry in entries])
        if len(entries) == most or size > _PAGE_BYTES // 2:
            return None
        return entries if entries[0].revision == since else None

    async def names(self, filters: Sequence[str]) -> list[str]:
        """The keys under filters, sorted, each once; the leader's word."""
        wanted = list(dict.fromkeys(map(checked_filter, filters)))
        if len(wanted) == 1:
            return await self._names(wanted[0])
        lists = await asyncio.gather(*map(self._names, wanted))
        return sorted({name for names in lists for name in names})

    async def _names(self, filter: str) -> list[str]:
        for _ in range(_LISTING_ATTEMPTS):
            names = await self._listing(filter)
            if names is not None:
                return names
        raise StoreUnavailableError(
            f"bucket {self._api.bucket!r} changes too fast to list {filter!r}"
        )

    async def _listing(self, filter: str) -> list[str] | None:
        """Page by page (of 100 000); None when names before a page have gone."""
        names: list[str] = []
        while True:
            # The page begins with the last name of the one before: if it does not,
            # the rest has moved, and some names would be on neither.
            request = {
                "subjects_filter": self._api.keys + filter,
                "offset": max(len(names) - 1, 0),
            }
            answer = await self._api.call("STREAM.INFO", request)
            page = sorted(answer.get("state", {}).get("subjects") or ())
            if names and (not page or page[0][len(self._api.keys) :] != names.pop()):
                return None
            names.extend(subject[len(self._api.keys) :] for subject in page)
            if len(names) >= int(answer.get("total", 0)) or len(page) < 2:
                return names

    async def _keys_of(self, filters: Sequence[str]) -> list[str]:
        plain = [filter for filter in filters if is_plain(filter)]
        wild = [filter for filter in filters if not is_plain(filter)]
        return list(dict.fromkeys([*plain, *(await self.names(wild) if wild else ())]))

    async def from_leader(self, keys: Iterable[str]) -> list[Entry]:
        """The newest messages of keys, markers too, each from the leader."""

        async def one(key: str) -> Entry | None:
            async with self._singles:
                return await self.stored(key)

        entries = await asyncio.gather(*map(one, keys))
        return [entry for entry in entries if entry is not None]

    async def _chunk(self, filters: Sequence[str]) -> list[Entry]:
        entries = await self._multi_last(filters)
        if entries is not None:
            return entries
        # More than 1024 matches: read their names first.
        keys = await self._keys_of(filters)
        result: list[Entry] = []
        for chunk in self._chunked(keys):
            result.extend(await self._multi_last(chunk) or ())
        return result

    async def _multi_last(self, filters: Sequence[str]) -> list[Entry] | None:
        """Read page by page; None: too many matches."""
        request: dict[str, Any] = {
            "multi_last": [self._api.keys + filter for filter in filters],
            "max_bytes": _PAGE_BYTES,
        }
        entries: list[Entry] = []
        while True:
            async with self._pages:
                messages = await self._page(json.dumps(request).encode())
            end = messages.pop()
            status = status_of(end)
            if messages and self._is_foreign(messages[-1]):
                return await self.from_leader(await self._keys_of(filters))
            entries.extend(entry_of(msg, len(self._api.keys)) for msg in messages)
            if status == Status.TOO_MANY_RESULTS:
                return None
            if status != Status.END_OF_BATCH:
                self._check_status(end)
                return entries
            if not messages or pending_after(messages[-1]) == 0:
                return entries
            # Without `up_to_seq`: what is written again between two pages would be on
            # none of them. So it may be on both.
            request["seq"] = entries[-1].revision + 1

    async def _page(self, request: bytes) -> list[Answer]:
        try:
            return await self._requests.collect(self._api.direct, request)
        except NobodyListensError:
            return await self._api.again(
                lambda: self._requests.collect(self._api.direct, request)
            )

    def _check_status(self, msg: Answer) -> None:
        """Nothing was found, or an error."""
        status = status_of(msg)
        if status == Status.NOT_FOUND:
            return
        raise StoreUnavailableError(
            f"bucket {self._api.bucket!r} could not be read: {status} "
            f"{(msg.headers or {}).get('Description', '')}"
        )

    def _chunked(self, filters: Sequence[str]) -> list[Sequence[str]]:
        """Cut into what one request takes, and the server at hand."""
        client = self._requests.client
        room = _REQUEST_BYTES
        if client is not None:
            room = min(room, client.max_payload)
        room -= _REQUEST_FRAME
        # In JSON: the quotes, a comma and a space.
        each = len(self._api.keys) + 4
        if (
            len(filters) <= _CHUNK
            and sum(map(len, filters), each * len(filters)) <= room
        ):
            return [filters]
        chunks: list[list[str]] = [[]]
        size = 0
        for filter in filters:
            if chunks[-1] and (
                len(chunks[-1]) >= _CHUNK or size + len(filter) + each > room
            ):
                chunks.append([])
                size = 0
            chunks[-1].append(filter)
            size += len(filter) + each
        return list(chunks)
