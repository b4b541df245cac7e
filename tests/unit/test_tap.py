"""What a tap makes of a stream of frames, however it is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wires import SIDS, Frame, Line, check, in_order, message

from jskv_saver._nats.tap import Tap

TRICKS = (
    b"",
    b"x",
    b"\r\n",
    b"-ERR 'no error'\r\n",
    b"MSG _INBOX.a 7 3\r\nabc\r\n",
    b"HMSG a 7 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"\r\nPING\r\nMSG",
    b"\xff\x00\r",
)
OTHERS = (
    b"PING\r\n",
    b"PONG\r\n",
    b"+OK\r\n",
    b'INFO {"max_payload": 7, "MSG ": "HMSG a 7 1"}\r\n',
    b"-ERR 'Permissions Violation for Publish to \"A.b\"'\r\n",
    b"-ERR 'Unknown'\r\n",
)

MESSAGES = st.builds(
    message,
    st.sampled_from([*SIDS, 8, 777]),
    st.one_of(st.sampled_from(TRICKS), st.binary(max_size=40)),
    st.sampled_from([b"", b"NATS/1.0 503\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"]),
    st.sampled_from(["", "reply.to", "7"]),
    st.sampled_from(["a", "_INBOX.x.1", "MSG", "ä.b"]),
)
FRAMES = st.lists(
    st.one_of(MESSAGES, st.builds(Frame, st.sampled_from(OTHERS))), max_size=12
)
CUTS = st.lists(st.integers(0, 1500), max_size=12)


def stream_of(frames: Sequence[Frame]) -> bytes:
    return b"".join(frame.raw for frame in frames)


def pieces_of(stream: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    return [stream[first:last] for first, last in pairwise(places)]


@pytest.fixture(autouse=True)
async def loop() -> asyncio.AbstractEventLoop:
    """A tap needs a running loop."""
    return asyncio.get_running_loop()


# -- receiving -----------------------------------------------------------------------


async def test_a_stream_cut_in_two_at_every_place() -> None:
    frames = [
        *(message(sid, trick) for trick in TRICKS for sid in (7, 8)),
        *map(Frame, OTHERS),
        message(7, b"abc", b"NATS/1.0\r\nA: b\r\n\r\n", "reply.to"),
        message(77, b"", b"NATS/1.0 503\r\n\r\n"),
    ]
    stream = stream_of(frames)
    for cut in range(len(stream) + 1):
        line = Line(7)
        for piece in pieces_of(stream, [cut]):
            line.wire.feed(piece)
        check(line, frames, 7)


async def test_a_stream_byte_by_byte() -> None:
    frames = [message(sid, trick) for trick in TRICKS for sid in (7, 8)]
    frames = [*frames, *map(Frame, OTHERS), *frames]
    stream = stream_of(frames)
    line = Line(7)
    for place in range(len(stream)):
        line.wire.feed(stream[place : place + 1])
    check(line, frames, 7)


@given(FRAMES, CUTS)
async def test_a_stream_cut_anywhere(frames: list[Frame], cuts: list[int]) -> None:
    line = Line(7)
    for piece in pieces_of(stream_of(frames), cuts):
        line.wire.feed(piece)
    check(line, frames, 7)
    assert not line.taps[0].in_mid_frame


async def test_large_messages_in_pieces_as_a_socket_gives_them() -> None:
    large = bytes(range(256)) * 4096
    frames = [message(7, large), message(8, large), message(7, large, b"NATS/1.0\r\n")]
    line = Line(7)
    stream = stream_of(frames)
    for piece in pieces_of(stream, range(0, len(stream), 65_537)):
        line.wire.feed(piece)
    check(line, frames, 7)


async def test_an_error_is_told_before_what_follows_it() -> None:
    line = Line(7)
    frames = [message(7, b"1"), Frame(OTHERS[4]), message(7, b"2")]
    line.wire.feed(stream_of(frames))
    kinds = [kind for kind, _ in line.log if kind != "theirs"]
    assert kinds == ["7", "refused 7", "7"]
    assert '"a.b"' in line.only("refused 7")[0][1]


@pytest.mark.parametrize("raw", [b"MSG \r\n", b"MSG a 7\r\n", b"HMSG a 7 x -3\r\n"])
async def test_what_is_no_frame_goes_to_nats_py_with_all_that_follows(
    raw: bytes,
) -> None:
    line = Line(7)
    first, last = message(7, b"1"), message(7, b"2")
    line.wire.feed(first.raw + b"PING\r\n" + raw + last.raw)
    line.wire.feed(last.raw)
    check(line, [first, Frame(b"PING\r\n" + raw + last.raw + last.raw)], 7)
    assert line.wire.protocol is line.reader


async def test_a_subject_that_is_no_text_does_no_harm() -> None:
    line = Line(7)
    line.wire.feed(b"MSG a.\xff 7 1\r\nx\r\n")
    assert line.only("7") == [("7", ("a.\N{REPLACEMENT CHARACTER}", b"", b"x"))]


@pytest.mark.parametrize("end", ["eof", "lost"])
async def test_the_end_is_passed_on_and_what_was_cut_off_is_not(end: str) -> None:
    line = Line(7)
    half = message(7, b"abc").raw[:-3]
    line.wire.feed(half)
    assert line.log == []
    if end == "eof":
        assert line.taps[0].eof_received() is True
    line.taps[0].connection_lost(None)
    ends = [("eof", None)] if end == "eof" else []
    # nats-py would take the next connection's bytes for the rest of it.
    assert line.log == [*ends, ("lost", None)]


async def test_the_error_of_a_lost_connection_is_passed_on() -> None:
    line = Line(*SIDS)
    error = ConnectionResetError()
    line.taps[1].pause_writing()
    line.taps[1].resume_writing()
    line.taps[1].connection_lost(error)
    assert line.log == [("pause", None), ("resume", None), ("lost", error)]


# -- removal -------------------------------------------------------------------------


@given(FRAMES, CUTS, st.integers(0, 12))
async def test_a_removal_at_any_time_loses_nothing(
    frames: list[Frame], cuts: list[int], when: int
) -> None:
    line = Line(7)
    stream = stream_of(frames)
    pieces = pieces_of(stream, cuts)
    for piece in pieces[:when]:
        line.wire.feed(piece)
    line.taps[0].remove()
    assert line.wire.protocol is line.reader
    given = [event for event in line.log if event[0] == "7"]
    for piece in pieces[when:]:
        line.wire.feed(piece)
    line.taps[0].remove()
    assert in_order(line, frames) == stream
    assert [event for event in line.log if event[0] == "7"] == given


@given(FRAMES, CUTS, st.tuples(st.integers(0, 12), st.integers(0, 12)))
async def test_two_taps_removed_in_either_order(
    frames: list[Frame], cuts: list[int], when: tuple[int, int]
) -> None:
    line = Line(*SIDS)
    stream = stream_of(frames)
    for number, piece in enumerate(pieces_of(stream, cuts)):
        for tap, end in zip(line.taps, when, strict=True):
            if number == end:
                tap.remove()
        line.wire.feed(piece)
    assert in_order(line, frames) == stream
    if min(when) > len(cuts):
        check(line, frames, *SIDS)
    for tap in line.taps:
        tap.remove()
    assert line.wire.protocol is line.reader


async def test_taps_that_come_and_go_leave_nothing_behind() -> None:
    line = Line(0)
    for sid in range(1, 3000):
        line.taps.append(line.tap(sid))
        line.taps.pop(0).remove()
    line.wire.feed(message(2999, b"x").raw + message(1, b"y").raw)
    assert [kind for kind, _ in line.log] == ["2999", "theirs"]
    line.taps[0].remove()
    assert line.wire.protocol is line.reader


async def test_removed_by_what_it_delivers() -> None:
    line = Line(7)
    tap = Tap(line.wire, line.taps[0], 77, lambda _: tap.remove(), lambda _: None)
    line.wire.set_protocol(tap)
    frames = [message(77, b"1"), message(77, b"2"), message(7, b"3")]
    line.wire.feed(stream_of(frames)[:-1])
    line.wire.feed(stream_of(frames)[-1:])
    check(line, frames[1:], 7)
