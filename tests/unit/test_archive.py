"""The archive's format: what was written is read, what was damaged is refused."""

from __future__ import annotations

import random
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jskv_saver.checkpoint.archive import ArchiveReader, ArchiveWriter
from jskv_saver.checkpoint.archived import (
    ArchivedCheckpoint,
    ArchivedThread,
    ArchivedWrites,
    Item,
    Totals,
)
from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

TEXTS = st.text(max_size=12)
VALUES = st.builds(
    Typed,
    st.sampled_from(["msgpack", "null", "msgpack+aes"]),
    st.one_of(
        st.binary(max_size=60),
        # Long enough to share with the one before.
        st.integers(1, 9).map(lambda n: b"common beginning " * 40 * n + bytes([n])),
    ),
)
WRITES = st.lists(
    st.builds(PendingWrite, TEXTS, TEXTS, st.integers(-5, 50), TEXTS, VALUES),
    max_size=3,
)
CHECKPOINTS: st.SearchStrategy[Item] = st.builds(
    ArchivedCheckpoint,
    ns=st.sampled_from(["", "a:1", "b"]),
    id=TEXTS,
    parent=st.none() | TEXTS,
    run=st.none() | TEXTS,
    format=st.integers(1, 4),
    deltas=st.dictionaries(TEXTS, st.integers(0, 9), max_size=2),
    versions=st.dictionaries(
        TEXTS, st.integers(0, 2**62) | TEXTS | st.floats(allow_nan=False), max_size=3
    ),
    skeleton=VALUES,
    metadata=VALUES,
    values=st.dictionaries(st.sampled_from("abc"), VALUES),
    writes=WRITES,
)
THREADS: st.SearchStrategy[Item] = st.builds(ArchivedThread, TEXTS, TEXTS, TEXTS)
ITEMS = st.lists(
    CHECKPOINTS | THREADS | st.builds(ArchivedWrites, TEXTS, TEXTS, WRITES), max_size=5
)


def archive(items: list[Item]) -> bytes:
    stream = BytesIO()
    writer = ArchiveWriter(stream)
    for item in items:
        if isinstance(item, ArchivedThread):
            writer.thread(item)
        elif isinstance(item, ArchivedCheckpoint):
            writer.checkpoint(item)
        else:
            writer.writes(item)
    writer.end()
    return stream.getvalue()


def read(content: bytes) -> list[Item]:
    return list(ArchiveReader(BytesIO(content)))


def a_checkpoint(**more: Any) -> ArchivedCheckpoint:
    fields: dict[str, Any] = {
        "ns": "",
        "id": "1",
        "parent": None,
        "run": None,
        "format": 4,
        "deltas": {},
        "versions": {"x": 1},
        "skeleton": Typed("msgpack", b"s"),
        "metadata": Typed("msgpack", b"m"),
        "writes": [],
        "values": {"x": Typed("msgpack", bytes(range(256)) * 400)},
    }
    return ArchivedCheckpoint(**{**fields, **more})


@given(ITEMS)
def test_what_was_written_is_read(items: list[Item]) -> None:
    content = archive(items)
    reader = ArchiveReader(BytesIO(content))
    assert list(reader) == items
    checkpoints = [i for i in items if isinstance(i, ArchivedCheckpoint)]
    threads = sum(isinstance(i, ArchivedThread) for i in items)
    writes = sum(len(i.writes) for i in items if not isinstance(i, ArchivedThread))
    assert reader.totals == Totals(threads, len(checkpoints), writes)


@given(ITEMS, st.data())
def test_no_damage_is_taken_for_an_archive(
    items: list[Item], data: st.DataObject
) -> None:
    content = archive(items)
    at = data.draw(st.integers(0, len(content) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = bytearray(content)
    damaged[at] ^= 1 << bit
    with pytest.raises((CorruptDocumentError, UnsupportedFormatError)):
        read(bytes(damaged))
    with pytest.raises(CorruptDocumentError):
        read(content[:at])
    with pytest.raises(CorruptDocumentError):
        read(content + b"\0")


def test_frames_that_are_exchanged_are_noticed() -> None:
    thread = ArchivedThread("n", "a", "t")
    one, two = a_checkpoint(id="1"), a_checkpoint(id="2", values={})
    right = archive([thread, two, one])
    wrong = archive([thread, one, two])
    # The frames of one with the end of the other.
    with pytest.raises(CorruptDocumentError, match="digest"):
        read(right[:-32] + wrong[-32:])


def test_a_value_that_hardly_changes_is_stored_once() -> None:
    noise = random.Random(1).randbytes(100_000)
    items: list[Item] = [
        a_checkpoint(id=f"{n}", values={"x": Typed("msgpack", b"%d" % n + noise)})
        for n in range(50)
    ]
    content = archive(items)
    assert len(content) < 120_000
    assert read(content) == items


def test_a_newer_archive_is_named() -> None:
    content = archive([]).replace(b"ARCHIVE 1\n", b"ARCHIVE 2\n")
    with pytest.raises(UnsupportedFormatError, match="format 2: a newer release"):
        read(content)
    for other in (b"", b"PK\x03\x04", b"JSKV ARCHIVE x\n" + bytes(40)):
        with pytest.raises(CorruptDocumentError, match="archive cannot be used"):
            read(other)
