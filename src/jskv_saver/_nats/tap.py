"""A short cut between the socket and the requests, on the connection of nats-py.

nats-py connects, logs in, reconnects and serves all other subscriptions. A tap stands
between its socket and its reader: the frames of one subscription go straight to who
waits for them, all others on to nats-py as they came; what is sent goes straight to
the socket. That saves two tasks, two queues and a copy per message. Where a tap cannot
be set (web sockets, a frame half read) messages take nats-py's own way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.protocol.parser import AWAITING_CONTROL_LINE

_VERSION: Final = "NATS/1.0"
_NO_STATUS: Final = b"NATS/1.0\r\n"
_BUSY: Final = 1024 * 1024
"""Bytes that may wait for the socket before a sender waits."""
_PAUSED: Final = 512 * 1024
"""Bytes waiting from which on every transport is paused, TLS too: it will resume."""
_PIECE: Final = 64 * 1024
"""Bytes that are sent together."""


class Reply:
    """A message to the tapped subscription, as nats-py's `Msg` for its readers."""

    __slots__ = ("_head", "_headers", "data", "reply", "subject")

    def __init__(self, subject: str, head: bytes, data: bytes, reply: str = "") -> None:
        self.subject = subject
        self.reply = reply
        self.data = data
        self._head = head
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> Mapping[str, str] | None:
        """Its headers, with the status line as `Status` and `Description`."""
        if self._headers is None and self._head:
            self._headers = parse_headers(self._head)
        return self._headers

    @property
    def status(self) -> str | None:
        """The status in its first line, e.g. `404`."""
        if self._head.startswith(_NO_STATUS) or not self._head:
            return None
        return (self.headers or {}).get("Status")

    def field(self, name: bytes) -> bytes | None:
        """The last field of a name, where it stands as servers write it; else None.

        Looked for without taking the others apart: this runs for each message read.

        Args:
            name: With what is around it: `CR LF Name: SP`.
        """
        at = self._head.rfind(name)
        if at < 0:
            return None
        at += len(name)
        return self._head[at : self._head.find(b"\r\n", at)]

    def has(self, text: bytes) -> bool:
        """Whether it has headers, and a text is somewhere in them."""
        return bool(self._head) and text in self._head


Answer: TypeAlias = Msg | Reply
"""A message that answers: as nats-py gives it, or past nats-py."""


def is_bare(msg: Answer) -> bool:
    """Whether an answer has no headers."""
    return not (msg.has(b"") if isinstance(msg, Reply) else msg.headers)


def status_of(msg: Answer) -> str | None:
    """The status of an answer, e.g. `404`; None where it has none."""
    if isinstance(msg, Reply):
        return msg.status
    return (msg.headers or {}).get("Status")


def parse_headers(head: bytes) -> dict[str, str]:
    """The fields of a header block (ADR-4); of a repeated one the last.

    To what a writer sent the server appends its own fields, which must count; and a
    status is one in the first line only.
    """
    first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, separator, value = line.partition(":")
        if separator:
            headers[name] = value.strip()
    headers.pop("Status", None)
    status = first[len(_VERSION) :].strip()
    if status:
        headers["Status"], _, headers["Description"] = status.partition(" ")
    return headers


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """The header block of checked names and values."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"{_VERSION}\r\n{lines}\r\n".encode()


class Sink(asyncio.Future[Answer]):
    """Where nats-py puts the messages of a subscription, one after another.

    A subscription with a future skips the queue and the task of one with a callback.
    """

    def __init__(self, deliver: Callable[[Answer], None]) -> None:
        super().__init__()
        self._deliver = deliver

    def cancelled(self) -> bool:
        """Never: nats-py would drop the messages."""
        return False

    def set_result(self, result: Answer, /) -> None:
        """Take the next one."""
        self._deliver(result)


class Tap(asyncio.Protocol):
    """The protocol of a nats-py connection's socket.

    Args:
        transport: The socket.
        inner: nats-py's own protocol.
        sid: Number of the tapped subscription.
        deliver: Takes its messages.
        refused: Takes the text of an error of the server (`-ERR`), before whatever
            follows it; nats-py gets it as well.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        inner: asyncio.Protocol,
        sid: int,
        deliver: Callable[[Reply], None],
        refused: Callable[[str], None],
    ) -> None:
        self._transport: Final = transport
        self._inner = inner
        self._sid: bytes | None = b"%d" % sid
        self._deliver: Final = deliver
        self._refused: Final = refused
        self._loop: Final = asyncio.get_running_loop()
        self._rest: list[bytes] = []
        self._size = 0
        self._needed = 0
        self._unsent: list[bytes] = []
        self._unsent_size = 0
        self._flushing = False

    @property
    def is_open(self) -> bool:
        """Whether what is sent now goes to the socket."""
        return not self._transport.is_closing()

    @property
    def in_mid_frame(self) -> bool:
        """Whether a part of a frame waits for its rest."""
        return bool(self._rest)

    def remove(self) -> None:
        """Give all frames to nats-py from now on. Idempotent."""
        self.flush()
        self._sid = None
        if self.is_open:
            self._unlink()
        self._pass_rest()

    def _unlink(self) -> None:
        """Leave the chain of taps, of which others may have been set since."""
        outer = self._transport.get_protocol()
        if outer is self:
            self._transport.set_protocol(self._inner)
        while isinstance(outer, Tap):
            if outer._inner is self:
                outer._inner = self._inner
            outer = outer._inner

    # -- sending -----------------------------------------------------------------------

    def is_full(self, size: int) -> bool:
        """Whether so many bytes more are too many for the socket now."""
        if not self.is_open:
            return False
        waiting = self._transport.get_write_buffer_size()
        return waiting > _PAUSED and waiting + size > _BUSY

    def send(self, subject: str, reply: str, head: bytes, payload: bytes) -> None:
        """Send one message: at once when idle, together with others when busy."""
        if head:
            size = len(head)
            line = f"HPUB {subject} {reply} {size} {size + len(payload)}\r\n"
        else:
            line = f"PUB {subject} {reply} {len(payload)}\r\n"
        frame = b"".join((line.encode(), head, payload, b"\r\n"))
        if self._flushing:
            self._unsent.append(frame)
            self._unsent_size += len(frame)
            if self._unsent_size > _PIECE:
                self.flush()
            return
        self.hold()
        self._transport.write(frame)

    def hold(self) -> None:
        """Collect what is sent from now on, up to `flush` or the loop's next turn."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def room(self, client: Client, size: int, until: asyncio.Future[Any]) -> None:
        """Wait while the socket is full, at most until the future is done."""
        while self.is_full(size) and not until.done():
            # nats-py's drain: woken through the inner protocol.
            drain = asyncio.ensure_future(cast(Any, client._transport).drain())
            try:
                await asyncio.wait((drain, until), return_when="FIRST_COMPLETED")
            finally:
                drain.cancel()
            if drain.done() and drain.exception() is not None:
                return

    def _flush(self) -> None:
        if self._unsent:
            self.flush()
            self._loop.call_soon(self._flush)
        else:
            self._flushing = False

    def flush(self) -> None:
        """Hand over to the socket what waits to be sent together."""
        if self._unsent:
            frames = b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_size = 0
            if self.is_open:
                self._transport.write(frames)

    # -- receiving ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Cut into frames; an incomplete one waits for the rest."""
        if self._rest:
            self._rest.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return
            data = b"".join(self._rest)
            self._rest.clear()
        elif self._sid is None:
            self._inner.data_received(data)
            return
        at = self._frames(data)
        if at < len(data):
            rest = data[at:] if at else data
            if self._sid is None:
                self._inner.data_received(rest)
                return
            self._rest.append(rest)
            self._size = len(rest)

    def _frames(self, data: bytes) -> int:
        """Pass on all whole frames and return where the rest begins."""
        at = theirs = 0
        end = len(data)
        while at < end:
            self._needed = 0
            stop = data.find(b"\r\n", at)
            if stop < 0:
                break
            begin = stop + 2
            if not data.startswith((b"MSG ", b"HMSG "), at):
                if data.startswith(b"-ERR", at):
                    self._refused(data[at:stop].decode("utf-8", "replace").lower())
                at = begin
                continue
            fields = data[at:stop].split()
            if len(fields) < 4 or not fields[-1].isdigit():
                # Not NATS: nats-py ends such a connection.
                self.remove()
                break
            after = begin + int(fields[-1]) + 2
            if after > end:
                self._needed = after - at
                break
            if fields[2] == self._sid:
                if theirs < at:
                    self._inner.data_received(data[theirs:at])
                self._give(data, fields, begin, after - 2)
                theirs = after
            at = after
        if theirs < at:
            self._inner.data_received(data[theirs:at])
        return at

    def _give(self, data: bytes, fields: list[bytes], begin: int, end: int) -> None:
        middle, sizes = begin, 1
        if fields[0] == b"HMSG":
            middle += int(fields[-2])
            sizes = 2
        reply = fields[3].decode("utf-8", "replace") if len(fields) > 3 + sizes else ""
        self._deliver(
            Reply(
                fields[1].decode("utf-8", "replace"),
                data[begin:middle],
                data[middle:end],
                reply,
            ),
        )

    # -- the rest is nats-py's ---------------------------------------------------------

    # A frame that was cut off is nobody's. nats-py may read it after it has begun to
    # reconnect, and would take the next connection's bytes for the rest of it.

    def eof_received(self) -> bool | None:
        """Pass on."""
        self._rest.clear()
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on."""
        self._rest.clear()
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on."""
        self._inner.resume_writing()

    def _pass_rest(self) -> None:
        rest = b"".join(self._rest)
        self._rest.clear()
        if rest:
            self._inner.data_received(rest)


def tap(
    client: Client,
    sid: int,
    deliver: Callable[[Reply], None],
    refused: Callable[[str], None],
) -> Tap | None:
    """Set a tap; None where that cannot be done now.

    Nothing of a frame may be on its way: who has read a part of it must finish it. And
    the connection must be of this event loop.
    """
    carrier: Any = client._transport
    writer = getattr(carrier, "_io_writer", None)
    reader = getattr(carrier, "_io_reader", None)
    parser: Any = client._ps
    if writer is None or reader is None or parser.buf or reader._buffer:
        return None
    transport = writer.transport
    if parser.state != AWAITING_CONTROL_LINE or transport.is_closing():
        return None
    if reader._loop is not asyncio.get_running_loop():
        return None
    inner = transport.get_protocol()
    if isinstance(inner, Tap) and inner.in_mid_frame:
        return None
    made = Tap(transport, inner, sid, deliver, refused)
    transport.set_protocol(made)
    return made
