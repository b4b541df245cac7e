"""Many callers: so many at a time, and no one at the others' cost."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from tests.patience import PATIENCE, until
from tests.service.stores import Gated

from jskv_saver import DocumentService, RemoteDocumentStore
from jskv_saver.adapters.wire.turns import Caller, Turns
from jskv_saver.errors import StoreUnavailableError


class Log:
    """Turns, and which calls have started. A call is `owner/caller/number`."""

    def __init__(self, *bounds: int) -> None:
        self.turns = Turns(*bounds)
        self.started: list[str] = []

    def enter(self, *calls: str, size: int = 0) -> list[bool]:
        return [self._enter(call, size) for call in calls]

    def _enter(self, call: str, size: int) -> bool:
        return self.turns.enter(_caller(call), partial(self.started.append, call), size)

    def leave(self, call: str) -> None:
        self.turns.leave(_caller(call))


def _caller(call: str) -> Caller:
    owner, inbox, _ = call.split("/")
    return Caller(owner, inbox)


def test_those_who_wait_are_served_one_of_each_owner_and_caller_in_turn() -> None:
    log = Log(1, 100)
    log.enter("o/a/1", "o/a/2", "o/a/3", "o/b/1", "p/c/1", "p/c/2", "o/b/2")
    while not log.turns.idle:
        log.leave(log.started[-1])
    assert log.started == [
        "o/a/1",
        "o/a/2",
        "p/c/1",
        "o/b/1",
        "p/c/2",
        "o/a/3",
        "o/b/2",
    ]


def test_one_caller_and_one_owner_leave_places_to_others() -> None:
    log = Log(16, 100)
    log.enter(*(f"o/a/{number}" for number in range(20)))
    assert len(log.started) == 9
    log.enter(*(f"o/b/{number}" for number in range(20)))
    assert len(log.started) == 12
    log.enter(*(f"p/c/{number}" for number in range(20)))
    assert len(log.started) == 16
    assert [call[:3] for call in log.started[12:]] == ["p/c"] * 4
    log.leave("o/a/0")
    # `o` has all that it may have but one; whose turn it is gets the place.
    assert log.started[16:] == ["o/a/9"]
    log.leave("p/c/0")
    assert log.started[17:] == ["p/c/4"]


def test_whoever_invents_inboxes_gets_no_more_than_an_owner_may() -> None:
    log = Log(16, 100)
    log.enter(*(f"o/{number}/1" for number in range(100)))
    assert len(log.started) == 12
    log.enter("p/a/1")
    assert log.started[12:] == ["p/a/1"]


def test_too_many_waiting_are_refused() -> None:
    log = Log(1, 16)
    # One runs; of sixteen that may wait nine are of one caller, twelve of an owner.
    assert log.enter(*["o/a/1"] * 11) == [True] * 10 + [False]
    assert log.enter(*["o/b/1"] * 4) == [True] * 3 + [False]
    assert log.enter(*["p/c/1"] * 5) == [True] * 4 + [False]
    log.leave("o/a/1")
    assert log.enter("p/c/1") == [True]


def test_what_waits_is_bounded_in_bytes() -> None:
    log = Log(1, 100, 1000)
    assert log.enter(*["o/a/1"] * 5, size=400) == [True, True, True, False, False]
    assert log.enter("o/b/1", size=200) == [True]
    log.leave("o/a/1")
    assert log.enter("o/b/1", size=400) == [True]
    assert log.enter("o/b/1", size=1) == [False]


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
        await until(lambda: len(stored.begun) == 4)
        assert await quick.collections("owner") == ["notes"]
        assert await quick.count("owner", "notes") == 0
        assert len(stored.begun) == 4
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
        # Three quarters of the places are one owner's.
        await until(lambda: len(stored.begun) == 3)
        stored.gate.set()
        await asyncio.gather(*calls)
        assert len(stored.begun) == 20


async def test_a_service_that_is_full_says_that_nothing_was_done(
    nats_url: str, stored: Gated
) -> None:
    async with (
        DocumentService(stored, nats_url, max_concurrent=1, max_waiting=1),
        RemoteDocumentStore.from_conn_string(nats_url, timeout=PATIENCE) as store,
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
