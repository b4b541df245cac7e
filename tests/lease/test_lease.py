"""One holder a thread: taken, waited for, renewed, taken over, given back."""

from __future__ import annotations

import asyncio
import math
import threading

import pytest
from tests.checkpoint.saving import OpenSaver, at, id_of, listed, put
from tests.lease.holders import (
    expire,
    leases_left,
    lost_at_the_end,
    sleeping,
    stop_renewing,
)
from tests.patience import PATIENCE, at_once, until

from jskv_saver import (
    DocumentCheckpointSaver,
)
from jskv_saver.errors import (
    LeaseHeldError,
    LeaseLostError,
    WrongThreadError,
)


async def test_one_holder_a_thread(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async with saver.lease("t") as lease:
        for each in (saver, other):
            with at_once(), pytest.raises(LeaseHeldError) as caught:
                async with each.lease("t", wait=0):
                    pass
            assert caught.value.holder == lease.holder
            assert caught.value.thread == "t"
        # Another thread's, agent's or owner's is another one.
        async with other.lease("t2", wait=0):
            pass
    async with other.lease("t", wait=0):
        pass
    assert await leases_left(saver) == []


async def test_savers_that_never_meet_share_no_lease(open_saver: OpenSaver) -> None:
    async with (
        open_saver() as plain,
        open_saver(agent_id="b") as agent,
        open_saver(namespace="b") as owner,
    ):
        async with plain.lease("t"), agent.lease("t", wait=0):
            async with owner.lease("t", wait=0):
                pass


async def test_who_waits_gets_it_when_it_is_given_back(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    order = []

    async def wait() -> None:
        async with other.lease("t", wait=math.inf):
            order.append("other")

    async with saver.lease("t"):
        waiting = asyncio.create_task(wait())
        with pytest.raises(LeaseHeldError, match=r"after 0\.3 seconds"):
            async with other.lease("t", wait=0.3):
                pass
        order.append("saver")
    async with asyncio.timeout(PATIENCE):
        await waiting
    assert order == ["saver", "other"]


async def test_many_who_wait_have_it_one_after_the_other(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    inside, had = 0, 0

    async def work(each: DocumentCheckpointSaver) -> None:
        nonlocal inside, had
        async with each.lease("t", wait=PATIENCE):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            had += 1
            inside -= 1

    await asyncio.gather(*(work(each) for each in (saver, other) for _ in range(4)))
    assert had == 8


async def test_it_lasts_as_long_as_it_is_renewed(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async with saver.lease("t", ttl=2.5) as lease:
        versions = set()

        def four_times() -> bool:
            versions.add(lease.holding._version)
            return len(versions) > 4

        # Each a third of its time after the one before.
        await until(four_times)
        with pytest.raises(LeaseHeldError):
            async with other.lease("t", wait=0):
                pass
        await lease.acheck()
        await put(saver, "1")
    assert [id_of(row) for row in await listed(saver, at())] == ["1"]


async def test_a_renewal_refuses_no_put(saver: DocumentCheckpointSaver) -> None:
    async with saver.lease("t") as lease:
        for n in range(8):
            await asyncio.gather(
                lease.holding.renew(),
                put(saver, str(n), parent=str(n - 1) if n else None),
            )
    assert len(await listed(saver, at())) == 8


async def test_who_is_taken_for_dead_puts_nothing_any_more(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    with lost_at_the_end():
        async with sleeping(saver.lease("t")) as lease:
            await put(saver, "1")
            await expire(other)
            async with other.lease("t") as theirs:
                # Before the new holder has put anything himself.
                with pytest.raises(LeaseLostError) as caught:
                    await put(saver, "3", parent="1")
                assert caught.value.holder == theirs.holder
                assert lease.lost
                await put(other, "2", parent="1")
                for call in (
                    put(saver, "4", parent="2"),
                    saver.aput_writes(at("2"), [("c", 1)], "task"),
                    lease.acheck(),
                ):
                    with pytest.raises(LeaseLostError):
                        await call
                await put(other, "5", parent="2")
                await theirs.acheck()
            # Who has it now gave it back; it stays lost for him who had it before.
            with pytest.raises(LeaseLostError):
                await put(saver, "6", parent="5")
    assert [id_of(row) for row in await listed(saver, at())] == ["5", "2", "1"]
    # Outside the block it is a saver as any.
    await put(saver, "7", parent="5")


async def test_it_may_expire_and_be_nobodys(saver: DocumentCheckpointSaver) -> None:
    with lost_at_the_end():
        async with sleeping(saver.lease("t", ttl=1)) as lease:
            await until_expired(saver)
            with pytest.raises(LeaseLostError, match="nobody's now"):
                await lease.acheck()


async def until_expired(saver: DocumentCheckpointSaver) -> None:
    """Wait until the store has removed what expires."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if all(id[-1] != "holder" for id in await leases_left(saver)):
                return
            await asyncio.sleep(0.02)


async def test_the_last_writes_of_the_dead_are_refused_in_every_namespace(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    with lost_at_the_end():
        async with sleeping(saver.lease("t")):
            for ns in ("", "a", "a|b"):
                await put(saver, "1", ns=ns)
            await expire(other)
            async with other.lease("t"):
                for ns in ("", "a", "a|b", "new"):
                    with pytest.raises(LeaseLostError):
                        await put(saver, "2", parent="1", ns=ns)
    for ns in ("", "a", "a|b"):
        assert [id_of(row) for row in await listed(saver, at(ns=ns))] == ["1"]
    assert await listed(saver, at(ns="new")) == []


async def test_the_end_of_one_removes_no_other(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    theirs = other.lease("t", wait=PATIENCE)
    with lost_at_the_end():
        async with sleeping(saver.lease("t")):
            await expire(other)
            await theirs.__aenter__()
    await theirs.acheck()
    with pytest.raises(LeaseHeldError):
        async with saver.lease("t", wait=0):
            pass
    await theirs.__aexit__(None, None, None)


async def test_two_runs_through_one_saver_are_two(
    saver: DocumentCheckpointSaver,
) -> None:
    """The one that lost it is refused, and the one that has it is not."""
    inside, has_it, refused = (asyncio.Event() for _ in range(3))

    async def first() -> None:
        async with sleeping(saver.lease("t")):
            await put(saver, "1")
            inside.set()
            await has_it.wait()
            try:
                await put(saver, "2", parent="1")
            finally:
                refused.set()

    async def second() -> None:
        await inside.wait()
        await expire(saver)
        async with saver.lease("t", wait=PATIENCE):
            has_it.set()
            await refused.wait()
            await put(saver, "3", parent="1")

    began = asyncio.create_task(first())
    await second()
    with pytest.raises(LeaseLostError):
        await began
    assert [id_of(row) for row in await listed(saver, at())] == ["3", "1"]


async def test_what_outlives_the_block_is_refused(
    saver: DocumentCheckpointSaver,
) -> None:
    go_on = asyncio.Event()

    async def late() -> None:
        await go_on.wait()
        await put(saver, "2", parent="1")

    async with saver.lease("t"):
        await put(saver, "1")
        task = asyncio.create_task(late())
    go_on.set()
    with pytest.raises(LeaseLostError, match="given back before"):
        await task
    # Of another thread, and outside, there is no lease.
    await put(saver, "2", parent="1")


def test_a_thread_that_is_started_in_a_block_puts_under_its_lease(
    open_saver: OpenSaver,
) -> None:
    failures: list[BaseException] = []

    def work(saver: DocumentCheckpointSaver) -> None:
        try:
            asyncio.run(put(saver, "1"))
        except LeaseLostError as exc:
            failures.append(exc)

    with open_saver() as saver, open_saver() as other:
        with lost_at_the_end(), saver.lease("t") as lease:
            stop_renewing(lease)
            asyncio.run(expire(other))
            with other.lease("t", wait=PATIENCE):
                thread = threading.Thread(target=work, args=(saver,))
                thread.start()
                thread.join()
    assert len(failures) == 1


def test_the_blocking_face_is_the_same(open_saver: OpenSaver) -> None:
    with open_saver() as saver, open_saver() as other:
        with saver.lease("t") as lease:
            lease.check()
            assert not lease.lost
            with pytest.raises(LeaseHeldError), other.lease("t", wait=0):
                pass
        with other.lease("t", wait=0):
            pass


async def test_a_blocking_block_on_the_own_loop_is_refused(
    saver: DocumentCheckpointSaver,
) -> None:
    with pytest.raises(WrongThreadError):
        saver.lease("t").__enter__()
