"""The first put of a thread: its opening and its record in one round trip, by a guess.

Was the guess wrong, the put is refused and starts again: nothing else may come of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.checkpoint.saving import at, listed, put

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    MemoryDocumentStore,
)
from jskv_saver._nats.requests import Requests
from jskv_saver.checkpoint.openings import MOST_FORESEEN, Openings
from jskv_saver.document.model import Write
from jskv_saver.document.port import ForeseesVersions

LARGE = "l" * 9000


@pytest.fixture
async def saver(nats_url: str, bucket: str) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver that has written already, so that its store foresees versions."""
    async with _open(nats_url, bucket) as opened:
        await put(opened, "0", thread="earlier")
        yield opened


@pytest.fixture
async def other(nats_url: str, bucket: str) -> AsyncIterator[DocumentCheckpointSaver]:
    async with _open(nats_url, bucket) as opened:
        await put(opened, "1", thread="earlier")
        yield opened


def _open(url: str, bucket: str) -> DocumentCheckpointSaver:
    store = JetStreamDocumentStore.from_conn_string(url, bucket=bucket)
    return DocumentCheckpointSaver(store, close_store=True)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents of each call of `put_many`."""
    sizes: list[int] = []
    original = JetStreamDocumentStore.put_many

    async def counted(
        self: JetStreamDocumentStore, namespace: str, writes: Any, **options: Any
    ) -> Any:
        sizes.append(len(writes))
        return await original(self, namespace, writes, **options)

    monkeypatch.setattr(JetStreamDocumentStore, "put_many", counted)
    return sizes


def _with_opening(saver: DocumentCheckpointSaver, rest: int) -> int:
    """Documents of a first put that are stored at once, the opening among them.

    Where there are no fast batches nothing is foreseen, and the opening goes first.
    """
    assert isinstance(saver.store, ForeseesVersions)
    return rest + (saver.store.next_version is not None)


async def _is_whole(
    saver: DocumentCheckpointSaver, ids: Sequence[str], thread: str = "t"
) -> None:
    rows = await listed(saver, at(thread=thread))
    assert [row.checkpoint["id"] for row in rows] == list(ids)
    for row in rows:
        assert row.checkpoint["channel_values"] == {"text": LARGE}
    latest = await saver.aget_tuple(at(thread=thread))
    assert latest
    assert latest.checkpoint["id"] == ids[0]


async def test_opening_index_part_and_record_are_one_batch(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, batches: list[int]
) -> None:
    # The first guess is wrong, for the other one has written.
    for n in range(3):
        await put(saver, "1", thread=f"a{n}")
    batches.clear()
    for thread in ("b", "c"):
        await put(saver, "1", {"text": LARGE}, thread=thread)
    assert batches == [_with_opening(saver, 3)] * 2
    for thread in ("b", "c"):
        for each in (saver, other):
            await _is_whole(each, ["1"], thread)
        await put(other, "2", {"text": LARGE}, parent="1", thread=thread)
        await _is_whole(saver, ["2", "1"], thread)


async def test_a_write_of_somebody_else_makes_the_guess_wrong_and_nothing_more(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, batches: list[int]
) -> None:
    # What the other one stored is not known here.
    await put(other, "2", thread="earlier")
    batches.clear()
    await put(saver, "1", {"text": LARGE})
    # Refused at its record; then what is fenced on the opening that is there.
    opened = _with_opening(saver, 3)
    assert batches == ([opened, 3] if opened > 3 else [3])
    await _is_whole(other, ["1"])
    # Not tried again soon.
    batches.clear()
    await put(saver, "1", {"text": LARGE}, thread="next")
    assert batches == [3]


async def test_guesses_come_back_when_nobody_else_writes(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, batches: list[int]
) -> None:
    await put(other, "2", thread="earlier")
    for n in range(4):
        await put(saver, "1", thread=f"t{n}")
    batches.clear()
    await put(saver, "1", thread="t4")
    await put(saver, "1", thread="t5")
    assert batches == [_with_opening(saver, 2)] * 2


async def test_a_delete_between_the_opening_and_the_record_is_noticed(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = JetStreamDocumentStore.put_many
    cut = 0

    async def overtaken(
        self: JetStreamDocumentStore, namespace: str, writes: list[Write], **how: Any
    ) -> Any:
        nonlocal cut
        # Right guesses: what stands before the record is stored, then erased.
        first = list(await original(self, namespace, writes[:-1], **how))
        if not cut:
            cut = len(first)
            await other.adelete_thread("t")
        return first + list(await original(self, namespace, writes[-1:], **how))

    monkeypatch.setattr(JetStreamDocumentStore, "put_many", overtaken)
    await put(saver, "1", {"text": LARGE})
    assert cut == _with_opening(saver, 2)
    await _is_whole(other, ["1"])


async def test_two_who_open_a_thread_at_once_both_store_all(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for n in range(40):
        thread = f"t{n}"
        for each in (saver, other):
            assert await each.aget_tuple(at(thread=thread)) is None
        await asyncio.gather(
            put(saver, "1", {"text": LARGE}, thread=thread),
            put(other, "2", {"text": LARGE}, thread=thread),
        )
        for each in (saver, other):
            await _is_whole(each, ["2", "1"], thread)


async def test_one_who_opened_it_first_wins_his_guess_and_loses_nothing(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    """The guess of the second is the very version of the first one's opening."""
    assert await saver.aget_tuple(at()) is None
    store = saver.store
    assert isinstance(store, ForeseesVersions)
    foreseen = store.next_version
    await put(other, "2", {"text": LARGE})
    assert store.next_version == foreseen
    await put(saver, "1", {"text": LARGE})
    await _is_whole(other, ["2", "1"])


async def test_large_values_are_not_sent_on_a_guess(
    saver: DocumentCheckpointSaver, batches: list[int]
) -> None:
    batches.clear()
    await put(saver, "1", {"text": "l" * (MOST_FORESEEN + 1)})
    assert batches == [3]


async def test_a_store_that_does_not_foresee_opens_first() -> None:
    store = MemoryDocumentStore()
    assert not isinstance(store, ForeseesVersions)
    async with DocumentCheckpointSaver(store) as saver:
        assert Openings(saver._partition).foreseen({}) is None
        await put(saver, "1", {"text": LARGE})
        await _is_whole(saver, ["1"])


async def test_nothing_is_foreseen_before_the_first_write_and_in_a_new_bucket(
    nats_url: str, bucket: str, saver: DocumentCheckpointSaver
) -> None:
    async with _open(nats_url, bucket) as fresh:
        assert isinstance(fresh.store, ForeseesVersions)
        assert await fresh.aget_tuple(at()) is None
        assert fresh.store.next_version is None
        await put(fresh, "1", {"text": LARGE})
        foreseen = fresh.store.next_version
        assert (foreseen is not None) == (_with_opening(saver, 0) == 1)
        await _is_whole(saver, ["1"])


async def test_while_a_write_is_under_way_nothing_is_foreseen(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = saver.store
    assert isinstance(store, JetStreamDocumentStore)
    foreseen = store.next_version
    meanwhile: list[int | None] = []
    request, batch = Requests.request, Requests.fast_batch

    async def looked_at(self: Requests, *what: Any, **how: Any) -> Any:
        meanwhile.append(store.next_version)
        return await request(self, *what, **how)

    async def batch_looked_at(self: Requests, *what: Any) -> Any:
        meanwhile.append(store.next_version)
        return await batch(self, *what)

    with monkeypatch.context() as patch:
        patch.setattr(Requests, "request", looked_at)
        patch.setattr(Requests, "fast_batch", batch_looked_at)
        await store.put("default", "cp", ("a", "b"), {"n": 1})
        await store.put_many(
            "default", [("cp", ("a", id), {"n": 1}, None) for id in ("c", "d")]
        )
    assert meanwhile
    assert set(meanwhile) == {None}
    assert foreseen is None or store.next_version == foreseen + 3


async def test_subgraphs_that_open_at_once_do_not_guess_alike(
    saver: DocumentCheckpointSaver, batches: list[int]
) -> None:
    for n in range(3):
        await put(saver, "1", thread=f"earlier {n}")
    batches.clear()
    await asyncio.gather(
        *(put(saver, "1", {"text": LARGE}, thread="t", ns=f"node:{n}") for n in "123")
    )
    # Each was stored at once: a guess that is refused is followed by another batch.
    assert sorted(batches) == sorted([3, 3, _with_opening(saver, 3)])
