"""Requests over one wildcard inbox: each ends with an answer, an error, or in time.

nats-py's own request leaves pending ones to their timeout when the connection breaks,
takes one reply only, and passes each reply through a queue and a task. Here a reply
goes from the parser straight to the future that waits for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

from nats.aio.client import Client

from jskv_saver._nats.connection import Connection
from jskv_saver._nats.faults import (
    Translation,
    denied,
    lost,
    translate,
    violation_in,
    violation_of,
)
from jskv_saver._nats.tap import Answer, Sink, Tap, encode_headers, tap
from jskv_saver._nats.waiting import (
    Batch,
    BatchAnswer,
    Collecting,
    Message,
    Numbered,
    Waiting,
)
from jskv_saver.errors import (
    DocumentTooLargeError,
    InvalidRequestError,
    JskvError,
    StoreClosedError,
    WrongThreadError,
)

_TICK: Final = 0.1
_ILLEGAL: Final = re.compile(r"\s").search
_W = TypeVar("_W", bound=Waiting)


class Requests:
    """Sends requests over a connection and waits for their answers.

    Bound to the event loop of its first use. Nothing is sent twice.

    Args:
        connection: Where the client comes from.
        timeout: Seconds that a request may take, waiting for a connection included.
        bucket: For the texts of errors, where it is about one.
    """

    def __init__(
        self, connection: Connection, *, timeout: float, bucket: str = ""
    ) -> None:
        self.connection: Final = connection
        self.timeout: Final = timeout
        self._bucket: Final = bucket
        self._what: Final = f"bucket {bucket!r}" if bucket else "the document store"
        self._tick: Final = min(_TICK, timeout / 4)
        self._pending: dict[str, Waiting] = {}
        self._client: Client | None = None
        self._subscription: Any = None
        self._tap: Tap | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._salt = ""
        self._prefix = ""
        self._count = 0
        self._seen_error: Exception | None = None
        self._refused: JskvError | None = None
        self._closed = False

    @property
    def client(self) -> Client | None:
        """The client in use, None before the first request."""
        return self._client

    @property
    def generation(self) -> tuple[Client, int] | None:
        """Changes whenever the connection does."""
        client = self._client
        return None if client is None else (client, client.stats["reconnects"])

    @property
    def reply_length(self) -> int:
        """Bytes of the longest reply subject."""
        return len(self._prefix) + len(self._salt) + 40

    async def ready(self, deadline: float | None = None) -> Client:
        """The connected client, subscribed; waits for it until the deadline."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._bind(loop)
        client = self._client
        if client is None or not client.is_connected or client.is_draining:
            if deadline is None:
                deadline = loop.time() + self.timeout
            client = await self.connection.client(deadline)
            if client is not self._client:
                await self._attach(client)
        if self._closed:
            raise StoreClosedError(f"{self._what} was closed")
        if self._refused is not None:
            raise self._refused
        if self._tap is None or not self._tap.is_open:
            self._set_tap(client)
        return client

    async def request(self, message: Message, *, write: bool) -> Answer:
        """Send one message and return its answer.

        Args:
            message: The message.
            write: A lost answer leaves a write in doubt.

        Raises:
            StoreUnavailableError: Nothing was sent, or a read has no answer.
            UnknownOutcomeError: A write has no answer.
            PermissionDeniedError: The server refuses the subject.
            NobodyListensError: Nobody listens on the subject.
        """
        return cast(Answer, await self._exchange(Waiting, message, write))

    async def collect(self, subject: str, payload: bytes) -> list[Answer]:
        """Send a read that is answered by several messages, the last with a status."""
        sent = Message(subject, payload)
        return cast(list[Answer], await self._exchange(Collecting, sent, False))

    async def parts(self, subject: str, payload: bytes, *, write: bool) -> list[Answer]:
        """As `request`, of what may answer in several numbered messages."""
        sent = Message(subject, payload)
        return cast(list[Answer], await self._exchange(Numbered, sent, write))

    async def _exchange(
        self, kind: type[Waiting], message: Message, write: bool
    ) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        client = await self.ready(deadline)
        future: asyncio.Future[Any] = loop.create_future()
        token, waiting = self._register(
            kind, future, (message.subject,), write, deadline, client
        )
        try:
            await self._publish(client, message, self._prefix + token, waiting)
            return await future
        finally:
            self._release(token)

    async def fast_batch(self, messages: Sequence[Message]) -> BatchAnswer:
        """Store messages in order, up to the first that is refused (ADR-50)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        client = await self.ready(deadline)
        future: asyncio.Future[BatchAnswer] = loop.create_future()
        subjects = [message.subject for message in messages]
        token, waiting = self._register(
            Batch, future, subjects, True, deadline, client, salt=self._salt
        )
        waiting.error = waiting.refused = None
        last = len(messages)
        # No acknowledgements on the way: the batch is short enough to be sent at once.
        reply = f"{self._prefix}{token}.{last + 1}.fail."
        try:
            if self._tap is not None:
                # One piece for the socket, where it is small.
                self._tap.hold()
            for number, message in enumerate(messages, 1):
                step = 2 if number == last else 0 if number == 1 else 1
                # From the second one on something was sent, whatever stops the rest.
                inbox = f"{reply}{number}.{step}.$FI"
                await self._publish(client, message, inbox, waiting, sent=number > 1)
            if self._tap is not None:
                self._tap.flush()
            return await future
        finally:
            self._release(token)

    async def _publish(
        self,
        client: Client,
        message: Message,
        reply: str,
        waiting: Waiting,
        *,
        sent: bool = False,
    ) -> None:
        subject, payload, headers, head = message
        if headers and not head:
            head = encode_headers(headers)
        size = len(head) + len(payload)
        tap = self._tap
        if size > client.max_payload or _ILLEGAL(subject):
            error = _unfit(subject, size, client.max_payload)
            if sent:
                error = lost(write=waiting.write, why=f"interrupted: {error}")
            raise error
        if tap is not None and tap.is_full(size):
            await tap.room(client, size, waiting.future)
            self.look_around()
            if waiting.future.done():
                # Out of time, or disconnected: not sent once the caller is told so.
                return
        # What nats-py has not sent yet, a subscription for one, goes first.
        if tap is None or client._pending or not tap.is_open:
            if tap is not None:
                tap.flush()
            with Translation(write=waiting.write, bucket=self._bucket, sent=sent):
                await client.publish(
                    subject, payload, reply, dict(headers) if headers else None
                )
            return
        # If the connection breaks, then that is what the answer will be.
        tap.send(subject, reply, head, payload)
        client.stats["out_msgs"] += 1
        client.stats["out_bytes"] += len(payload)

    def _set_tap(self, client: Client) -> None:
        if self._subscription is not None:
            stats = client.stats

            def delivered(msg: Answer) -> None:
                # Who looks at nats-py's counters sees what goes past it as well.
                stats["in_msgs"] += 1
                stats["in_bytes"] += len(msg.data)
                self.dispatch(msg)

            # What nats-py was told up to now no tap will tell.
            self.look_at_errors()
            self._tap = tap(
                client,
                self._subscription._id,
                delivered,
                lambda text: self._violated(violation_in(text)),
            )

    def dispatch(self, msg: Answer) -> None:
        """Hand a message to the request that waits for it."""
        token = msg.subject[len(self._prefix) :]
        waiting = self._pending.get(token)
        if waiting is None:
            # The replies to a fast batch go on after the token.
            waiting = self._pending.get(token.partition(".")[0])
        if waiting is not None and not waiting.future.done():
            try:
                waiting.feed(msg, self.look_at_errors)
            except (AttributeError, LookupError, TypeError, ValueError) as exc:
                # From anybody who found the inbox. It ends the request, nothing else.
                why = f"the answer is none of a NATS server ({exc!r})"
                waiting.fail(lost(write=waiting.write, why=why))

    def look_at_errors(self) -> None:
        """Tell the requests whose subject the server has just refused."""
        client = self._client
        error = None if client is None else client.last_error
        if error is None or error is self._seen_error:
            return
        self._seen_error = error
        # A tap has told it already, in the order in which it came.
        if self._tap is None or not self._tap.is_open:
            self._violated(violation_of(error))

    def _violated(self, violation: tuple[bool, str] | None) -> None:
        if violation is None:
            return
        subscription, subject = violation
        if subscription:
            if subject == f"{self._prefix}>".lower():
                self._refused = denied(f"{self._prefix}>")
                self._fail_all(self._refused)
            return
        for waiting in self._pending.values():
            for mine in waiting.subjects:
                if mine.lower() == subject:
                    waiting.refuse(denied(mine))

    def look_around(self) -> None:
        """Fail what waits in vain: refused, disconnected, out of time."""
        self.look_at_errors()
        client, loop = self._client, self._loop
        if client is None or loop is None:
            return
        generation = (client, client.stats["reconnects"])
        connected, now = client.is_connected, loop.time()
        for waiting in self._pending.values():
            if not connected or waiting.generation != generation:
                waiting.fail(
                    lost(
                        write=waiting.write,
                        why=f"the connection to {self.connection.where} broke",
                    )
                )
            elif now >= waiting.deadline:
                why = f"no answer within {self.timeout:g} s"
                waiting.fail(lost(write=waiting.write, why=why))

    async def close(self) -> None:
        """Fail what waits, leave the inbox, close an own connection. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for waiting in self._pending.values():
            if waiting.write:
                waiting.fail(lost(write=True, why="the store was closed"))
            else:
                waiting.fail(StoreClosedError("the store was closed"))
        if self._tap is not None:
            self._tap.remove()
            self._tap = None
        subscription, client = self._subscription, self._client
        self._subscription = None
        if subscription is not None and client is not None and client.is_connected:
            with translate(write=False, bucket=self._bucket):
                await subscription.unsubscribe()
        await self.connection.close()

    def _release(self, token: str) -> None:
        future = self._pending.pop(token).future
        if future.done() and not future.cancelled():
            # Marks an exception as seen that came while another one was raised.
            future.exception()

    def _fail_all(self, error: JskvError) -> None:
        for waiting in self._pending.values():
            waiting.fail(error)

    def _bind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise WrongThreadError(f"{self._what} was first used on another event loop")
        self._loop = loop

    async def _attach(self, client: Client) -> None:
        """Subscribe the inbox. All is set before the first await, for the others."""
        self._client = client
        self._subscription = self._tap = None
        self._seen_error = client.last_error
        self._refused = None
        inbox = client.new_inbox()
        self._prefix = f"{inbox}."
        # Unique in the world: whoever knows a batch's id can add to it.
        self._salt = inbox.rpartition(".")[2]
        with translate(write=False, bucket=self._bucket):
            self._subscription = await client.subscribe(
                f"{self._prefix}>", future=Sink(self.dispatch)
            )

    def _register(
        self,
        kind: type[_W],
        future: asyncio.Future[Any],
        subjects: Sequence[str],
        write: bool,
        deadline: float,
        client: Client,
        *,
        salt: str = "",
    ) -> tuple[str, _W]:
        self._count += 1
        token = f"{salt}{self._count}"
        generation = (client, client.stats["reconnects"])
        waiting = kind(future, subjects, write, deadline, generation)
        self._pending[token] = waiting
        if self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(self._tick, self._on_timer)
        return token, waiting

    def _on_timer(self) -> None:
        self._timer = None
        if self._pending and self._loop is not None:
            self.look_around()
            self._timer = self._loop.call_later(self._tick, self._on_timer)


def _unfit(subject: str, size: int, limit: int) -> JskvError:
    """Why a message cannot be sent."""
    if size > limit:
        return DocumentTooLargeError(
            f"nothing was sent: {size} bytes are more than the server takes ({limit})",
            size=size,
            limit=limit,
        )
    return InvalidRequestError(f"nothing was sent: {subject!r} is no subject")
