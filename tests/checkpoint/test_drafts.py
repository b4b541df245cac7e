"""How checkpoints are laid out: values are rebuilt, records stay small."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.checkpoint.saving import at, checkpoint, meta

from jskv_saver.checkpoint.config import parse_ref
from jskv_saver.checkpoint.drafts import (
    INLINE,
    INLINE_FIRST,
    Base,
    Draft,
    draft_of,
    lay_out,
    value_bytes,
)
from jskv_saver.checkpoint.increments import Run
from jskv_saver.checkpoint.layout import (
    Record,
    decode_record,
    encode_record,
)
from jskv_saver.checkpoint.values import (
    KNOWN,
    Entry,
    Typed,
    greatest,
    join,
)
from jskv_saver.document.model import Document

SERDE = JsonPlusSerializer()
PART_SIZE = 20_000


def draft(
    id: str,
    values: Mapping[str, Any],
    versions: Mapping[str, Any],
    new: Mapping[str, Any],
    parent: str | None = None,
    **metadata: Any,
) -> Draft:
    config = at(parent)
    return draft_of(
        parse_ref(config),
        "agent",
        SERDE,
        lambda scope, id: None,
        config,
        checkpoint(id, values, versions),
        meta(**metadata),
        dict(new),
    )


def stored(record: Record) -> Record:
    """The record as it is read back from its document."""
    now = datetime.now(UTC)
    fields = encode_record(record)
    return decode_record(Document(("a", "t", "", record.id), fields, 7, now, now))


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


@given(states=st.lists(VALUES, min_size=1, max_size=6), data=st.data())
def test_any_history_is_rebuilt(
    states: list[dict[str, Any]], data: st.DataObject
) -> None:
    parts: dict[bytes, bytes] = {}
    bases: list[Base] = []
    known: tuple[str, ...] = ()
    versions: dict[str, Any] = {}
    for n, state in enumerate(states):
        base = data.draw(st.sampled_from([None, *bases]))
        # Half of the versions move on; what did not must be the parent's value.
        new = {c: n for c in state if data.draw(st.booleans())}
        versions = {**dict.fromkeys(state, 0), **(base.record.versions if base else {})}
        versions |= new
        wanted = draft(f"{n}", state, {c: versions[c] for c in state}, new)
        carried = {c for c in state if base and wanted.carries(c, base)}
        laid, fresh = lay_out(wanted, base, known, PART_SIZE)
        assert all(0 < len(content) <= PART_SIZE for content in fresh.values())
        parts |= fresh
        record = stored(laid.record)
        assert record.digests() <= parts.keys()
        found = value_bytes(record, parts)
        for channel, typed in wanted.values.items():
            if channel in carried and base is not None:
                entry = base.record.channels[channel]
                old = Typed(entry.kind, join(entry, base.record.inline, parts))
                assert found[channel] in (old, typed)
            else:
                assert found[channel] == typed
        for channel, typed in laid.values.items():
            assert typed == found[channel]
        assert found.keys() == state.keys()
        assert record.known == greatest(known, record.id)
        known = record.known
        bases.append(laid)


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


def test_a_small_first_checkpoint_has_no_part_and_what_follows_has_one() -> None:
    state = {"small": "s" * 100, "large": "l" * (INLINE_FIRST - 200)}
    first = draft("1", state, {"large": 1}, {"large": 1})
    laid, parts = lay_out(first, None, (), PART_SIZE)
    assert not parts
    assert value_bytes(laid.record, {}) == first.values

    state["small"] = "t"
    second = draft("2", state, {"large": 1}, {}, parent="1")
    following, parts = lay_out(second, laid, ("1",), PART_SIZE)
    assert len(parts) == 1
    assert following.record.channels["large"].runs[0].part in parts
    assert value_bytes(following.record, parts) == second.values

    large = {"a": "a" * INLINE_FIRST, "b": "b"}
    assert len(lay_out(draft("1", large, {}, {}), None, (), PART_SIZE)[1]) == 1


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
