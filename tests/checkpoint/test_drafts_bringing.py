"""What a record brings itself, and what later records refer to there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.checkpoint.drafting import (
    PART_SIZE,
    SERDE,
    draft,
    found_by,
    growing,
    stored,
    text,
    uuid_at,
)

from jskv_saver.checkpoint.drafts import (
    BESIDE,
    INLINE,
    OWN,
    Base,
    lay_out,
    value_bytes,
)
from jskv_saver.checkpoint.layout import (
    decode_record,
    encode_record,
)
from jskv_saver.checkpoint.values import (
    Typed,
    bytes_of,
    uuid_of,
)
from jskv_saver.document.model import Document


def test_a_record_brings_its_few_new_bytes_and_others_refer_to_them_there() -> None:
    log = [text(0)]
    first, parts = lay_out(growing(1, log), None, (), PART_SIZE)
    assert not parts
    assert len(first.record.brought) == 1
    chain = [first]
    for n in range(2, 6):
        log.append(text(n))
        base = chain[-1]
        laid, parts = lay_out(growing(n, log, base), base, (), PART_SIZE)
        assert not parts
        chain.append(laid)
    last = stored(chain[-1].record)
    # Its own part first, then those of its ancestors, each where it came from.
    assert len(last.brought) == 1
    assert [uuid_of(id) for id in last.located.values()] == [
        uuid_at(n) for n in (5, 1, 2, 3, 4)
    ]
    assert list(last.located) == last.digests()
    bases = {laid.record.id: laid for laid in chain}
    found = value_bytes(last, found_by(last, bases, {}))
    assert found["log"] == Typed(*SERDE.dumps_typed(log))


def test_what_a_record_brings_is_bounded() -> None:
    size = len(text(0))
    for part_size, most in ((524_288, OWN), (PART_SIZE, OWN), (2048, 512)):
        for count in range(1, 9):
            log = [text(n) for n in range(count)]
            laid, parts = lay_out(growing(1, log), None, (), part_size)
            own = laid.record.own
            assert bool(own) == (not parts)
            assert bool(own) == (INLINE < count * (size + 2) + 1 <= most), count


def test_new_bytes_in_more_than_one_part_are_all_apart() -> None:
    laid, parts = lay_out(
        draft(uuid_at(1), {"a": "a" * 600, "b": "b" * 3000}, {}, {}), None, (), 4096
    )
    assert len(parts) == 2
    assert not laid.record.brought
    assert not laid.record.located


def test_a_record_with_much_in_itself_brings_nothing() -> None:
    """Who looks for what it brings would read all of it."""
    for size, brings in ((BESIDE - 1000, True), (BESIDE, False)):
        wanted = draft(uuid_at(1), {"large": "l" * 600}, {}, {}, note="n" * size)
        laid, parts = lay_out(wanted, None, (), 524_288)
        assert (len(laid.record.inline) <= BESIDE) == brings
        assert bool(laid.record.own) == brings
        assert bool(parts) != brings


def test_a_record_fits_a_document_with_what_it_brings() -> None:
    """Its inline bytes, the pieces that it names and its own part are in one."""
    part_size, log = 2048, [text(n) for n in range(4)]
    first, _ = lay_out(growing(1, log), None, (), part_size)
    base = first
    for n in range(2, 60):
        log = [*log[:2], *log[3:], f"{n} " * 60]
        laid, _ = lay_out(growing(n, log, base), base, (), part_size)
        size = sum(map(len, encode_record(laid.record).values()))
        assert size < part_size + 4096 // 4, n
        base = laid


def test_a_record_brings_something_beside_parts_apart() -> None:
    log = [text(n) for n in range(40)]
    first, parts = lay_out(growing(1, log), None, (), PART_SIZE)
    assert parts
    assert not first.record.own
    log.append(text(40))
    second, none = lay_out(growing(2, log, first), first, (), PART_SIZE)
    assert not none
    record = stored(second.record)
    assert [*record.located.values()] == [bytes_of(uuid_at(2))]
    assert record.digests() == [*record.brought, *parts]


@pytest.mark.parametrize("id", ["2", uuid_at(0xAB).upper(), "é"])
def test_only_records_with_uuids_bring_parts(id: str) -> None:
    log = [text(0)]
    laid, parts = lay_out(draft(id, {"log": log}, {}, {}), None, (), PART_SIZE)
    assert len(parts) == 1
    assert encode_record(laid.record).keys() == {"l", "k", "d", "b"}
    # Nor do they refer to those that do.
    first, _ = lay_out(growing(1, log), None, (), PART_SIZE)
    assert first.record.own
    wanted = draft(id, {"log": log}, {"log": 1}, {}, parent=uuid_at(1))
    laid, parts = lay_out(wanted, first, (), PART_SIZE)
    assert not laid.record.located
    assert len(parts) == 1
    assert value_bytes(laid.record, parts) == wanted.values


def test_a_record_refers_to_smaller_ids_only() -> None:
    """Whoever puts an id again sees that greater ones are there, and looks at it."""
    log = [text(0)]
    first, _ = lay_out(growing(5, log), None, (), PART_SIZE)
    log.append(text(1))
    second, _ = lay_out(growing(7, log, first), first, (), PART_SIZE)
    log.append(text(2))
    for id, refers in ((3, False), (5, False), (6, False), (7, False), (8, True)):
        laid, parts = lay_out(growing(id, log, second), second, (), PART_SIZE)
        record = stored(laid.record)
        assert not parts
        assert record.own
        others = {uuid_of(id) for id in record.located.values()} - {record.id}
        assert others == ({uuid_at(5), uuid_at(7)} if refers else set())
        bases = {each.record.id: each for each in (first, second, laid)}
        found = value_bytes(record, found_by(record, bases, {}))
        assert found["log"] == Typed(*SERDE.dumps_typed(log))


def test_a_record_of_before_is_read_and_referred_to() -> None:
    """Records that bring nothing have neither of the two fields."""
    now = datetime.now(UTC)
    fields = encode_record(
        lay_out(growing(1, [text(0)]), None, (), PART_SIZE)[0].record
    )
    content = fields.pop("p")
    assert fields.keys() == {"l", "k", "d", "b"}
    path = ("agent", "t", "", uuid_at(1))
    old = decode_record(Document(path, fields, 7, now, now))
    assert not old.brought
    assert not old.located
    parts = {old.digests()[0]: content}
    first = Base(old, value_bytes(old, parts))
    wanted = growing(2, [text(0), text(1)], first)
    laid, none = lay_out(wanted, first, (), PART_SIZE)
    assert not none
    record = stored(laid.record)
    assert [*record.located.values()] == [bytes_of(uuid_at(2))]
    assert record.digests()[1:] == old.digests()
    found = value_bytes(record, found_by(record, {record.id: laid}, parts))
    assert found == wanted.values
