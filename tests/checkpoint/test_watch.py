"""`watch`: what happens to threads, on each store, async and blocking."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Interrupt
from tests.checkpoint.saving import OpenSaver, at, numbered, put, put_chain
from tests.patience import PATIENCE, until

from jskv_saver import (
    DocumentCheckpointSaver,
    Encryption,
    MemoryDocumentStore,
    RemoteDocumentStore,
    ThreadEvent,
)
from jskv_saver.checkpoint.contents import Contents
from jskv_saver.checkpoint.watch import Watch
from jskv_saver.errors import (
    EncryptionError,
    InvalidRequestError,
    StoreClosedError,
    StoreUnavailableError,
)


async def take(events: AsyncIterator[ThreadEvent], count: int) -> list[ThreadEvent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


def brief(events: list[ThreadEvent]) -> list[tuple[Any, ...]]:
    return [(e.kind, e.thread_id, *e.checkpoint_ids) for e in events]


async def test_all_that_happens_is_told_in_order(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "0", {"x": 0}, thread="before")
    async with saver.watch() as watch:
        events = aiter(watch)
        await put(other, "1", {"x": 1}, run_id="r", by="me")
        await other.aput_writes(at("1"), [("x", 2), ("y", 3)], "task")
        question = Interrupt("really?", id="i")
        await other.aput_writes(at("1"), [(INTERRUPT, [question])], "asks")
        await put(other, "2", {"x": 2}, parent="1", thread="t", ns="")
        await put(saver, "9", {"x": 9}, thread="u", ns="child:1")
        found = await take(events, 5)
        await other.adelete_thread("t")
        await other.adelete_thread("t")
        await put(saver, "8", {"x": 8}, thread="u", ns="child:1")
        found += await take(events, 2)

    assert brief(found) == [
        ("checkpoint", "t", "1"),
        ("writes", "t", "1"),
        ("interrupt", "t", "1"),
        ("checkpoint", "t", "2"),
        ("checkpoint", "u", "9"),
        ("deleted", "t"),
        ("checkpoint", "u", "8"),
    ]
    first, writes, interrupt, second, inner, gone, _ = found
    assert [e.revision for e in found] == sorted({e.revision for e in found})
    assert first.metadata["source"] == "loop"
    assert (first.metadata["by"], first.run_id, first.channels) == ("me", "r", ("x",))
    assert (first.parent_id, second.parent_id) == (None, "1")
    assert (writes.task_id, writes.channels) == ("task", ("x", "y"))
    assert interrupt.interrupts == (question,)
    assert (inner.checkpoint_ns, gone.checkpoint_ns) == ("child:1", None)
    state = await saver.aget_tuple(inner.config)
    assert state is not None
    assert state.checkpoint["channel_values"] == {"x": 9}


async def test_a_question_that_was_answered_is_not_asked_again(
    saver: DocumentCheckpointSaver,
) -> None:
    first, second = (Interrupt(text, id="i") for text in ("sure?", "really?"))
    await put(saver, "1", {"x": 1})
    async with saver.watch() as watch:
        events = aiter(watch)
        await saver.aput_writes(at("1"), [(INTERRUPT, [first])], "task")
        found = await take(events, 1)
        writes = [(RESUME, ["yes"]), (INTERRUPT, [second])]
        await saver.aput_writes(at("1"), writes, "task")
        found += await take(events, 1)
        await saver.aput_writes(at("1"), [(RESUME, ["yes", "y"]), ("x", 2)], "task")
        found += await take(events, 1)

    assert [e.kind for e in found] == ["interrupt", "interrupt", "writes"]
    assert [e.interrupts for e in found] == [(first,), (second,), ()]


async def test_one_thread_of_one_namespace_and_agent(open_saver: OpenSaver) -> None:
    saver = open_saver(namespace="n", agent_id="a")
    others = [
        open_saver(namespace="n", agent_id="b"),
        open_saver(namespace="m", agent_id="a"),
    ]
    async with saver.watch("*") as watch:
        events = aiter(watch)
        for each in (*others, saver):
            for thread in (">", "t", "*"):
                await put(each, "1", {"x": 1}, thread=thread)
        assert brief(await take(events, 1)) == [("checkpoint", "*", "1")]
        for each in (*others, saver):
            for thread in (">", "t", "*"):
                await each.adelete_thread(thread)
        assert brief(await take(events, 1)) == [("deleted", "*")]
        await put(saver, "2", {"x": 1}, thread="*")
        assert brief(await take(events, 1)) == [("checkpoint", "*", "2")]
    for each in (saver, *others):
        await each.aclose()


async def test_a_watch_goes_on_after_a_revision(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(5))
    all_there = await take(aiter(saver.watch(after=0)), 5)
    assert [e.checkpoint_ids[0] for e in all_there] == numbered(5)
    rest = await take(aiter(other.watch(after=all_there[2].revision)), 2)
    assert rest == all_there[3:]
    watch = saver.watch("t", after=0)
    first: list[ThreadEvent] = []
    async for event in watch:
        first.append(event)
        if len(first) == 2:
            break
    # Iterated again it goes on.
    assert first + await take(aiter(watch), 3) == all_there
    with pytest.raises(InvalidRequestError, match="never reached"):
        await take(aiter(saver.watch(after=10**9)), 1)


async def test_what_a_prune_removes_is_told(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(4), run_id="r")
    await put_chain(saver, numbered(2), ns="child:1")
    async with saver.watch("t") as watch:
        events = aiter(watch)
        await other.aprune(["t"])
        found = await take(events, 2)
        assert brief(found) == [
            ("pruned", "t", "000000", "000001", "000002"),
            ("pruned", "t", "000000"),
        ]
        assert [e.checkpoint_ns for e in found] == ["", "child:1"]
        await put(other, "5", {"x": 1}, parent="000003", run_id="s")
        await other.adelete_for_runs(["r"])
        assert brief(await take(events, 2)) == [
            ("checkpoint", "t", "5"),
            ("pruned", "t", "000003"),
        ]
    # Whoever comes late is told by the epoch that ended it.
    late = await take(aiter(other.watch("t", after=0)), 4)
    assert ("pruned", "t", "000003") in brief(late)
    assert await saver.aget_tuple(at("5")) is not None
    await other.arepair(["t"])
    await put(saver, "6", {"x": 1}, parent="5")


async def test_a_blocking_watch(open_saver: OpenSaver) -> None:
    def write() -> None:
        for n in range(3):
            other.put_writes(at("1"), [("x", n)], f"task {n}")

    with open_saver() as saver, open_saver() as other:
        other.get_tuple(at())
        with saver.watch() as watch:
            writer = threading.Thread(target=write)
            writer.start()
            tasks = [event.task_id for _, event in zip(range(3), watch, strict=False)]
            writer.join()
        assert tasks == ["task 0", "task 1", "task 2"]
        for event in saver.watch(after=0):
            assert event.task_id == "task 0"
            break
        gc.collect()
        assert not saver._followers


async def test_a_watch_ends_with_its_saver_and_when_it_is_closed(
    open_saver: OpenSaver,
) -> None:
    saver = open_saver()
    await put(saver, "1", {"x": 1})
    closed: Watch = saver.watch()
    watching = asyncio.create_task(_all(closed))
    open_one = asyncio.create_task(_all(saver.watch()))
    await until(lambda: len(saver._followers) == 2)
    await put(saver, "2", {"x": 1})
    await closed.aclose()
    async with asyncio.timeout(PATIENCE):
        await watching
    await saver.aclose()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreClosedError):
            await open_one
    with pytest.raises(StoreClosedError):
        await take(aiter(closed), 1)


async def _all(watch: Watch) -> list[ThreadEvent]:
    return [event async for event in watch]


async def test_a_watch_of_another_loop_is_served(open_saver: OpenSaver) -> None:
    saver = open_saver()  # keeps a loop of its own
    await put(saver, "1", {"x": 1})
    assert brief(await take(aiter(saver.watch(after=0)), 1)) == [
        ("checkpoint", "t", "1")
    ]
    task = asyncio.create_task(_all(saver.watch()))
    await until(lambda: len(saver._followers) > 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await saver.aclose()


async def test_a_slow_reader_of_a_memory_store_holds_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jskv_saver.adapters.memory.changes._MOST", 10)
    store = MemoryDocumentStore()
    changes: Any = store.changes("n", [("cp", ("a",))])
    await changes.open()
    for n in range(1000):
        await store.put("n", "cp", "a", {"n": n})
    assert len(changes._waiting) <= 11
    change = await changes.next()
    assert change.document is not None
    assert change.document.data == {"n": 999}


async def test_a_store_that_tells_no_changes_says_so(nats_url: str) -> None:
    store = RemoteDocumentStore.from_conn_string(nats_url)
    with pytest.raises(InvalidRequestError, match="JetStreamDocumentStore"):
        DocumentCheckpointSaver(store).watch()
    await store.close()
    memory = MemoryDocumentStore()
    with pytest.raises(InvalidRequestError, match="after"):
        DocumentCheckpointSaver(memory).watch(after=-1)
    with pytest.raises(InvalidRequestError, match="thread_id"):
        DocumentCheckpointSaver(memory).watch("\0")
    with pytest.raises(InvalidRequestError, match="saver's collections"):
        memory.changes("n", [("users", "x")])
    with pytest.raises(InvalidRequestError, match="nothing to follow"):
        memory.changes("n", [])


async def test_an_encrypted_thread_is_watched(open_saver: OpenSaver) -> None:
    keys = Encryption(bytes(range(32)))
    question = Interrupt("a secret", id="i")
    async with (
        open_saver(encryption=keys) as saver,
        open_saver(encryption=Encryption(bytes(range(1, 33)))) as stranger,
    ):
        await put(saver, "1", {"x": 1}, by="me")
        await saver.aput_writes(at("1"), [(INTERRUPT, [question])], "asks")
        found = await take(aiter(saver.watch(after=0)), 2)
        assert found[0].metadata["by"] == "me"
        assert found[1].interrupts == (question,)
        with pytest.raises(EncryptionError):
            await take(aiter(stranger.watch(after=0)), 1)


async def test_a_read_that_fails_on_the_way_loses_no_event(
    open_saver: OpenSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 3
    real = Contents.read_writes

    async def failing(self: Contents, paths: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailableError("no answer")
        return await real(self, paths)

    async with open_saver() as saver:
        monkeypatch.setattr(Contents, "read_writes", failing)
        question = Interrupt("really?", id="i")
        await saver.aput_writes(at("1"), [(INTERRUPT, [question])], "asks")
        (found,) = await take(aiter(saver.watch(after=0)), 1)
        assert (found.interrupts, failures) == ((question,), 0)


async def test_several_that_iterate_one_watch_get_each_event_once(
    open_saver: OpenSaver,
) -> None:
    async with open_saver() as saver, saver.watch() as watch:
        readers = [asyncio.create_task(take(aiter(watch), 5)) for _ in range(4)]
        await put_chain(saver, numbered(20))
        found = [event for reader in readers for event in await reader]
        assert sorted(event.checkpoint_ids[0] for event in found) == numbered(20)
        waiting = [asyncio.create_task(_all(watch)) for _ in range(3)]
        await until(lambda: watch._turn.locked())
        await watch.aclose()
        async with asyncio.timeout(PATIENCE):
            assert await asyncio.gather(*waiting) == [[], [], []]
