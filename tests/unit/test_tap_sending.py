"""How a tap sends, and the headers that it reads and writes."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from tests.unit.wires import Line

from jskv_saver._nats.tap import Reply, encode_headers, parse_headers

# -- sending -------------------------------------------------------------------------


async def test_idle_at_once_and_busy_together_in_order() -> None:
    line = Line(7)
    tap, written = line.taps[0], line.wire.written
    tap.send("a", "r.1", b"", b"1")
    assert written == [b"PUB a r.1 1\r\n1\r\n"]
    tap.send("b", "r.2", b"NATS/1.0\r\nA: b\r\n\r\n", b"23")
    tap.send("c", "r.3", b"", b"")
    assert len(written) == 1
    await asyncio.sleep(0)
    assert written[1:] == [
        b"HPUB b r.2 18 20\r\nNATS/1.0\r\nA: b\r\n\r\n23\r\nPUB c r.3 0\r\n\r\n"
    ]
    tap.send("d", "r.4", b"", b"")
    assert len(written) == 2
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(written) == 3
    tap.send("e", "r.5", b"", b"")
    assert b"".join(written[2:]) == b"PUB d r.4 0\r\n\r\nPUB e r.5 0\r\n\r\n"
    await asyncio.sleep(0)
    assert len(written) == 4


async def test_large_ones_do_not_wait_for_each_other() -> None:
    line = Line(7)
    for number in range(4):
        line.taps[0].send("a", f"r.{number}", b"", bytes(70_000))
    assert len(line.wire.written) == 4


async def test_a_removal_sends_what_waits() -> None:
    line = Line(7)
    for number in range(3):
        line.taps[0].send("a", f"r.{number}", b"", b"")
    line.taps[0].remove()
    assert b"".join(line.wire.written).count(b"PUB") == 3
    await asyncio.sleep(0)
    assert b"".join(line.wire.written).count(b"PUB") == 3


async def test_nothing_is_sent_to_a_socket_that_closes() -> None:
    line = Line(7)
    tap = line.taps[0]
    tap.send("a", "r.1", b"", b"")
    tap.send("a", "r.2", b"", b"")
    line.wire.closing = True
    assert not tap.is_open
    assert not tap.is_full(1 << 30)
    tap.remove()
    await asyncio.sleep(0)
    assert len(line.wire.written) == 1


async def test_full_leaves_room_for_small_ones() -> None:
    line = Line(7)
    tap = line.taps[0]
    line.wire.waiting = 500_000
    assert not tap.is_full(32 * 1024 * 1024)
    line.wire.waiting = 600_000
    assert tap.is_full(500_000)
    assert not tap.is_full(1000)
    line.wire.waiting = 1_048_000
    assert tap.is_full(1000)


# -- headers -------------------------------------------------------------------------

NAMES = st.sampled_from(["A", "Nats-Sequence", "a", "KV-Operation", "X-y_z"])
VALUES = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cf", "Z")), max_size=20
) | st.sampled_from(["", "a: b", ":", "a  b", "Ünï", "12", "NATS/1.0 404"])
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=5)
STATUS = st.sampled_from(
    ["", " 503", " 404 Message Not Found", " 204 EOB", " 408 a: b"]
)


async def nats_headers(head: bytes) -> dict[str, str]:
    """What nats-py makes of a header block."""
    return await Client()._process_headers(head) or {}


@given(FIELDS, STATUS, st.sampled_from([": ", ":", ":  ", ":\t"]))
async def test_headers_are_read_as_nats_py_reads_them(
    fields: list[tuple[str, str]], status: str, colon: str
) -> None:
    if fields and status == " 503":
        # nats-py takes the fields after a bare status for its description.
        status = ""
    lines = [f"NATS/1.0{status}", *(f"{name}{colon}{value}" for name, value in fields)]
    head = "".join(f"{line}\r\n" for line in [*lines, ""]).encode()
    expected = await nats_headers(head)
    if status == " 503":
        expected["Description"] = ""
    assert parse_headers(head) == expected


@given(st.dictionaries(NAMES, VALUES, min_size=1))
async def test_headers_that_are_sent_are_read_again(headers: dict[str, str]) -> None:
    head = encode_headers(headers)
    assert parse_headers(head) == headers == await nats_headers(head)


async def test_of_a_repeated_field_the_servers_counts_which_comes_last() -> None:
    head = b"NATS/1.0\r\nNats-Sequence: 999\r\nNats-Sequence: 1\r\n\r\n"
    assert parse_headers(head) == {"Nats-Sequence": "1"}


async def test_a_status_is_one_in_the_first_line_only() -> None:
    assert parse_headers(b"NATS/1.0\r\nStatus: 404\r\nA: b\r\n\r\n") == {"A": "b"}
    both = parse_headers(b"NATS/1.0 204 EOB\r\nStatus: 404\r\n\r\n")
    assert both == {"Status": "204", "Description": "EOB"}


async def test_a_reply_without_headers_has_none() -> None:
    assert Reply("a", b"", b"x").headers is None
    assert Reply("a", b"NATS/1.0 503\r\n\r\n", b"").headers == {
        "Status": "503",
        "Description": "",
    }


async def test_headers_that_are_no_text_are_kept_apart() -> None:
    head = b"NATS/1.0\r\nA: \xff\r\nB: b\r\nno field\r\n\r\n"
    headers = parse_headers(head)
    assert headers["B"] == "b"
    assert headers["A"].encode(errors="surrogateescape") == b"\xff"
