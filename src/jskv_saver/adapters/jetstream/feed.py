"""What is stored in a bucket, as it is stored: an ordered, ephemeral consumer.

The server keeps the place, and is asked for some messages at a time: so many wait here
at most. A gap in the consumer's own count, a silence, a lost connection or a consumer
that is gone is one thing: another consumer, from the last message that came on. One
that nobody asks any more is gone after `_INACTIVE`, whatever became of us.

Source:
    NATS ADR-17 (ordered consumer), ADR-13 (pull), ADR-15 (JetStream message subjects).
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from nats.aio.client import Client

from jskv_saver._nats.faults import Status, denied, error_of, translate, violation_of
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.tap import Answer, Sink, status_of
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.entry import Entry, is_marker
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreClosedError,
    StoreUnavailableError,
)

_log: Final = logging.getLogger(__name__)

_BATCH: Final = 64
"""Messages that are asked for at a time, and wait here at most."""
_BATCH_BYTES: Final = 4 * 1024 * 1024
_INACTIVE: Final = 5.0
"""Seconds after which the server drops a consumer that nobody asks."""
_EXPIRES: Final = 30.0
"""Seconds that the server keeps a request open."""
_HEARTBEAT: Final = 2.0
_SILENCE: Final = 3 * _HEARTBEAT
"""Seconds without a word from the server after which the consumer is lost."""
_TICK: Final = 0.25
_PAUSE: Final = 0.2
_NANOSECONDS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ACK: Final = "$JS.ACK."
_PLAIN_TOKENS: Final = 9
_HEARTBEAT_STATUS: Final = "100"
_CONFLICT_STATUS: Final = "409"
_PULL_ENDED: Final = frozenset({Status.NOT_FOUND, Status.BAD_REQUEST})
_TOO_LARGE: Final = "message size exceeds maxbytes"
_BATCH_ENDED: Final = "batch completed"


class Seen(NamedTuple):
    """A message of a feed.

    Attributes:
        entry: The message.
        at: When the server stored it.
    """

    entry: Entry
    at: datetime


class Feed:
    """The messages under filters of a bucket, in order, from a revision on.

    Of one event loop, that of the bucket; `next` is called by one task at a time.

    Args:
        ready: Opens the bucket.
        requests: Sends to the server.
        api: Of the bucket.
        filters: What to follow.
        after: The revision to go on after; None: the newest one when it is opened.
    """

    def __init__(
        self,
        ready: Callable[[], Awaitable[None]],
        requests: Requests,
        api: Api,
        filters: Sequence[str],
        after: int | None,
    ) -> None:
        self._ready: Final = ready
        self._requests: Final = requests
        self._api: Final = api
        self._filters: Final = tuple(filters)
        self._last = after
        self._created: str | None = None
        self._buffer: deque[Seen] = deque()
        self._arrived = asyncio.Event()
        self._client: Client | None = None
        self._subscription: Any = None
        self._generation: object = None
        self._inbox = ""
        self._consumer = ""
        self._count = 0
        self._asked = 0
        self._stale = True
        self._bytes = _BATCH_BYTES
        self._heard = 0.0
        self._closed = False

    async def open(self) -> None:
        """Begin; what is stored after this is given. Idempotent."""
        if self._created is None:
            await self._begin()

    async def next(self) -> Seen:
        """Wait for the next message.

        Raises:
            StoreClosedError: After `close`.
            StoreUnavailableError: There is no server at the beginning; later on it
                is waited for.
            BucketNotFoundError: The bucket is gone, or was made anew.
            PermissionDeniedError: The user may not follow it.
        """
        await self.open()
        while True:
            if self._closed:
                raise _closed()
            if self._buffer:
                return self._buffer.popleft()
            self._check_permissions()
            try:
                if self._lost():
                    await self._begin()
                client = self._client
                if client is not None and not self._asked:
                    await self._ask(client)
            except PermissionDeniedError:
                raise
            except StoreUnavailableError as exc:
                # No server, or none that has it now. What was given stays given.
                _log.debug("following bucket %s: %s", self._api.bucket, exc)
                self._stale = True
                await asyncio.sleep(_PAUSE)
                continue
            self._arrived.clear()
            if not (self._buffer or self._closed or self._stale):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.wait(), _TICK)

    async def close(self) -> None:
        """Remove the consumer, if the server can be told now. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._arrived.set()
        await self._leave()

    def _ended(self) -> bool:
        """Whether `close` was called, maybe while something was awaited."""
        return self._closed

    def _lost(self) -> bool:
        """Whether the consumer is not to be counted on any more."""
        if self._stale or self._generation != self._requests.generation:
            return True
        client = self._client
        if client is None or not client.is_connected:
            return True
        silent = asyncio.get_running_loop().time() - self._heard
        return bool(self._asked) and silent > _SILENCE

    async def _begin(self) -> None:
        """A new consumer, from the last message on."""
        self._asked, self._stale = 0, True
        await self._ready()
        client = await self._requests.ready()
        await self._leave()
        await self._find_place()
        if self._ended():
            raise _closed()
        self._client, self._generation = client, self._requests.generation
        self._inbox = inbox = client.new_inbox()
        self._consumer = name = f"jskv-{secrets.token_hex(8)}"
        self._count = 0
        with translate(write=False, bucket=self._api.bucket):
            self._subscription = await client.subscribe(
                inbox, future=Sink(lambda msg: self._take(inbox, msg))
            )
        try:
            await self._create(name)
            self._stale = False
            await self._ask(client)
        finally:
            if self._ended():
                # Whoever closed it may have been faster than the server.
                await self._remove(client, self._subscription, name)
        if self._ended():
            raise _closed()

    async def _create(self, name: str) -> None:
        answer = await self._api.ask(
            f"CONSUMER.CREATE.{self._api.stream}.{name}", self._settings(name)
        )
        if "error" in answer:
            raise error_of(answer["error"], bucket=self._api.bucket)

    async def _find_place(self) -> None:
        info = await self._api.call("STREAM.INFO")
        created, newest = str(info["created"]), int(info["state"]["last_seq"])
        if self._created not in (None, created):
            raise BucketNotFoundError(
                f"bucket {self._api.bucket!r} was deleted and made anew: its revisions "
                "are others; begin to follow it again",
                bucket=self._api.bucket,
            )
        if self._last is None:
            self._last = newest
        elif self._last > newest:
            if self._created is None:
                raise InvalidRequestError(
                    f"revision {self._last} was never reached in bucket "
                    f"{self._api.bucket!r}, whose newest is {newest}: it is another "
                    "bucket, or was made anew; begin without a revision"
                )
            _log.warning(
                "bucket %s went back from revision %d to %d",
                self._api.bucket,
                self._last,
                newest,
                extra={"event": "jskv.bucket.went_back"},
            )
            self._last = newest
        self._created = created

    def _settings(self, name: str) -> dict[str, Any]:
        assert self._last is not None
        return {
            "stream_name": self._api.stream,
            "action": "create",
            "config": {
                "name": name,
                "description": "jskv_saver watch",
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._last + 1,
                "ack_policy": "none",
                "replay_policy": "instant",
                "filter_subjects": [self._api.keys + each for each in self._filters],
                "inactive_threshold": int(_INACTIVE * _NANOSECONDS),
                "mem_storage": True,
                "num_replicas": 1,
            },
        }

    async def _ask(self, client: Client) -> None:
        """Ask for the next messages; they come when they are there."""
        request = {
            "batch": _BATCH,
            "max_bytes": max(self._bytes, 2 * client.max_payload),
            "expires": int(_EXPIRES * _NANOSECONDS),
            "idle_heartbeat": int(_HEARTBEAT * _NANOSECONDS),
        }
        self._asked = _BATCH
        self._heard = asyncio.get_running_loop().time()
        with translate(write=False, bucket=self._api.bucket):
            await client.publish(
                self._pulls(), json.dumps(request).encode(), reply=self._inbox
            )

    def _pulls(self) -> str:
        return self._api.subject(
            f"CONSUMER.MSG.NEXT.{self._api.stream}.{self._consumer}"
        )

    def _check_permissions(self) -> None:
        """A refusal of what is asked for comes aside, after a moment.

        A PING would tell it sooner, but nats-py's reader dies of the PONG whose caller
        was cancelled.
        """
        client = self._client
        violation = None if client is None else violation_of(client.last_error)
        if violation is not None and self._consumer:
            for mine in (self._pulls(), self._inbox):
                if violation[1] == mine.lower():
                    raise denied(mine)

    def _take(self, inbox: str, msg: Answer) -> None:
        """A message, or a word about the request; at once and in order."""
        if inbox != self._inbox or self._closed:
            return
        self._heard = asyncio.get_running_loop().time()
        try:
            if msg.reply.startswith(_ACK):
                self._take_message(msg)
            else:
                self._take_status(msg)
        except (LookupError, ValueError) as exc:
            # From anybody who found the inbox.
            _log.debug("following bucket %s: %r", self._api.bucket, exc)
            self._stale = True
        if self._buffer or self._stale or not self._asked:
            self._arrived.set()

    def _take_message(self, msg: Answer) -> None:
        tokens = msg.reply.split(".")
        # With the domain and the account's hash before, where the server says them.
        first = 2 if len(tokens) == _PLAIN_TOKENS else 4
        stream, consumer, _, revision, count, at = tokens[first : first + 6]
        if stream != self._api.stream or consumer != self._consumer or self._stale:
            return
        if int(count) != self._count + 1:
            self._stale = True
            return
        self._count += 1
        self._asked -= 1
        self._last = int(revision)
        entry = Entry(
            msg.subject[len(self._api.keys) :],
            msg.data,
            self._last,
            is_marker(msg.headers or {}),
        )
        moment = _EPOCH + timedelta(microseconds=int(at) // 1000)
        self._buffer.append(Seen(entry, moment))

    def _take_status(self, msg: Answer) -> None:
        status = status_of(msg)
        if status == _HEARTBEAT_STATUS:
            return
        what = str((msg.headers or {}).get("Description", "")).lower()
        if status in _PULL_ENDED or (
            status == _CONFLICT_STATUS and what == _BATCH_ENDED
        ):
            self._asked = 0
        elif status == _CONFLICT_STATUS and what == _TOO_LARGE:
            self._asked = 0
            self._bytes *= 2
        else:
            self._stale = True

    async def _leave(self) -> None:
        """Give up the consumer and the inbox, as far as the server can be told."""
        client, self._client = self._client, None
        subscription, self._subscription = self._subscription, None
        consumer, self._consumer, self._inbox = self._consumer, "", ""
        await self._remove(client, subscription, consumer)

    async def _remove(
        self, client: Client | None, subscription: Any, consumer: str
    ) -> None:
        if client is None or not client.is_connected:
            return
        if subscription is not None:
            with suppress(JskvError), translate(write=False, bucket=self._api.bucket):
                await subscription.unsubscribe()
        if consumer:
            with suppress(JskvError):
                # If not, it goes by itself.
                await self._api.ask(f"CONSUMER.DELETE.{self._api.stream}.{consumer}")


def _closed() -> StoreClosedError:
    return StoreClosedError("what follows the bucket was closed")
