"""A lease beside removals, copies, closing, failures and arguments that are none."""

from __future__ import annotations

import asyncio
import math
from typing import Any, cast

import pytest
from tests.checkpoint.saving import HOSTILE, OpenSaver, at, id_of, listed, put
from tests.checkpoint.test_round_trips import Cost, Counting, Measured
from tests.lease.holders import (
    expire,
    leases_left,
    lost_at_the_end,
    sleeping,
)
from tests.patience import PATIENCE

from jskv_saver import (
    DocumentCheckpointSaver,
    DocumentService,
    JetStreamDocumentStore,
    JetStreamSaver,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    InvalidRequestError,
    LeaseHeldError,
    LeaseLostError,
)


async def test_a_saver_that_is_closed_gives_back_what_it_holds(
    open_saver: OpenSaver, other: DocumentCheckpointSaver
) -> None:
    async with open_saver() as saver:
        async with saver.lease("t"):
            await saver.aclose()
            async with other.lease("t", wait=0):
                pass
    assert await leases_left(other) == []


async def test_who_stops_waiting_leaves_nothing(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async def wait() -> None:
        async with other.lease("t", wait=PATIENCE):
            raise AssertionError("it is held")

    async with saver.lease("t"):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await leases_left(saver) == []


async def test_a_failure_in_the_block_is_what_is_raised(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async def fail() -> None:
        async with sleeping(saver.lease("t")):
            await expire(other)
            async with other.lease("t"):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await leases_left(saver) == []


async def test_a_prune_beside_a_holder_stops_nobody(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async with saver.lease("t"):
        for n in range(3):
            await put(saver, str(n), parent=str(n - 1) if n else None)
            await other.aprune(["t"])
        assert [id_of(row) for row in await listed(saver, at())] == ["2"]


async def test_a_thread_that_is_deleted_takes_its_lease_along(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    with lost_at_the_end():
        async with saver.lease("t"):
            await put(saver, "1")
            await other.adelete_thread("t")
            assert await leases_left(other) == []
            with pytest.raises(LeaseLostError):
                await put(saver, "2", parent="1")
    assert await listed(other, at()) == []


async def test_who_takes_no_lease_is_not_kept_out(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async with saver.lease("t"):
        await put(saver, "1")
        await put(other, "2", parent="1")
        await put(saver, "3", parent="1")
    assert len(await listed(saver, at())) == 3


async def test_a_copy_goes_under_the_lease_of_its_target(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", thread="source")
    async with saver.lease("t"):
        await saver.acopy_thread("source", "t")
    with lost_at_the_end():
        async with sleeping(saver.lease("t2")):
            await expire(other, "t2")
            async with other.lease("t2"):
                with pytest.raises(LeaseLostError):
                    await saver.acopy_thread("source", "t2")
    assert len(await listed(saver, at(thread="t"))) == 1
    assert await listed(saver, at(thread="t2")) == []


async def test_threads_of_any_name(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    for name in HOSTILE:
        async with saver.lease(name):
            with pytest.raises(LeaseHeldError):
                async with other.lease(name, wait=0):
                    pass
    async with saver.lease(7):  # type: ignore[arg-type]
        with pytest.raises(LeaseHeldError):
            async with other.lease("7", wait=0):
                pass
    assert await leases_left(saver) == []


@pytest.mark.parametrize("ttl", [0, 0.999, -1, math.nan, math.inf, "1", None, True])
def test_a_time_to_live_that_is_none_is_refused(ttl: Any) -> None:
    saver = DocumentCheckpointSaver(MemoryDocumentStore())
    with pytest.raises(InvalidRequestError, match="ttl must be a number of seconds"):
        saver.lease("t", ttl=ttl)


@pytest.mark.parametrize("wait", [-1, math.nan, "1", None, False])
def test_a_time_to_wait_that_is_none_is_refused(wait: Any) -> None:
    saver = DocumentCheckpointSaver(MemoryDocumentStore())
    with pytest.raises(InvalidRequestError, match="wait must be a number of seconds"):
        saver.lease("t", wait=wait)


async def test_a_lease_is_entered_once(saver: DocumentCheckpointSaver) -> None:
    lease = saver.lease("t")
    with pytest.raises(InvalidRequestError, match="never taken"):
        await lease.acheck()
    async with lease:
        with pytest.raises(InvalidRequestError, match="another one"):
            await lease.__aenter__()
    with pytest.raises(InvalidRequestError, match="another one"):
        await lease.__aenter__()


async def test_a_step_under_a_lease_costs_what_it_costs_without(
    nats_url: str, bucket: str
) -> None:
    client = Counting()
    await client.connect(nats_url)
    async with JetStreamSaver(client, bucket=bucket) as saver:
        measured = Measured(saver, client)
        await put(saver, "1")
        alone = await measured.cost(put(saver, "2", {"n": 1}, parent="1"))
        async with saver.lease("t", ttl=PATIENCE):
            # The head is looked at once.
            first = await measured.cost(put(saver, "3", {"n": 2}, parent="2"))
            assert first.trips == alone.trips + 1
            assert await measured.cost(put(saver, "4", {"n": 3}, parent="3")) == alone
            assert await measured.cost(put(saver, "5", {"n": 4}, parent="4")) == alone
            writes = saver.aput_writes(at("5"), [("c", 1)], "task")
            assert await measured.cost(writes) == Cost(1, 1)
    await client.close()


class _Without:
    """A store with what the port demands, and no more."""

    def __init__(self, store: DocumentStore) -> None:
        for name in vars(DocumentStore):
            if not name.startswith("_"):
                setattr(self, name, getattr(store, name))


def test_a_store_where_nothing_expires_is_refused_at_once() -> None:
    saver = DocumentCheckpointSaver(cast(Any, _Without(MemoryDocumentStore())))
    with pytest.raises(InvalidRequestError, match="no documents that expire"):
        saver.lease("t")


async def test_it_is_held_over_the_document_service(nats_url: str, bucket: str) -> None:
    def remote() -> DocumentCheckpointSaver:
        store = RemoteDocumentStore.from_conn_string(nats_url, timeout=PATIENCE)
        return DocumentCheckpointSaver(store, close_store=True)

    storage = JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)
    async with storage, DocumentService(storage, nats_url):
        # One who is at the bucket, and two who are not.
        async with DocumentCheckpointSaver(storage) as near, remote() as saver:
            async with remote() as other:
                with lost_at_the_end():
                    async with sleeping(saver.lease("t", ttl=3)) as lease:
                        await put(saver, "1")
                        for each in (near, other):
                            with pytest.raises(LeaseHeldError) as caught:
                                async with each.lease("t", wait=0):
                                    pass
                            assert caught.value.holder == lease.holder
                        async with other.lease("t"):
                            with pytest.raises(LeaseLostError):
                                await put(saver, "2", parent="1")
                            await put(other, "3", parent="1")
            assert await leases_left(near) == []
            assert [id_of(row) for row in await listed(near, at())] == ["3", "1"]
