"""How checkpoints are laid out: values are rebuilt, records stay small."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6
from tests.checkpoint.drafting import PART_SIZE, draft, found_by, stored, uuid_at

from jskv_saver.checkpoint.drafts import (
    INLINE,
    Base,
    lay_out,
    value_bytes,
)
from jskv_saver.checkpoint.increments import Run
from jskv_saver.checkpoint.layout import (
    decode_record,
    encode_record,
)
from jskv_saver.checkpoint.values import (
    KNOWN,
    Entry,
    Typed,
    greatest,
    join,
    pack,
    unpack,
)
from jskv_saver.document.model import Document

VALUES = st.dictionaries(
    st.sampled_from(["a", "b", "c\x00", "é", "half \ud83d"]),
    st.one_of(
        st.none(),
        st.binary(max_size=600),
        st.lists(st.text(max_size=200), max_size=30),
        st.builds(lambda n: "x" * n, st.integers(0, 3 * PART_SIZE)),
        st.builds(lambda n: [f"message {i}" * 9 for i in range(n)], st.integers(0, 90)),
    ),
)


IDS = st.one_of(
    st.integers(0, 99).map(uuid_at),
    st.integers(0, 99).map(str),
    st.sampled_from([uuid_at(10).upper(), "9" * 36, "é"]),
)


@given(
    ids=st.lists(IDS, min_size=1, max_size=6, unique=True),
    part_size=st.sampled_from([2048, PART_SIZE, 524_288]),
    data=st.data(),
)
def test_any_history_is_rebuilt(
    ids: list[str], part_size: int, data: st.DataObject
) -> None:
    apart: dict[bytes, bytes] = {}
    bases: dict[str, Base] = {}
    known: tuple[str, ...] = ()
    versions: dict[str, Any] = {}
    for n, id in enumerate(ids):
        state = data.draw(VALUES)
        base = data.draw(st.sampled_from([None, *bases.values()]))
        # Half of the versions move on; what did not must be the parent's value.
        new = {c: n for c in state if data.draw(st.booleans())}
        versions = {**dict.fromkeys(state, 0), **(base.record.versions if base else {})}
        versions |= new
        wanted = draft(id, state, {c: versions[c] for c in state}, new)
        carried = {c for c in state if base and wanted.carries(c, base)}
        laid, fresh = lay_out(wanted, base, known, part_size)
        assert all(0 < len(content) <= part_size for content in fresh.values())
        apart |= fresh
        record = stored(laid.record)
        bases[id] = laid
        parts = found_by(record, bases, apart)
        found = value_bytes(record, parts)
        for channel, typed in wanted.values.items():
            if channel in carried and base is not None:
                entry = base.record.channels[channel]
                old_parts = found_by(base.record, bases, apart)
                old = Typed(entry.kind, join(entry, base.record.inline, old_parts))
                assert found[channel] in (old, typed)
            else:
                assert found[channel] == typed
        for channel, typed in laid.values.items():
            assert typed == found[channel]
        assert found.keys() == state.keys()
        assert record.known == greatest(known, record.id)
        known = record.known


def test_a_record_is_read_as_it_was_written() -> None:
    wanted = draft(
        "5",
        {"small": 1, "large": "x" * 5000},
        {"small": 1, "large": 2.5, "no value": f"{3:032}.5"},
        {"small": 1},
        parent="4",
        run_id="run é",
        source="update",
        counters_since_delta_snapshot={"delta": (1, 2), "large": (3, 4)},
    )
    laid, parts = lay_out(wanted, None, ("9", "3"), PART_SIZE)
    record = stored(laid.record)

    assert record.parent == "4"
    assert record.known == ("9", "5", "3")
    assert record.run == "run é"
    assert record.deltas == {"delta": 2}
    assert record.versions == {"small": 1, "large": 2.5, "no value": f"{3:032}.5"}
    assert value_bytes(record, parts) == wanted.values


def test_small_values_are_in_the_record_and_large_ones_in_parts() -> None:
    state = {"small": "s" * (INLINE - 9), "large": "l" * INLINE}
    laid, parts = lay_out(draft("1", state, {}, {}), None, ("0",), PART_SIZE)

    assert [run.part for run in laid.record.channels["small"].runs] == [b""]
    assert laid.record.channels["large"].runs[0].part in parts
    assert len(parts) == 1


def test_many_small_values_do_not_swell_the_record() -> None:
    state = {f"c{n}": "s" * 400 for n in range(1000)}
    laid, parts = lay_out(draft("1", state, {}, {}), None, (), PART_SIZE)

    assert len(laid.record.inline) < 2000
    assert sum(map(len, parts.values())) < 1000 * 410
    assert len(parts) < 30


def test_values_in_too_many_pieces_are_stored_anew() -> None:
    """The record names each piece, and must fit a document itself."""
    names = [f"c{n}" for n in range(20)]
    state = dict.fromkeys(names, "x" * 2000)
    versions = dict.fromkeys(names, 1)
    first, parts = lay_out(draft("1", state, versions, {}), None, (), PART_SIZE)
    scattered = {
        name: Entry(
            entry.kind,
            tuple(
                Run(entry.runs[0].part, entry.runs[0].offset + at, 1)
                for at in range(entry.length)
            ),
        )
        for name, entry in first.record.channels.items()
    }
    record = first.record._replace(channels=scattered)
    assert value_bytes(record, parts) == dict(first.values)
    child = draft("2", state, versions, {}, parent="1")
    laid, fresh = lay_out(child, Base(record, first.values), (), PART_SIZE)

    assert len(encode_record(laid.record)["l"]) < PART_SIZE
    assert value_bytes(laid.record, fresh) == child.values


@pytest.mark.parametrize(
    "ids",
    [
        [str(uuid6(clock_seq=n)) for n in range(30)],
        [f"{n:03}" for n in range(30)],
        [f"{(n * 7) % 30:03}" for n in range(30)],
        [str(uuid6()), "x", str(uuid6()).upper(), "0" * 36, "é" * 12],
        ["11111111-1111-1111-1111-11111111111" + c for c in "0aA"],
    ],
)
def test_the_greatest_ids_are_known_whatever_they_are(ids: list[str]) -> None:
    known: tuple[str, ...] = ()
    for n, id in enumerate(ids):
        laid, _ = lay_out(draft(id, {}, {}, {}), None, known, PART_SIZE)
        known = stored(laid.record).known
        assert known == tuple(sorted(ids[: n + 1], reverse=True)[:KNOWN])
        assert stored(stored(laid.record)).known == known


def test_of_many_small_values_only_what_changes_is_stored_again() -> None:
    state = {f"c{n}": "s" * 100 for n in range(20)} | {"counter": 0}
    versions = dict.fromkeys(state, 1)
    first, parts = lay_out(
        draft(uuid_at(1), state, versions, versions), None, (), PART_SIZE
    )
    assert not parts
    state["counter"], versions["counter"] = 1, 2
    wanted = draft(uuid_at(2), state, versions, {"counter": 2}, parent=uuid_at(1))
    second, parts = lay_out(wanted, first, (uuid_at(1),), PART_SIZE)
    assert not parts
    assert not second.record.own
    assert len(second.record.inline) < 300
    assert value_bytes(second.record, first.record.brought) == wanted.values


def test_few_small_values_need_nothing_else() -> None:
    """Who reads them asks for one document."""
    state = {f"c{n}": "s" * 100 for n in range(9)}
    versions = dict.fromkeys(state, 1)
    first, _ = lay_out(
        draft(uuid_at(1), state, versions, versions), None, (), PART_SIZE
    )
    wanted = draft(uuid_at(2), state, versions, {}, parent=uuid_at(1))
    second, parts = lay_out(wanted, first, (uuid_at(1),), PART_SIZE)
    assert not parts
    assert not second.record.digests()


def test_the_parts_of_a_large_value_have_the_same_names_if_it_is_put_again() -> None:
    state = {"large": b"l" * 2_000_000}
    names = [
        list(lay_out(draft(id, state, {}, {}), None, (), 524_288)[1])
        for id in ("1", "1", "2")
    ]
    assert len(set(names[0])) == 4
    assert names[0] == names[1]
    assert not {*names[0]} & {*names[2]}


def test_large_values_of_one_checkpoint_share_no_name() -> None:
    state = {"one": b"l" * 2_000_000, "other": b"l" * 2_000_000}
    wanted = draft("1", state, {}, {})
    laid, parts = lay_out(wanted, None, (), 524_288)
    assert len(parts) == 8
    assert value_bytes(laid.record, parts) == wanted.values


def test_a_record_with_all_versions_in_one_map_is_read_and_continued() -> None:
    """As records were stored before their channels' versions stood apart."""
    state = {"small": 1, "large": "x" * 5000}
    wanted = draft("5", state, {"small": 1, "large": 2.5, "gone": 7}, {}, parent="4")
    laid, parts = lay_out(wanted, None, ("9", "3"), PART_SIZE)
    data = encode_record(laid.record)
    *first, of_channels, others, skeleton, metadata, channels = unpack(data["l"])
    versions = dict(zip(channels, of_channels, strict=True)) | others
    kinds = {name: ["msgpack", *row[1:]] for name, row in channels.items()}
    data["l"] = pack((*first, versions, skeleton, metadata, kinds))
    now = datetime.now(UTC)
    record = decode_record(Document(("a", "t", "", "5"), data, 7, now, now))

    assert record == stored(laid.record)._replace(stored_at=now)
    assert record.versions == {"small": 1, "large": 2.5, "gone": 7}
    assert value_bytes(record, parts) == wanted.values
    child = draft("6", state, record.versions, {}, parent="5")
    following, fresh = lay_out(child, Base(record, {}), ("9", "5"), PART_SIZE)
    assert not fresh
    assert value_bytes(stored(following.record), parts) == wanted.values
