"""Histories that are read again: from memory, as long as nobody wrote; never stale."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

import nats
import pytest
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from tests.checkpoint.interleaving import Interleaving
from tests.checkpoint.saving import AnySaver, at, numbered, put
from tests.patience import PATIENCE
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver, Encryption, JetStreamSaver
from jskv_saver.checkpoint import past
from jskv_saver.checkpoint.contents import Contents
from jskv_saver.checkpoint.layout import Record, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.past import Past
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.document.port import FindsNewer
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError

GAMES = 2000 if SOAK else 48


async def step(
    saver: AnySaver, id: str, parent: str | None, *writes: str, run: str = "r"
) -> None:
    """A checkpoint whose channel `x` has only changes, but for a first one."""
    await put(
        saver,
        id,
        {} if parent else {"x": _DeltaSnapshot([])},
        parent=parent,
        versions={"x": id},
        new={"x": id},
        counters_since_delta_snapshot={"x": (1, 1)} if parent else {},
        run_id=run,
    )
    await write(saver, id, "task", *writes)


async def write(saver: AnySaver, id: str, task: str, *writes: str) -> None:
    await saver.aput_writes(at(id), [("x", each) for each in writes], task)


async def history(saver: AnySaver, id: str) -> list[Any]:
    """What the ancestors of a checkpoint wrote; read as a graph does."""
    assert await saver.aget_tuple(at()) is not None
    found = await saver.aget_delta_channel_history(config=at(id), channels=["x"])
    return [value for _, _, value in found["x"]["writes"]]


@pytest.fixture
async def saver(nats_url: str, bucket: str) -> Any:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as opened:
        yield opened


@pytest.fixture
async def other(nats_url: str, bucket: str) -> Any:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as opened:
        yield opened


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the ancestors that are read from the store."""
    asked: list[str] = []
    read_many = Contents.records_with_writes

    async def noting(
        self: Contents, scope: Scope, ids: Sequence[str], *more: Any
    ) -> Any:
        asked.extend(ids)
        return await read_many(self, scope, ids, *more)

    monkeypatch.setattr(Contents, "records_with_writes", noting)
    return asked


async def _chain(saver: AnySaver, count: int) -> list[str]:
    parent = None
    for id in numbered(count):
        await step(saver, id, parent, f"write of {id}")
        parent = id
    return numbered(count)


async def test_what_was_read_is_not_read_again(
    saver: JetStreamSaver, read: list[str]
) -> None:
    chain = await _chain(saver, 30)
    expected = [f"write of {id}" for id in chain[:-1]]
    assert await history(saver, chain[-1]) == expected
    assert set(read) == set(chain[:-1])
    read.clear()
    assert await history(saver, chain[-1]) == expected
    assert await history(saver, chain[20]) == expected[:20]
    assert read == []
    # Of a step more, what it continues is read.
    await step(saver, "900000", chain[-1], "more")
    await step(saver, "900001", "900000", "last")
    assert await history(saver, "900001") == [
        *expected,
        f"write of {chain[-1]}",
        "more",
    ]
    assert set(read) <= {*chain[-1:], "900000"} | set(chain[-33:])


async def test_writes_that_others_add_are_told(
    saver: JetStreamSaver, other: JetStreamSaver, read: list[str]
) -> None:
    chain = await _chain(saver, 5)
    await history(saver, chain[-1])
    read.clear()
    await write(other, chain[2], "later", "late")
    # Once more for the same task, with one more.
    await write(other, chain[1], "task", f"write of {chain[1]}", "second")
    await write(saver, chain[3], "own", "own")
    large = "large" * 100_000
    await write(other, chain[0], "large", large)
    found = await history(saver, chain[-1])
    assert read == []
    assert found == await history(other, chain[-1])
    assert set(found) == {*(f"write of {id}" for id in chain[:-1])} | {
        "late",
        "second",
        "own",
        large,
    }


async def test_what_others_remove_or_put_is_looked_at(
    saver: JetStreamSaver, other: JetStreamSaver
) -> None:
    chain = await _chain(saver, 6)
    await history(saver, chain[-1])
    await other.adelete_thread("t")
    for id, parent in zip(chain, [None, *chain], strict=False):
        await step(other, id, parent, f"second life of {id}")
    expected = [f"second life of {id}" for id in chain[:-1]]
    assert await history(saver, chain[-1]) == expected
    # A branch that is not in the way, and a prune of all that nobody needs.
    await step(other, "900000", chain[1], "branch", run="branch")
    assert await history(saver, chain[-1]) == expected
    await other.adelete_for_runs(["branch"])
    assert await history(saver, chain[-1]) == expected
    assert await history(saver, "900000") == []


async def test_writes_of_a_first_life_that_are_about_to_go_are_not_remembered(
    saver: JetStreamSaver, other: JetStreamSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (*_, last) = await _chain(saver, 3)
    await step(saver, "9", last, "of the first life", run="x")
    remove, reached, go_on = Pruner._remove_writes, asyncio.Event(), asyncio.Event()

    async def slowly(self: Pruner, *what: Any) -> None:
        reached.set()
        await go_on.wait()
        await remove(self, *what)

    monkeypatch.setattr(Pruner, "_remove_writes", slowly)
    removal = asyncio.create_task(other.adelete_for_runs(["x"]))
    await reached.wait()
    await step(other, "9", last)
    await write(other, "9", "another task", "of the second life")
    await step(other, "91", "9")
    assert "of the first life" in await history(saver, "91")
    go_on.set()
    await removal
    found = await history(saver, "91")
    assert found[-1] == "of the second life"
    assert "of the first life" not in found


async def test_a_mirror_that_answers_is_not_asked_again(
    nats_url: str, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as saver:
        chain = await _chain(saver, 5)
        client = await nats.connect(nats_url)
        mirror = {
            "name": f"KV_{bucket}-mirror",
            "mirror": {"name": f"KV_{bucket}"},
            "mirror_direct": True,
            "allow_direct": True,
            "max_msgs_per_subject": 1,
            "storage": "file",
        }
        created = await client.request(
            f"$JS.API.STREAM.CREATE.{mirror['name']}", json.dumps(mirror).encode()
        )
        assert "error" not in json.loads(created.data)
        expected = [f"write of {id}" for id in chain[:-1]]
        store = saver.store
        assert isinstance(store, FindsNewer)
        async with asyncio.timeout(PATIENCE):
            while store.finds_newer:
                assert await history(saver, chain[-1]) == expected
        assert "mirror_direct=false" in caplog.text
        await write(saver, chain[0], "later", "late")
        assert await history(saver, chain[-1]) == ["late", *expected]
        await client.close()


async def test_an_own_second_life_is_the_one_that_is_given(
    saver: JetStreamSaver,
) -> None:
    chain = await _chain(saver, 3)
    await history(saver, chain[-1])
    await saver.adelete_thread("t")
    for id, parent in zip(chain, [None, *chain], strict=False):
        await step(saver, id, parent, f"again {id}")
    assert await history(saver, chain[-1]) == [f"again {id}" for id in chain[:-1]]


async def test_an_encrypted_history_is_read_again_alike(
    nats_url: str, bucket: str, read: list[str]
) -> None:
    async with JetStreamSaver.from_conn_string(
        nats_url, bucket=bucket, encryption=Encryption(bytes(range(32)))
    ) as saver:
        assert isinstance(saver._partition.store, FindsNewer)
        chain = await _chain(saver, 5)
        before = await history(saver, chain[-1])
        read.clear()
        await write(saver, chain[0], "later", "late")
        assert await history(saver, chain[-1]) == ["late", *before]
        assert read == []


def _record(id: str) -> Record:
    empty: Any = None
    return Record(id, None, (), None, {}, 4, {}, empty, empty, {}, b"")


def test_a_bounded_past_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MAX_PAST", 10 * past._RECORD_BYTES)
    held = Past(1)
    for n in range(20):
        held.add(_record(f"{n}"), ())
    assert [held.get(f"{n}") is not None for n in range(20)] == [True] * 10 + [
        False
    ] * 10
    assert held.size == 10 * past._RECORD_BYTES
    for n in range(20):
        held.forget(f"{n}")
    assert held.size == 0


# -- any order of messages -------------------------------------------------------------


class Game:
    """One writes a chain, others add writes and remove; what is read is right."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.store = Interleaving(dice)
        self.chain: list[str] = []
        self.begun: dict[str, set[str]] = {}
        self.ended: dict[str, set[str]] = {}
        self.extended: set[str] = set()
        self.removed = False

    def saver(self) -> DocumentCheckpointSaver:
        return DocumentCheckpointSaver(self.store)

    async def write(self, saver: AnySaver, id: str, task: str, *values: str) -> None:
        self.begun.setdefault(id, set()).update(values)
        await write(saver, id, task, *values)
        self.ended.setdefault(id, set()).update(values)

    async def grow(self, saver: AnySaver) -> None:
        for id in numbered(self.dice.randrange(2, 7)):
            try:
                await step(saver, id, self.chain[-1] if self.chain else None)
            except DocumentNotFoundError:
                # Its parent is gone.
                assert self.removed
                return
            self.chain.append(id)
            await self.write(saver, id, "task", f"{id} 0")

    async def add(self, saver: AnySaver, name: str) -> None:
        for n in range(self.dice.randrange(16)):
            for _ in range(self.dice.randrange(20)):
                await asyncio.sleep(0)
            if self.chain:
                id = self.dice.choice(self.chain)
                value = f"{id} {name} {n} " * self.dice.choice((1, 1, 30_000))
                if id in self.extended or self.dice.random() < 0.5:
                    await self.write(saver, id, f"{name} {n}", value)
                else:
                    # One more for a task; of its first one the stored one stays.
                    self.extended.add(id)
                    await self.write(saver, id, "task", f"{id} 0", value)

    async def remove(self, saver: AnySaver) -> None:
        for _ in range(self.dice.randrange(3)):
            for _ in range(self.dice.randrange(80)):
                await asyncio.sleep(0)
            self.removed = True
            if self.dice.random() < 0.7:
                await saver.aprune(["t"])
            else:
                await saver.adelete_for_runs(["r"])

    async def read(self, saver: AnySaver, times: int) -> None:
        for _ in range(times):
            for _ in range(self.dice.randrange(9)):
                await asyncio.sleep(0)
            if self.chain:
                await self.look(saver)

    async def look(self, saver: AnySaver) -> None:
        id = self.dice.choice((self.chain[-1], self.dice.choice(self.chain)))
        path = self.chain[: self.chain.index(id)]
        must = {v for each in path for v in self.ended.get(each, ())}
        try:
            await saver.aget_tuple(at())
            found = await saver.aget_delta_channel_history(
                config=at(id), channels=["x"]
            )
        except (CorruptDocumentError, DocumentNotFoundError):
            assert self.removed
            return
        values = [value for _, _, value in found["x"]["writes"]]
        if "seed" not in found["x"] and path:
            # Removed before it was looked for.
            assert self.removed
            assert values == []
            return
        may = {v for each in path for v in self.begun.get(each, ())}
        assert must <= set(values) <= may
        ancestors = [value.split()[0] for value in values]
        assert ancestors == sorted(ancestors)
        assert len(values) == len(set(values))

    async def play(self) -> None:
        async with self.saver() as one, self.saver() as two, self.saver() as three:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.grow(one))
                tasks.create_task(self.add(two, "two"))
                tasks.create_task(self.add(one, "one"))
                tasks.create_task(self.read(one, 12))
                tasks.create_task(self.read(three, 12))
                tasks.create_task(self.read(three, 12))
                if self.dice.random() < 0.5:
                    tasks.create_task(self.remove(two))
            for each in (one, two, three):
                await self.look(each)


@pytest.mark.parametrize("start", range(0, GAMES, GAMES // 4))
async def test_in_any_order_of_messages_a_history_is_whole(start: int) -> None:
    for seed in range(start, start + GAMES // 4):
        try:
            await Game(random.Random(seed)).play()
        except BaseException as exc:
            exc.add_note(f"seed {seed}")
            raise


async def test_the_game_notices_a_past_that_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unproven(self: Partition, scope: Scope) -> Past | None:
        head = self.heads.get(scope)
        if head is None:
            return None
        held = head.past or Past(1)
        self.heads.set(scope, head._replace(past=held))
        return held

    monkeypatch.setattr(Partition, "past", unproven)

    async def play() -> None:
        for seed in range(GAMES):
            await Game(random.Random(seed)).play()

    with pytest.raises(BaseExceptionGroup):
        await play()
