"""A socket and frames for the tests of the tap."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from jskv_saver._nats.tap import Reply, Tap

SIDS = (7, 77)
Event = tuple[str, Any]


class Wire(asyncio.Transport):
    """A socket that keeps what is written to it."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.written: list[bytes] = []
        self.waiting = 0
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        if self.closing:
            # A closed transport of TLS has none any more.
            raise AttributeError
        return self.protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def feed(self, data: bytes) -> None:
        assert isinstance(self.protocol, asyncio.Protocol)
        self.protocol.data_received(data)


class Reader(asyncio.Protocol):
    """In the place of nats-py's protocol."""

    def __init__(self, log: list[Event]) -> None:
        self.log = log

    def data_received(self, data: bytes) -> None:
        self.log.append(("theirs", data))

    def eof_received(self) -> bool:
        self.log.append(("eof", None))
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.log.append(("lost", exc))

    def pause_writing(self) -> None:
        self.log.append(("pause", None))

    def resume_writing(self) -> None:
        self.log.append(("resume", None))


class Line:
    """A socket with a reader and taps, and the log of all that they are given."""

    def __init__(self, *sids: int) -> None:
        self.log: list[Event] = []
        self.reader = Reader(self.log)
        self.wire = Wire(self.reader)
        self.taps = [self.tap(sid) for sid in sids]

    def tap(self, sid: int) -> Tap:
        inner = self.wire.get_protocol()
        assert isinstance(inner, asyncio.Protocol)

        def deliver(reply: Reply) -> None:
            self.log.append((f"{sid}", reply))

        def refused(text: str) -> None:
            self.log.append((f"refused {sid}", text))

        made = Tap(self.wire, inner, sid, deliver, refused)
        self.wire.set_protocol(made)
        return made

    def only(self, *kinds: str) -> list[Event]:
        """The events of these kinds, what went to the reader in a row as one."""
        events: list[Event] = []
        for kind, what in self.log:
            if kind not in kinds:
                continue
            if kind == "theirs" and events and events[-1][0] == "theirs":
                what = events.pop()[1] + what
            events.append((kind, _plain(what)))
        return events


def _plain(what: Any) -> Any:
    if isinstance(what, Reply):
        return what.subject, what._head, what.data
    return what


class Frame:
    """A frame, and the events that it is to cause."""

    def __init__(self, raw: bytes, sid: int = 0, *reply: Any) -> None:
        self.raw = raw
        self.sid = sid
        self.reply = reply

    def events(self, *sids: int) -> Iterator[Event]:
        if self.sid in sids:
            yield f"{self.sid}", self.reply
            return
        if self.raw.startswith(b"-ERR"):
            for sid in sids:
                yield f"refused {sid}", self.raw[:-2].decode().lower()
        yield "theirs", self.raw


def message(
    sid: int, payload: bytes, head: bytes = b"", reply: str = "", subject: str = "a"
) -> Frame:
    middle = f"{reply} " if reply else ""
    if head:
        line = f"HMSG {subject} {sid} {middle}{len(head)} {len(head) + len(payload)}"
    else:
        line = f"MSG {subject} {sid} {middle}{len(payload)}"
    raw = line.encode() + b"\r\n" + head + payload + b"\r\n"
    return Frame(raw, sid, subject, head, payload)


def in_order(line: Line, frames: Sequence[Frame]) -> bytes:
    """What all have been given, put together as it came."""
    raw = {sid: [f.raw for f in frames if f.sid == sid] for sid in SIDS}
    parts = []
    for kind, what in line.log:
        if kind == "theirs":
            parts.append(what)
        elif not kind.startswith("refused"):
            parts.append(raw[int(kind)].pop(0))
    return b"".join(parts)


def check(line: Line, frames: Sequence[Frame], *sids: int) -> None:
    """All was given to whom it is for, in order."""
    merged = Line()
    merged.log = [event for frame in frames for event in frame.events(*sids)]
    for sid in sids:
        mine = (f"{sid}", f"refused {sid}")
        assert line.only(*mine) == merged.only(*mine)
    given = ("theirs", *map(str, sids))
    assert line.only(*given) == merged.only(*given)
