"""A lease whose calls are cancelled, whose server dies, or that has three servers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from tests.attacks.stepping import cancelled_at
from tests.checkpoint.saving import OpenSaver, at, id_of, listed, put
from tests.lease.holders import leases_left, lost_at_the_end, sleeping
from tests.patience import PATIENCE, patiently

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    JetStreamSaver,
    LocalServer,
)
from jskv_saver.checkpoint import holding as holding_module
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.leases import Lease
from jskv_saver.errors import (
    LeaseHeldError,
    LeaseLostError,
    StoreClosedError,
    StoreUnavailableError,
    UnknownOutcomeError,
)


@pytest.fixture
def open_saver(nats_url: str, bucket: str) -> OpenSaver:
    """Of those whose calls wait for a server."""
    return lambda: JetStreamSaver.from_conn_string(nats_url, bucket=bucket)


@pytest.mark.parametrize("late", [False, True])
async def test_who_is_cancelled_at_any_point_of_taking_holds_nothing_for_long(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver, late: bool
) -> None:
    # With the guard of a dead one, so that it is the longest way.
    async def attack(suspension: int) -> bool:
        thread = f"t{suspension}"
        await put(saver, "1", thread=thread)
        guard = ("default", thread, "guard")
        await other._partition.store.put("default", "ls", guard, {"t": "dead"})
        lease = Lease(saver._portal, saver._leases, thread, 5, 0)
        cancelled = await cancelled_at(lease.__aenter__(), suspension, late=late)
        assert saver._leases.current(thread) is None or not cancelled
        await lease.__aexit__(None, None, None)
        async with other.lease(thread, wait=PATIENCE):
            await put(other, "2", parent="1", thread=thread)
        assert await listed(other, at("1", thread=thread))
        return cancelled

    await saver.setup()
    came_to_it = await asyncio.gather(*map(attack, range(24)))
    assert any(came_to_it)
    assert not all(came_to_it), "there are more points than were tried"
    assert await leases_left(other) == []


async def test_an_answer_that_is_lost_with_the_server_is_no_refusal(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await saver.setup()
    store: Any = saver._partition.store
    real = store.put_expiring

    async def loses(*args: Any, **options: Any) -> Any:
        await real(*args, **options)
        raise UnknownOutcomeError("no answer")

    async def away(*args: Any, **options: Any) -> Any:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(store, "put_expiring", loses)
    monkeypatch.setattr(store, "get", away)
    with pytest.raises(UnknownOutcomeError):
        await saver.lease("t", ttl=1).__aenter__()
    async with other.lease("t", wait=PATIENCE):
        pass


@pytest.mark.parametrize("late", [False, True])
async def test_who_is_cancelled_at_any_point_of_a_put_keeps_the_lease(
    saver: DocumentCheckpointSaver, late: bool
) -> None:
    n = 0
    async with saver.lease("t", ttl=PATIENCE) as lease:
        while True:
            # Each time a head that was not looked at yet, in a new namespace.
            call = put(saver, f"{n:03}", ns=f"ns{n}")
            if not await cancelled_at(call, n, late=late):
                break
            await lease.acheck()
            await put(saver, f"{n:03}", ns=f"ns{n}")
            n += 1
        assert n > 2
    # Some puts were never answered: they may arrive, and the guard says so.
    assert [id[-1] for id in await leases_left(saver)] == ["guard"]


async def test_a_lease_outlives_the_death_of_its_server(
    own_server: LocalServer, bucket: str
) -> None:
    saver, other = (
        JetStreamSaver.from_conn_string(
            own_server.url, bucket=bucket, reconnect_time_wait=0.1
        )
        for _ in range(2)
    )
    async with saver, other:
        async with saver.lease("t", ttl=PATIENCE) as lease:
            await put(saver, "1")
            own_server.kill()
            own_server.start()
            await patiently(lease.acheck)
            await patiently(lambda: put(saver, "2", parent="1"))

            async def hold() -> None:
                async with other.lease("t", wait=0):
                    raise AssertionError("it is held")

            with pytest.raises(LeaseHeldError):
                await patiently(hold)
            await put(saver, "3", parent="2")
        assert [id_of(row) for row in await listed(saver, at())] == ["3", "2", "1"]


async def test_it_holds_on_three_replicas(
    cluster: Sequence[LocalServer], bucket: str
) -> None:
    def opened(n: int) -> JetStreamSaver:
        return JetStreamSaver.from_conn_string(
            cluster[n].url, bucket=bucket, replicas=3
        )

    async with opened(0) as saver, opened(1) as other, opened(2) as third:
        with lost_at_the_end():
            async with sleeping(saver.lease("t", ttl=3)):
                for ns in ("", "child"):
                    await put(saver, "1", ns=ns)
                    await put(saver, "2", parent="1", ns=ns)
                with pytest.raises(LeaseHeldError):
                    async with third.lease("t", wait=0):
                        pass
                async with other.lease("t", wait=PATIENCE):
                    for ns in ("", "child", "new"):
                        with pytest.raises(LeaseLostError):
                            await put(saver, "3", parent="2", ns=ns)
                    await put(other, "4", parent="2")
                    await put(other, "5", parent="4")
        async with third.lease("t", wait=0):
            await put(third, "6", parent="5")
        found = [id_of(row) for row in await listed(third, at())]
        assert found == ["6", "5", "4", "2", "1"]
        assert await leases_left(third) == []


async def test_the_first_of_many_that_come_at_once_has_it(
    open_saver: OpenSaver,
) -> None:
    async with open_saver() as one, open_saver() as two, open_saver() as three:
        for n in range(8):
            held = 0

            async def take(saver: DocumentCheckpointSaver, thread: str) -> None:
                nonlocal held
                try:
                    async with saver.lease(thread, wait=0):
                        held += 1
                        await asyncio.sleep(0.05)
                        held -= 1
                except LeaseHeldError:
                    return
                assert held == 0

            await asyncio.gather(*(take(each, f"t{n}") for each in (one, two, three)))


async def test_who_is_cancelled_elsewhere_when_it_was_just_taken_holds_nothing(
    open_saver: OpenSaver, other: DocumentCheckpointSaver
) -> None:
    """The saver has a loop of its own: it may have it when its caller gives up."""
    saver = open_saver()
    try:
        await saver.setup()
        for late in (True, False):
            lease = saver.lease("t", ttl=4 * PATIENCE)
            assert await cancelled_at(lease.__aenter__(), 0, late=late)
            async with other.lease("t", wait=PATIENCE):
                pass
    finally:
        await saver.aclose()


async def test_a_saver_that_is_closed_takes_no_lease_any_more(
    nats_url: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed between the message that takes it and its answer; the store stays."""
    store = JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)
    async with store:
        saver = DocumentCheckpointSaver(store)
        await saver.setup()
        put_guard = Holding._put_guard

        async def closing(self: Holding) -> bool:
            monkeypatch.undo()
            taken = await put_guard(self)
            await saver.aclose()
            return taken

        monkeypatch.setattr(Holding, "_put_guard", closing)
        with pytest.raises(StoreClosedError):
            await saver.lease("t", ttl=4 * PATIENCE).__aenter__()
        async with DocumentCheckpointSaver(store) as other:
            async with other.lease("t", wait=PATIENCE):
                pass
            assert await leases_left(other) == []


async def test_who_loses_it_while_he_takes_it_over_does_not_have_it(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With more namespaces than can be moved in its time, and nobody to renew it."""
    path = ("default", "t", "guard")
    await put(saver, "1")
    await other.store.put("default", "ls", path, {"t": "dead"})
    clock = itertools.count()
    monkeypatch.setattr(holding_module, "_now", lambda: float(next(clock)))
    renew = Holding.renew

    async def too_late(self: Holding) -> bool:
        await other.store.delete("default", "ls", ("default", "t", "holder"))
        return await renew(self)

    monkeypatch.setattr(Holding, "renew", too_late)
    assert not await saver._leases.holding("t", 1).take()
    # Nothing was moved, and who comes next knows it.
    guard = await other.store.get("default", "ls", path)
    assert guard.data == {"t": "dead"}
