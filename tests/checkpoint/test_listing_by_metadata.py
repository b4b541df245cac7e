"""Listings by metadata: what is remembered of it is not read again, and never wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from tests.checkpoint.saving import at, ids, put

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint import heads
from jskv_saver.checkpoint.layout import Scope
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import Typed
from jskv_saver.document.model import Path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the checkpoints that listings read."""
    asked: list[str] = []
    read_records = Reader.read_records

    async def noting(self: Reader, paths: Sequence[Path]) -> Any:
        asked.extend(path[-1] for path in paths)
        return await read_records(self, paths)

    monkeypatch.setattr(Reader, "read_records", noting)
    return asked


async def tagged(saver: DocumentCheckpointSaver, tag: int, **how: Any) -> list[str]:
    return await ids(saver, at(), filter={"tag": tag}, **how)


async def test_what_matches_is_all_that_a_second_listing_reads(
    saver: DocumentCheckpointSaver, read: list[str]
) -> None:
    for n in range(40):
        await put(saver, f"{n:02}", {"x": n}, tag=n % 10)
    expected = ["37", "27", "17", "07"]
    assert await tagged(saver, 7) == expected
    assert len(read) == 40
    read.clear()
    assert await tagged(saver, 7) == expected
    assert read == expected
    # What is put from then on is remembered as well.
    await put(saver, "40", {"x": 40}, parent="39", tag=7)
    await put(saver, "41", {"x": 41}, parent="40", tag=8)
    read.clear()
    assert await tagged(saver, 7, limit=2) == ["40", "37"]
    assert read == ["40", "37"]
    read.clear()
    assert await tagged(saver, 99) == []
    assert read == []


async def test_metadata_that_others_replaced_is_read_again(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for n in range(4):
        await put(saver, f"{n}", {"x": n}, run_id=f"r{n}", tag=1)
    assert await tagged(saver, 1) == ["3", "2", "1", "0"]
    await other.adelete_for_runs(["r1"])
    assert await tagged(saver, 1) == ["3", "2", "0"]
    await put(other, "1", {"x": 1}, tag=2)
    assert await tagged(saver, 2) == ["1"]
    await put(other, "4", {"x": 4}, parent="3", tag=1)
    assert await tagged(saver, 1) == ["4", "3", "2", "0"]
    await other.adelete_thread("t")
    assert await tagged(saver, 1) == []
    await put(other, "3", {"x": 5}, tag=2)
    assert await tagged(saver, 2) == ["3"]


async def test_large_metadata_is_read_each_time(
    saver: DocumentCheckpointSaver, read: list[str]
) -> None:
    long = "long" * heads.MAX_METADATA
    for n in range(4):
        await put(saver, f"{n}", {"x": n}, tag=n, note=long if n % 2 else "")
    for _ in range(2):
        read.clear()
        assert await ids(saver, at(), filter={"tag": 1, "note": long}) == ["1"]
    assert read == ["3", "1"]


async def test_whoever_writes_a_listing_by_metadata_is_right(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    rng = random.Random(random.randrange(2**32))
    stored: dict[str, int] = {}
    for n in range(60):
        who, tag = rng.choice((saver, other)), rng.randrange(3)
        if stored and rng.random() < 0.2:
            gone = rng.choice(list(stored))
            await who.adelete_for_runs([f"run of {gone}"])
            del stored[gone]
        else:
            # Some of them for the second time, with a clock that is behind.
            id = f"{rng.randrange(n + 1):02}"
            if id not in stored:
                await put(who, id, {"x": n}, tag=tag, run_id=f"run of {id}")
                stored[id] = tag
        for reader in (saver, other):
            right = sorted((i for i in stored if stored[i] == tag), reverse=True)
            assert await tagged(reader, tag) == right


def test_metadata_counts_among_what_is_remembered() -> None:
    remembered = heads.Heads()
    scope = Scope("agent", "thread", "")
    bare = heads.Head(1)
    remembered.set(scope, bare)
    met = {f"{n}": Typed("msgpack", bytes(heads.MAX_METADATA)) for n in range(9)}
    heads.KnownMetadata(remembered, scope).add(met)
    known = remembered.get(scope)
    assert known is not None
    assert known.metadata == met
    assert known.size - bare.size > 9 * heads.MAX_METADATA


async def test_a_listing_of_one_checkpoint_is_not_from_memory(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", tag=1)
    assert await tagged(saver, 1) == ["1"]
    await other.adelete_thread("t")
    await put(other, "1", tag=2)
    assert await ids(saver, at("1"), filter={"tag": 2}) == ["1"]
    assert await ids(saver, at("1"), filter={"tag": 1}) == []
