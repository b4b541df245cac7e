"""Writing a bucket: one entry, several in order, and removing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from jskv_saver._nats.faults import ApiError, error_of, lost
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.tap import Answer, encode_headers
from jskv_saver._nats.waiting import Message, NobodyListensError
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.entry import (
    Put,
    checked_filter,
    checked_key,
)
from jskv_saver.adapters.jetstream.keys import KEY_LIMIT
from jskv_saver.adapters.jetstream.reads import Reads
from jskv_saver.adapters.jetstream.stream import Features
from jskv_saver.errors import (
    DocumentTooLargeError,
    JskvError,
    UnsuitableBucketError,
)

_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
_TTL: Final = "Nats-TTL"
_MARKER: Final = {"KV-Operation": "DEL"}
_PURGE_MARKER: Final = {"KV-Operation": "PURGE"}
# A marker that we could not purge, because we died in between, goes by itself.
_MARKER_TTL: Final = "60s"
_ACK: Final = re.compile(rb'\{"stream":"[^"]*",(?: ?"domain":"[^"]*",)? ?"seq":(\d+)')
_HEADER_ROOM: Final = 160
_STOCK_MAX_PAYLOAD: Final = 1024 * 1024
# A file store refuses longer records.
_RECORD_LIMIT: Final = 32 * 1024 * 1024 - 4096
_CONTROL_LINE: Final = 4096
_SIZES: Final = 32
# Of a fast batch, and of puts that are sent at once: what one connection carries well.
_WINDOW_BYTES: Final = 4 * 1024 * 1024
_WINDOW: Final = 500


class Writes:
    """The writes of one bucket.

    Args:
        requests: Sends them.
        api: Of the bucket.
        reads: Tell revisions that a batch does not.
    """

    def __init__(self, requests: Requests, api: Api, reads: Reads) -> None:
        self._requests: Final = requests
        self._api: Final = api
        self._reads: Final = reads
        self.features: Features | None = None
        self.last_known = 0
        """The revision that the last write here got; 0: none since it was bound."""
        self.under_way = 0
        """How many writes of ours have no answer yet."""

    def max_value(self, key: str) -> int:
        """Bytes that a value under this key may have, with conditions and a TTL.

        A condition may name a filter twice as long as the key, or of 900 bytes.
        """
        room = _HEADER_ROOM + 2 * (len(self._api.keys) + max(len(key), KEY_LIMIT // 8))
        return self._max_message() - room

    def max_key(self) -> int:
        """Bytes that a key may have, so that no line exceeds the server's limit."""
        front = max(len(self._api.direct_key), len(self._api.puts))
        reply = self._requests.reply_length
        return min(KEY_LIMIT, _CONTROL_LINE - front - reply - _SIZES)

    def check_key(self, key: str) -> None:
        """Refuse a key that is illegal or too long, before it is sent."""
        checked_key(key)
        if len(key) > (limit := self.max_key()):
            raise DocumentTooLargeError(
                f"a key of {len(key)} bytes is too long (at most {limit})",
                size=len(key),
                limit=limit,
            )

    async def put(self, put: Put) -> int:
        """Store a value and return its revision."""
        return await self._put(put, self._message(put, self._headers(put)))

    async def _put(self, put: Put, message: Message) -> int:
        return self._revision(await self._send(message), put)

    async def put_in_order(
        self, puts: Sequence[Put], *, exact: bool, relaxed: bool
    ) -> list[int]:
        """Store values in order up to the first failure, and return the revisions."""
        messages = [self._message(put, self._headers(put)) for put in puts]
        if len(puts) == 1:
            return [await self._put(puts[0], messages[0])]
        features = self.features
        if features is None or not features.fast:
            return await self._puts(puts, relaxed=relaxed)
        revisions: list[int] = []
        for first, last in _windows(messages):
            if last - first == 1:
                revisions.append(await self._put(puts[first], messages[first]))
                continue
            try:
                sequence = await self._fast(messages[first:last], puts[first:last])
            except UnsuitableBucketError:
                # The setting was taken away; nothing of this window is stored.
                self.features = replace(features, fast=False)
                rest = await self._puts(puts[first:], relaxed=relaxed)
                return [*revisions, *rest]
            revisions.extend(0 for _ in range(last - first - 1))
            revisions.append(sequence)
        if exact:
            await self._fill_in(puts, revisions)
        return revisions

    async def delete(self, key: str, expected: int) -> None:
        """Remove a key if `expected` is its newest revision."""
        headers = {**_MARKER, _EXPECTED: str(expected)}
        features = self.features
        if features is not None and features.ttl and features.history == 1:
            headers[_TTL] = _MARKER_TTL
        put = Put(key, b"", expected)
        msg = await self._send(self._message(put, headers))
        marker = self._revision(msg, put)
        await self.purge(key, below=marker + 1)

    async def announce(self, key: str, value: bytes) -> bool:
        """Store a purge marker (ADR-8) that goes by itself; False: none can go so."""
        if self.features is None or not self.features.ttl:
            return False
        put = Put(key, value)
        headers = {**_PURGE_MARKER, _TTL: _MARKER_TTL}
        self._revision(await self._send(self._message(put, headers)), put)
        return True

    async def purge(self, filter: str, *, below: int | None) -> int:
        """Remove what is under a filter and return how many messages that were."""
        request: dict[str, Any] = {"filter": self._api.keys + checked_filter(filter)}
        if below is not None:
            if below <= 1:
                return 0
            request["seq"] = below
        answer = await self._api.call("STREAM.PURGE", request, write=True)
        return int(answer["purged"])

    def _max_message(self) -> int:
        client, features = self._requests.client, self.features
        limit = _STOCK_MAX_PAYLOAD if client is None else client.max_payload
        if features is not None:
            if features.max_value_size > 0:
                limit = min(limit, features.max_value_size)
            if features.file:
                limit = min(limit, _RECORD_LIMIT)
        return limit

    def _message(self, put: Put, headers: dict[str, str] | None) -> Message:
        self.check_key(put.key)
        head = encode_headers(headers) if headers else b""
        size = len(put.value) + len(head)
        if size > (limit := self._max_message()):
            raise DocumentTooLargeError(
                f"{put.key!r}: {size} bytes with headers, at most {limit} fit",
                size=size,
                limit=limit,
            )
        return Message(self._api.puts + put.key, put.value, headers, head)

    def _headers(self, put: Put) -> dict[str, str] | None:
        if put.expected is None:
            return None if put.ttl is None else {_TTL: _duration(put.ttl)}
        headers = {_EXPECTED: str(put.expected)}
        if put.ttl is not None:
            headers[_TTL] = _duration(put.ttl)
        if put.expected_filter is not None:
            filter = checked_filter(put.expected_filter)
            headers[_EXPECTED_SUBJECT] = self._api.keys + filter
        return headers

    async def _send(self, message: Message) -> Answer:
        self.under_way += 1
        try:
            return await self._requests.request(message, write=True)
        except NobodyListensError:
            return await self._api.again(
                lambda: self._requests.request(message, write=True)
            )
        finally:
            self.under_way -= 1

    def _revision(self, msg: Answer, put: Put) -> int:
        """The revision in a publish acknowledgement, or what the server refused."""
        found = _ACK.match(msg.data)
        if found is not None:
            self.last_known = int(found[1])
            return self.last_known
        answer = json.loads(msg.data)
        raise self._refused(answer.get("error") or {}, put)

    def _refused(self, error: dict[str, Any], put: Put) -> JskvError:
        return error_of(
            error,
            bucket=self._api.bucket,
            expected=put.expected,
            size=len(put.value),
            limit=self._max_message(),
        )

    async def _fast(self, messages: Sequence[Message], puts: Sequence[Put]) -> int:
        """Store one window as a fast batch and return the last revision."""
        self.under_way += 1
        try:
            answer = await self._requests.fast_batch(messages)
        except NobodyListensError:
            answer = await self._api.again(lambda: self._requests.fast_batch(messages))
        finally:
            self.under_way -= 1
        if answer.stored == len(puts):
            self.last_known = answer.sequence
            return answer.sequence
        error, failed = answer.error, puts[answer.stored]
        if error is None or error.get("err_code") == ApiError.FAST_ID_UNKNOWN:
            # A message was lost on its way, or the leader changed in between.
            raise lost(write=True, why=f"a batch of {len(puts)} writes broke off")
        raise self._refused(error, failed)

    async def _puts(self, puts: Sequence[Put], *, relaxed: bool) -> list[int]:
        """Store values by single messages."""
        revisions: list[int] = []
        index = 0
        while index < len(puts):
            run = _run(puts, index) if relaxed else 1
            if run == 1:
                revisions.append(await self.put(puts[index]))
            else:
                revisions.extend(await self._together(puts[index : index + run]))
            index += run
        return revisions

    async def _together(self, puts: Sequence[Put]) -> list[int]:
        """Send all at once; wait for all, then raise the first failure."""
        results = await asyncio.gather(*map(self.put, puts), return_exceptions=True)
        revisions: list[int] = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            revisions.append(result)
        return revisions

    async def _fill_in(self, puts: Sequence[Put], revisions: list[int]) -> None:
        """Read the revisions that a fast batch does not tell.

        One that another writer has replaced already is unknown for good. Any number
        below the replacement's is as good: it is as old as the value, and no condition
        on it can hold.
        """
        newest = {put.key: index for index, put in enumerate(puts)}
        asked = [i for i, revision in enumerate(revisions) if revision == 0]
        keys = {puts[i].key for i in asked}
        if not keys:
            return
        if self._reads.replicated:
            entries = await self._reads.from_leader(keys)
        else:
            entries = await self._reads.many(list(keys))
        found = {entry.key: entry for entry in entries}
        following = revisions[-1]
        for i in reversed(range(len(revisions))):
            if revisions[i] == 0:
                entry = found.get(puts[i].key)
                revisions[i] = following - 1
                if entry is not None and newest[puts[i].key] == i:
                    if entry.value == puts[i].value and entry.revision < following:
                        revisions[i] = entry.revision
            following = revisions[i]


def _duration(seconds: float) -> str:
    """A time to live in the server's words (ADR-43), to the millisecond."""
    return f"{round(seconds * 1000)}ms"


def _run(puts: Sequence[Put], start: int) -> int:
    """How many neighbours from `start` on may be sent at once, at least one."""
    size = 0
    count = 0
    # The last write is never sent before all the others are known to be stored.
    for put in puts[start : max(start + 1, len(puts) - 1)]:
        size += len(put.value)
        if count and (put.expected is not None or size > _WINDOW_BYTES):
            break
        count += 1
        if put.expected is not None or count == _WINDOW:
            break
    return count


def _windows(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Cut into batches that a connection carries at once."""
    windows: list[tuple[int, int]] = []
    first = 0
    size = 0
    for index, message in enumerate(messages):
        size += len(message.payload)
        if index > first and (size > _WINDOW_BYTES or index - first == _WINDOW):
            windows.append((first, index))
            first, size = index, len(message.payload)
    windows.append((first, len(messages)))
    return windows
