"""A subscription that is served past nats-py's queues, and answered the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import nats.errors
from nats.aio.client import Client

from jskv_saver._nats.tap import Answer, Sink, Tap, encode_headers, tap

_TICK: Final = 0.2


class Listener:
    """Takes the messages of one subject, and sends answers.

    Args:
        client: A connected client, of the running event loop.
        subject: What to listen on; may have wildcards.
        queue: The queue group that shares the messages; empty: none.
        deliver: Takes each message, at once and in order; must not raise.
    """

    def __init__(
        self,
        client: Client,
        subject: str,
        queue: str,
        deliver: Callable[[Answer], None],
    ) -> None:
        self._client: Final = client
        self._subject: Final = subject
        self._queue: Final = queue
        self._deliver: Final = deliver
        self._subscription: Any = None
        self._tap: Tap | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._never: asyncio.Future[None] | None = None

    @property
    def max_payload(self) -> int:
        """Bytes that one message may have, headers included."""
        return int(self._client.max_payload)

    async def start(self) -> None:
        """Subscribe, and return when the server knows of it."""
        self._never = asyncio.get_running_loop().create_future()
        self._subscription = await self._client.subscribe(
            self._subject, queue=self._queue, future=Sink(self._deliver)
        )
        await settle(self._client)
        self._look()

    async def send(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send one message; it waits while the socket is full.

        Raises:
            nats.errors.Error: It was not sent.
        """
        client, line = self._client, self._tap
        head = encode_headers(headers) if headers else b""
        if line is not None and line.is_full(len(head) + len(payload)):
            assert self._never is not None
            await line.room(client, len(head) + len(payload), self._never)
        if not client.is_connected:
            raise nats.errors.ConnectionReconnectingError
        if line is None or client._pending or not line.is_open:
            if line is not None:
                line.flush()
            await client.publish(subject, payload, "", dict(headers or {}) or None)
            return
        line.send(subject, "", head, payload)
        client.stats["out_msgs"] += 1
        client.stats["out_bytes"] += len(payload)

    async def drain(self) -> None:
        """Take no new messages; return when all that were on the way are delivered."""
        client = self._client
        subscription, self._subscription = self._subscription, None
        if subscription is not None and client.is_connected:
            # Not nats-py's own drain, which forgets the subscription too early.
            await client._send_unsubscribe(subscription._id)
            await settle(client)
            client._remove_sub(subscription._id)

    async def close(self) -> None:
        """Leave the socket to nats-py, after all that was sent has arrived."""
        if self._timer is not None:
            self._timer.cancel()
        line, self._tap = self._tap, None
        if line is not None:
            line.remove()
        if self._client.is_connected:
            await settle(self._client)

    def _look(self) -> None:
        """Set the tap, again after each reconnect, and as soon as that can be done."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_TICK, self._look)
        if self._tap is not None and self._tap.is_open:
            return
        self._tap = None
        if self._client.is_connected and self._subscription is not None:
            stats = self._client.stats

            def delivered(msg: Answer) -> None:
                stats["in_msgs"] += 1
                stats["in_bytes"] += len(msg.data)
                self._deliver(msg)

            self._tap = tap(
                self._client, self._subscription._id, delivered, lambda text: None
            )


async def settle(client: Client) -> None:
    """Return when the server has taken all that was sent, and all it sent is here.

    nats-py's flush sends its PING ahead of what still waits in its own queue, an
    UNSUB for one: only a second PING is surely behind that.

    Raises:
        nats.errors.Error: The connection is lost, or the server does not answer.
    """
    for _ in range(2):
        # nats-py leaves the PING of a connection that broke to its timeout.
        flushing = asyncio.ensure_future(client.flush())
        try:
            while not flushing.done():
                await asyncio.wait((flushing,), timeout=_TICK)
                if not client.is_connected and not flushing.done():
                    raise nats.errors.ConnectionReconnectingError
            flushing.result()
        finally:
            flushing.cancel()
