from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.strategies import near_paths, near_patterns

from jskv_saver import CollectionSpec, FieldSpec, MemoryDocumentStore
from jskv_saver.document.model import id_of
from jskv_saver.document.names import is_below
from jskv_saver.errors import (
    DocumentTooLargeError,
    StoreClosedError,
    UniqueViolationError,
    VersionConflictError,
)

T = TypeVar("T")


async def test_the_limit_of_a_document_can_be_chosen() -> None:
    store = MemoryDocumentStore(max_document_bytes=100)
    assert store.limits.data == 100
    await store.put("ns", "cp", "a", {"b": b"x" * 95})
    with pytest.raises(DocumentTooLargeError) as caught:
        await store.put("ns", "cp", "a", {"b": b"x" * 96})
    assert caught.value.size == 101
    assert caught.value.limit == 100


async def test_leaving_the_store_closes_it() -> None:
    async with MemoryDocumentStore() as store:
        await store.put("ns", "cp", "a", {})
    with pytest.raises(StoreClosedError):
        await store.get("ns", "cp", "a")
    with pytest.raises(StoreClosedError):
        async with store:
            pass


def test_several_loops_may_use_it_one_after_the_other() -> None:
    store = MemoryDocumentStore()
    asyncio.run(_put(store, "a"))
    asyncio.run(_put(store, "b"))
    assert asyncio.run(_ids(store)) == ["a", "b"]


def test_several_threads_may_use_it_at_once() -> None:
    store = MemoryDocumentStore()
    begin = threading.Barrier(8)

    def work(worker: int) -> None:
        begin.wait()
        for n in range(200):
            asyncio.run(_put(store, f"{worker}-{n}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    ids = asyncio.run(_ids(store))
    assert len(ids) == 1600
    assert ids == sorted(ids)


async def _put(store: MemoryDocumentStore, id: str) -> None:
    await store.put("ns", "cp", id, {})


async def _ids(store: MemoryDocumentStore) -> list[Any]:
    return list(await store.ids("ns", "cp"))


def _done(call: Coroutine[Any, Any, T]) -> T:
    """Run an operation, which never waits, without a loop."""
    try:
        call.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("the operation waited")


class Bookkeeping(RuleBasedStateMachine):
    """Sorted paths, unique keys and fences against what a dict says."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryDocumentStore()
        self.model: dict[tuple[str, ...], tuple[int, int | None]] = {}
        fields = (FieldSpec("u", "int", unique=True),)
        _done(self.store.ensure_collection("ns", CollectionSpec("c", fields)))

    @rule(path=near_paths, value=st.none() | st.integers(0, 3))
    def put(self, path: tuple[str, ...], value: int | None) -> None:
        holders = {u for other, (_, u) in self.model.items() if other != path}
        putting = self.store.put("ns", "c", path, {"u": value})
        if value is not None and value in holders:
            with pytest.raises(UniqueViolationError):
                _done(putting)
        else:
            self.model[path] = _done(putting).version, value

    @rule(path=near_paths, prefix=near_paths, off=st.sampled_from([0, 0, 1]))
    def fenced_put(
        self, path: tuple[str, ...], prefix: tuple[str, ...], off: int
    ) -> None:
        below = [v for other, (v, _) in self.model.items() if is_below(other, prefix)]
        expected = max(below, default=0) + off
        putting = self.store.put("ns", "c", path, {}, if_latest=(prefix, expected))
        if off:
            with pytest.raises(VersionConflictError):
                _done(putting)
        else:
            self.model[path] = _done(putting).version, None

    @rule(path=near_paths)
    def delete(self, path: tuple[str, ...]) -> None:
        _done(self.store.delete("ns", "c", path))
        self.model.pop(path, None)

    @rule(prefix=near_patterns.filter(bool), below=st.none() | st.integers(0, 50))
    def delete_subtree(self, prefix: Any, below: int | None) -> None:
        _done(self.store.delete("ns", "c", prefix, subtree=True, below=below))
        for path, (version, _) in list(self.model.items()):
            if is_below(path, prefix) and (below is None or version < below):
                del self.model[path]

    @rule(value=st.integers(0, 3))
    def delete_many(self, value: int) -> None:
        doomed = [path for path, (_, u) in self.model.items() if u == value]
        removed = self.store.delete_many("ns", "c", [("u", "eq", value)])
        assert _done(removed) == len(doomed)
        for path in doomed:
            del self.model[path]

    @rule(prefix=near_patterns)
    def ids_within(self, prefix: Any) -> None:
        ids = _done(self.store.ids("ns", "c", within=prefix))
        assert list(ids) == [
            id_of(path) for path in sorted(self.model) if is_below(path, prefix)
        ]

    @invariant()
    def ids_agree(self) -> None:
        ids = _done(self.store.ids("ns", "c"))
        assert list(ids) == [id_of(path) for path in sorted(self.model)]


TestBookkeeping = Bookkeeping.TestCase
