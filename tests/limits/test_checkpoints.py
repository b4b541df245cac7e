"""A thread of thousands of checkpoints in one namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.checkpoint.saving import (
    at,
    get,
    id_of,
    ids,
    listed,
    numbered,
    parent_of,
    put,
    put_chain,
    values,
)
from tests.limits.lines import Line
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore

MANY = 10_000 if SOAK else 4_000
"""More than three answers to one request hold."""


@pytest.fixture(params=["jetstream", "memory"] if SOAK else ["jetstream"])
async def saver(
    request: pytest.FixtureRequest, stock: Line
) -> AsyncIterator[DocumentCheckpointSaver]:
    if request.param == "memory":
        async with DocumentCheckpointSaver(MemoryDocumentStore()) as opened:
            yield opened
    else:
        yield stock.saver
        await stock.lives()


async def test_thousands_of_checkpoints_are_all_there(
    saver: DocumentCheckpointSaver, stock: Line
) -> None:
    names = numbered(MANY)
    await put_chain(saver, names, run_id="r")
    await put(saver, "1", {"x": 1}, thread="small")
    await saver.aput_writes(at(names[4]), [("a", "early")], "task")

    found = await listed(saver, at())
    assert [id_of(each) for each in found] == names[::-1]
    assert [parent_of(each) for each in found] == [*names[-2::-1], None]
    assert [each.checkpoint["channel_values"]["n"] for each in found] == list(
        range(MANY - 1, -1, -1)
    )
    assert await ids(saver, at(), before=at("000004")) == names[3::-1]
    half = MANY // 2
    assert (
        await ids(saver, at(), before=at(names[half]), limit=3)
        == (names[half - 1 : half - 4 : -1])
    )
    assert await ids(saver, at(), limit=1030) == names[:-1031:-1]
    assert await ids(saver, at(), filter={"step": 7}) == ["000007"]
    assert await ids(saver, at(), filter={"step": MANY - 2}, limit=1) == names[-2:-1]
    assert await ids(saver, None, limit=1) == ["1"]
    heard = stock.client.stats["in_bytes"]
    # The other one remembers nothing.
    for reader in (saver, stock.other) if saver is stock.saver else (saver,):
        assert await ids(reader, at(), limit=5) == names[:-6:-1]
        assert await values(reader) == {"n": MANY - 1}
        assert await values(reader, "000003") == {"n": 3}
        assert (await get(reader, names[4])).pending_writes == [("task", "a", "early")]
        assert await ids(reader, at(names[77])) == [names[77]]
        assert await values(reader, thread="small") == {"x": 1}
    # Nobody reads all names, or all records: they are some hundred kilobytes.
    assert stock.client.stats["in_bytes"] - heard < 20_000
    await put(saver, names[-1] + "x", {"n": "next"}, parent=names[-1])
    assert await values(saver) == {"n": "next"}
    if SOAK:
        await saver.acopy_thread("t", "copy")
        assert await ids(saver, at(thread="copy")) == [names[-1] + "x", *names[::-1]]
        await saver.aprune(["copy"])
        assert await ids(saver, at(thread="copy")) == [names[-1] + "x"]
        await saver.adelete_for_runs(["r"])
        assert await ids(saver, at()) == [names[-1] + "x"]
        await saver.adelete_thread("copy")
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(at()) is None
    assert await ids(saver, at()) == []
    assert await ids(saver) == ["1"]
