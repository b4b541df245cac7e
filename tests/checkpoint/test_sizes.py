"""Large and many: nothing has a ceiling but the disk, and a step writes what is new."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.checkpoint.saving import (
    at,
    get,
    listed,
    numbered,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.document.model import Document, Write

MIB = 1024 * 1024


class Counting(MemoryDocumentStore):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        writes = list(writes)
        for _, _, data, _ in writes:
            self.written += sum(len(value) for value in data.values())
        return await super().put_many(namespace, writes, exact=exact)


@pytest.fixture
async def counted() -> AsyncIterator[tuple[DocumentCheckpointSaver, Counting]]:
    """A saver, and the store that counts for it."""
    store = Counting()
    async with DocumentCheckpointSaver(store) as saver:
        yield saver, store


@pytest.mark.parametrize("size", [20 * MIB, MIB, *(MIB - n for n in (1, 512, 4096))])
async def test_a_value_of_any_size_is_stored_on_a_stock_server(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, size: int
) -> None:
    large = b"a" * (size - 1) + b"z"
    state = {"x": large, "small": 1}
    await put(saver, "1", state)
    await put(saver, "2", {**state, "x": large + b"more"}, parent="1")

    assert await values(other, "1") == state
    assert (await values(other))["x"] == large + b"more"
    await other.acopy_thread("t", "copy")
    await saver.adelete_thread("t")
    assert await values(other, "1", thread="copy") == state


async def test_three_hundred_channels_are_stored(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    state: dict[str, Any] = {f"channel {n}": f"{n} " * n for n in range(300)}
    await put(saver, "1", state)
    changed = {**state, "channel 7": "changed", "channel 299": "x" * 9000}
    await put(
        saver,
        "2",
        changed,
        parent="1",
        versions={c: "2" if changed[c] != state[c] else "1" for c in state},
        new={"channel 7": "2", "channel 299": "2"},
    )

    assert await values(other, "1") == state
    assert await values(other, "2") == changed


async def test_two_thousand_channels_with_long_versions_are_stored(
    saver: DocumentCheckpointSaver,
) -> None:
    state = {f"channel {n}": n for n in range(2000)}
    versions = {c: f"{n:032}.{n:016}" for n, c in enumerate(state)}
    await put(saver, "1", state, versions=versions)

    found = (await get(saver)).checkpoint
    assert found["channel_values"] == state
    assert found["channel_versions"] == versions


async def test_a_growing_list_is_stored_about_twice(
    counted: tuple[DocumentCheckpointSaver, Counting],
) -> None:
    saver, store = counted
    messages: list[HumanMessage] = []
    parent = None
    for n, id in enumerate(numbered(450)):
        messages.append(HumanMessage(f"{n} " * 400, id=str(n)))
        await put(saver, id, {"messages": messages}, parent=parent)
        parent = id
    whole = len(saver.serde.dumps_typed(messages)[1])

    assert await values(saver) == {"messages": messages}
    assert await values(saver, "000099") == {"messages": messages[:100]}
    names = await store.ids("default", "bl")
    parts = await store.get_many("default", [("bl", name) for name in names])
    stored = sum(len(part.data["b"]) for part in parts.values())
    assert stored <= 2.2 * whole
    assert store.written <= 4 * whole


async def test_an_unchanged_channel_is_not_stored_again(
    counted: tuple[DocumentCheckpointSaver, Counting],
) -> None:
    saver, store = counted
    state = {"keep": "k" * 100_000, "n": 0}
    await put(saver, "0", state, versions={"keep": 1, "n": 0})
    first = store.written
    for n in range(1, 50):
        state["n"] = n
        await put(
            saver,
            f"{n:03}",
            state,
            parent=f"{n - 1:03}" if n > 1 else "0",
            versions={"keep": 1, "n": n},
            new={"n": n},
        )

    assert store.written - first < 50_000
    assert await values(saver) == state


async def test_a_fork_never_shares_a_value_by_its_version_alone(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"x": "root" * 500}, versions={"x": 1})
    await put(saver, "2", {"x": "left" * 500}, parent="1", versions={"x": 2})
    await put(saver, "3", {"x": "right" * 500}, parent="1", versions={"x": 2})
    await put(other, "4", {"x": "left" * 500}, parent="2", versions={"x": 2}, new={})
    await put(saver, "5", {"x": "right" * 500}, parent="3", versions={"x": 2}, new={})

    assert [f.checkpoint["channel_values"]["x"][:4] for f in await listed(saver)] == [
        "righ",
        "left",
        "righ",
        "left",
        "root",
    ]
    assert await values(other, "4") == {"x": "left" * 500}


async def test_a_store_of_small_documents_keeps_large_state() -> None:
    store = MemoryDocumentStore(max_document_bytes=150_000)
    state = {"x": "a" * 700_000, **{f"c{n}": "b" * 1000 for n in range(200)}}
    async with DocumentCheckpointSaver(store) as saver:
        await put(saver, "1", state, about="m" * 200_000)
        await saver.aput_writes(at("1"), [("w", "c" * 500_000)], "task")
        await put(saver, "2", state, parent="1", new={})

        found = await get(saver, "1")
        assert found.checkpoint["channel_values"] == state
        assert found.pending_writes == [("task", "w", "c" * 500_000)]
        assert found.metadata.get("about") == "m" * 200_000
        assert await values(saver, "2") == state
