"""Many callers: so many at a time, and no one at the others' cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.patience import until
from tests.service.stores import Gated

from jskv_saver import DocumentService, RemoteDocumentStore
from jskv_saver.adapters.wire.turns import Turns
from jskv_saver.errors import StoreUnavailableError


def _noting(log: list[str], name: str) -> Callable[[], None]:
    return lambda: log.append(name)


def test_those_who_wait_are_served_one_of_each_caller_in_turn() -> None:
    turns, log = Turns(1, 100), list[str]()
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        assert turns.enter(name[0], _noting(log, name))
    for _ in range(5):
        turns.leave(log[-1][0])
    assert log == ["a1", "a2", "b1", "c1", "a3", "b2"]
    assert not turns.idle
    turns.leave("b")
    assert turns.idle


def test_one_caller_leaves_a_quarter_of_the_places_to_others() -> None:
    turns, log = Turns(8, 100), list[str]()
    for number in range(20):
        turns.enter("a", _noting(log, f"a{number}"))
    assert len(log) == 6
    turns.enter("b", _noting(log, "b0"))
    turns.enter("c", _noting(log, "c0"))
    turns.enter("d", _noting(log, "d0"))
    assert log[6:] == ["b0", "c0"]
    turns.leave("b")
    assert log[8:] == ["d0"]
    turns.leave("a")
    assert log[9:] == ["a6"]


def test_too_many_waiting_are_refused() -> None:
    turns, log = Turns(1, 4), list[str]()
    taken = [turns.enter("a", _noting(log, "a")) for _ in range(6)]
    # One runs, and of four that may wait three are the same caller's.
    assert taken == [True, True, True, True, False, False]
    assert turns.enter("b", _noting(log, "b"))
    assert not turns.enter("c", _noting(log, "c"))
    turns.leave("a")
    assert turns.enter("c", _noting(log, "c"))


def test_what_waits_is_bounded_in_bytes() -> None:
    turns, log = Turns(1, 100, 1000), list[str]()
    taken = [turns.enter("a", _noting(log, "a"), 400) for _ in range(5)]
    assert taken == [True, True, True, False, False]
    assert turns.enter("b", _noting(log, "b"), 200)
    turns.leave("a")
    assert turns.enter("b", _noting(log, "b"), 400)
    assert not turns.enter("b", _noting(log, "b"), 1)


async def test_a_slow_caller_does_not_starve_others(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, max_concurrent=8),
        RemoteDocumentStore.from_conn_string(nats_url, timeout=30) as slow,
        RemoteDocumentStore.from_conn_string(nats_url) as quick,
    ):
        stored.gate.clear()
        await slow.collections("owner")
        calls = [
            asyncio.ensure_future(slow.put("owner", "notes", f"{n}", {}))
            for n in range(200)
        ]
        await until(lambda: len(stored.begun) == 6)
        assert await quick.collections("owner") == ["notes"]
        assert await quick.count("owner", "notes") == 0
        assert len(stored.begun) == 6
        stored.gate.set()
        await asyncio.gather(*calls)


async def test_calls_run_at_the_same_time_up_to_the_bound(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, max_concurrent=4),
        RemoteDocumentStore.from_conn_string(nats_url) as first,
        RemoteDocumentStore.from_conn_string(nats_url) as second,
    ):
        stored.gate.clear()
        calls = [
            asyncio.ensure_future(store.put("owner", "notes", f"{n}", {}))
            for n in range(10)
            for store in (first, second)
        ]
        await until(lambda: len(stored.begun) == 4)
        stored.gate.set()
        await asyncio.gather(*calls)
        assert len(stored.begun) == 20


async def test_a_service_that_is_full_says_that_nothing_was_done(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, max_concurrent=1, max_waiting=1),
        RemoteDocumentStore.from_conn_string(nats_url, timeout=20) as store,
    ):
        await store.collections("owner")
        stored.gate.clear()
        calls = [
            asyncio.ensure_future(store.put("owner", "notes", f"{n}", {}))
            for n in range(3)
        ]
        done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        [refused] = done
        with pytest.raises(StoreUnavailableError, match="too many calls waiting"):
            await refused
        stored.gate.set()
        await asyncio.wait(calls)
        assert await store.count("owner", "notes") == 2
