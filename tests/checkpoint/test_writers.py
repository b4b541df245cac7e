"""Two savers on one thread: nobody's work is overwritten silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    id_of,
    ids,
    numbered,
    parent_of,
    put,
    put_chain,
    values,
)
from tests.patience import PATIENCE

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.document.model import Document, Write
from jskv_saver.errors import (
    DocumentNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
    UnknownOutcomeError,
    WriterConflictError,
)

LARGE = "l" * 3000


@pytest.fixture
async def strict(open_saver: OpenSaver) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver that refuses a step whose thread another run has moved on."""
    async with open_saver(on_conflict="raise") as opened:
        yield opened


async def test_what_one_stores_the_other_sees_at_once(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    parent = None
    for n in range(75):
        writer, reader = (saver, other) if n % 2 else (other, saver)
        id = f"{n:03}"
        await put(writer, id, {"n": n, "keep": LARGE, "g": [LARGE] * n}, parent=parent)
        found = await get(reader)
        assert id_of(found) == id
        assert found.checkpoint["channel_values"]["n"] == n
        assert len(found.checkpoint["channel_values"]["g"]) == n
        parent = id


async def test_puts_of_two_that_interleave_are_both_kept(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "0", {"x": LARGE})

    async def run(writer: DocumentCheckpointSaver, name: str) -> None:
        parent, grow = "0", [LARGE]
        for n in range(25):
            grow.append(f"{name} {n}")
            id = f"{n:03}{name}"
            await put(writer, id, {"x": grow, "keep": name * 999}, parent=parent)
            parent = id

    await asyncio.gather(run(saver, "a"), run(other, "b"), run(saver, "c"))

    names = await ids(other, at())
    assert len(names) == 76
    for n in range(25):
        for name in "abc":
            found = await get(other, f"{n:03}{name}")
            assert found.checkpoint["channel_values"] == {
                "x": [LARGE, *(f"{name} {i}" for i in range(n + 1))],
                "keep": name * 999,
            }
            assert parent_of(found) == (f"{n - 1:03}{name}" if n else "0")
    assert id_of(await get(saver)) == "024c"


async def test_many_puts_at_once_do_not_starve_each_other(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(
            *(put(saver, f"{n:04}", {"n": n}) for n in range(200)),
            *(put(other, f"{n:04} other", {"n": n}) for n in range(20)),
        )

    assert len(await ids(saver, at())) == 220


async def test_the_first_calls_of_all_succeed(open_saver: OpenSaver) -> None:
    async with open_saver() as first, open_saver() as second:
        await asyncio.gather(
            *(
                put(saver, f"{n}", {"n": n}, thread=f"thread {n}")
                for n in range(10)
                for saver in (first, second)
            )
        )
        await asyncio.gather(*(saver.setup() for saver in (first, second)))
        assert len(await ids(first)) == 10


async def test_a_step_beside_a_moved_head_is_refused_if_asked_for(
    strict: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(strict, "1", {"x": 1})
    await put(strict, "2", {"x": 2}, parent="1")
    await put(other, "3", {"x": "theirs"}, parent="2")

    with pytest.raises(WriterConflictError) as caught:
        await put(strict, "4", {"x": "mine"}, parent="2")

    assert (caught.value.mine, caught.value.theirs) == ("4", "3")
    assert await ids(other, at()) == ["3", "2", "1"]
    found = await get(strict)
    assert found.checkpoint["channel_values"] == {"x": "theirs"}
    await put(strict, "4", {"x": "mine"}, parent="3")
    assert await values(other) == {"x": "mine"}


async def test_an_update_by_another_is_noticed(
    strict: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(strict, "1", {"x": 1})
    await put(other, "2", {"x": 2}, parent="1", source="update")

    with pytest.raises(WriterConflictError):
        await put(strict, "3", {"x": 3}, parent="1")


@pytest.mark.parametrize("source", ["fork", "update", "input"])
async def test_a_fork_an_update_or_an_input_is_never_refused(
    strict: DocumentCheckpointSaver, other: DocumentCheckpointSaver, source: str
) -> None:
    await put(strict, "1", {"x": 1})
    await put(other, "2", {"x": 2}, parent="1")
    await put(strict, "3", {"x": 3}, parent="1", source=source)
    await put(strict, "4", {"x": 4}, parent="3")

    assert await ids(other, at()) == ["4", "3", "2", "1"]


async def test_nested_namespaces_are_never_refused(
    strict: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(strict, "1", {"x": 1}, ns="sub:1")
    await put(other, "2", {"x": 2}, parent="1", ns="sub:1")
    await put(strict, "3", {"x": 3}, parent="1", ns="sub:1")

    assert await ids(other, at(ns="sub:1")) == ["3", "2", "1"]


async def test_a_saver_that_wrote_alone_is_never_refused(
    strict: DocumentCheckpointSaver,
) -> None:
    await put_chain(strict, numbered(20), run_id="r")
    await get(strict, "000005")
    await put(strict, "9", {"n": 1}, parent="000019", run_id="s")

    assert len(await ids(strict, at())) == 21


async def test_the_same_run_goes_on_in_another_process(
    strict: DocumentCheckpointSaver, open_saver: OpenSaver
) -> None:
    await put_chain(strict, numbered(3))
    async with open_saver(on_conflict="raise") as fresh:
        await put(fresh, "5", {"n": 5}, parent="000002")
        with pytest.raises(WriterConflictError):
            await put(fresh, "6", {"n": 6}, parent="000001")
    async with open_saver(on_conflict="raise") as fresh:
        assert id_of(await get(fresh)) == "5"
        await put(fresh, "6", {"n": 6}, parent="5")


async def test_replay_from_an_old_checkpoint_is_not_refused(
    saver: DocumentCheckpointSaver, strict: DocumentCheckpointSaver
) -> None:
    await put_chain(saver, numbered(3))
    await get(strict, "000001")
    await put(strict, "5", {"n": 5}, parent="000001")
    await put(strict, "6", {"n": 6}, parent="5")
    assert await values(saver) == {"n": 6}

    await put(saver, "7", {"n": 7}, parent="6")
    await get(strict, "5")
    await put(strict, "8", {"n": 8}, parent="5")
    await get(strict, "000000")
    await put(saver, "9", {"n": 9}, parent="8")
    with pytest.raises(WriterConflictError):
        await put(strict, "99", {"n": 99}, parent="000000")


def test_a_policy_that_does_not_exist_is_refused() -> None:
    for policy in ("", "merge", None):
        with pytest.raises(InvalidRequestError, match="on_conflict"):
            DocumentCheckpointSaver(MemoryDocumentStore(), on_conflict=policy)  # type: ignore[arg-type]
    names: list[dict[str, Any]] = [{"namespace": ""}, {"agent_id": ""}, {"agent_id": 5}]
    for bad in names:
        with pytest.raises(InvalidRequestError, match="non-empty"):
            DocumentCheckpointSaver(MemoryDocumentStore(), **bad)


async def test_a_step_whose_history_was_deleted_is_refused(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "1", {"x": ["seed"]})
    await other.adelete_thread("t")
    with pytest.raises(DocumentNotFoundError, match="deleted"):
        await put(saver, "2", parent="1", counters_since_delta_snapshot={"x": (1, 1)})
    assert await ids(other, at()) == []


class Faulty(MemoryDocumentStore):
    """Loses answers, or hangs."""

    lose_answer = store_first = hang = is_down = False

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        writes = list(writes)
        if self.hang and any(id[-1] == "stuck" for _, id, _, _ in writes):
            await asyncio.Event().wait()
        if not self.lose_answer:
            return await super().put_many(namespace, writes, exact=exact)
        if self.store_first:
            await super().put_many(namespace, writes, exact=exact)
        raise UnknownOutcomeError("no answer")

    async def get_many(self, *args: Any, **options: Any) -> Any:
        if self.is_down:
            raise StoreUnavailableError("no server")
        return await super().get_many(*args, **options)


@pytest.fixture
def faulty() -> Faulty:
    """A store that fails when told to."""
    return Faulty()


async def test_a_put_whose_answer_was_lost_is_looked_for(faulty: Faulty) -> None:
    async with DocumentCheckpointSaver(faulty) as saver:
        await put(saver, "1", {"x": LARGE})
        faulty.lose_answer = True
        with pytest.raises(UnknownOutcomeError):
            await put(saver, "2", {"x": LARGE + "2"}, parent="1")
        assert await ids(saver, at()) == ["1"]
        faulty.store_first = True
        await put(saver, "3", {"x": LARGE + "3"}, parent="1")
        assert await values(saver) == {"x": LARGE + "3"}
        faulty.is_down = True
        with pytest.raises(UnknownOutcomeError):
            await put(saver, "4", {"x": LARGE + "4"}, parent="3")
        faulty.is_down = faulty.lose_answer = False
        await put(saver, "4", {"x": LARGE + "4"}, parent="3")
        assert await ids(saver, at()) == ["4", "3", "1"]


async def test_a_put_that_is_stuck_holds_up_no_other(faulty: Faulty) -> None:
    async with DocumentCheckpointSaver(faulty) as saver:
        await put(saver, "1", {"x": 1})
        faulty.hang = True
        stuck = asyncio.create_task(put(saver, "stuck", {"x": 1}, parent="1"))
        async with asyncio.timeout(5):
            await asyncio.gather(*(put(saver, f"{n}", {"x": n}) for n in range(2, 9)))
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        assert await ids(saver, at()) == list("87654321")


async def test_a_cancelled_put_is_there_whole_or_not_at_all(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    parent = None
    state: dict[str, Any] = {}
    for n in range(60):
        state = {"keep": LARGE, "n": n, "grow": [*state.get("grow", ()), LARGE]}
        id = f"{n:03}"
        task = asyncio.create_task(put(saver, id, state, parent=parent))
        for _ in range(n % 12):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        found = await other.aget_tuple(at(id))
        if found is not None:
            assert found.checkpoint["channel_values"] == state
        await put(saver, id, state, parent=parent)
        assert await values(other, id) == state
        parent = id
