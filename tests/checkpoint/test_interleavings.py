"""Prunes and deletes beside writers: what is listed is whole, whatever the order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.interleaving import Interleaving
from tests.checkpoint.saving import OpenSaver, at, id_of, listed, put
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.layout import decode_record, is_epoch

MEMORY, ANY = (4000, 800) if SOAK else (160, 80)
"""Games: on a store that lets others in anywhere, and on each store as it is."""
LARGE = "l" * 3000
REMOVES = {"latest": {"a", "b"}, "all": {"a", "b"}, "a": {"a"}, "ab": {"a", "b"}}
"""The runs that a removal may take something from."""


class Round:
    """Some writers, a reader and one who removes, on one thread."""

    def __init__(self, dice: random.Random, thread: str, readings: int) -> None:
        self.dice = dice
        self.readings = readings
        self.thread = thread
        self.states: dict[str, dict[str, Any]] = {}
        self.clock = count()
        self.acknowledged: dict[str, tuple[str, int]] = {}
        self.removals: list[tuple[str, int]] = []

    def _next_state(self, id: str, parent: str | None) -> dict[str, Any]:
        before = self.states[parent] if parent else {"grow": [LARGE]}
        return {
            "keep": LARGE,
            "grow": [*before["grow"], f"{id} {self.dice.random()} " * 40],
            "own": id * 400,
        }

    async def write(self, saver: DocumentCheckpointSaver, name: str) -> None:
        parent = None
        for n in range(self.dice.randrange(2, 7)):
            id = f"{n}{name}"
            self.states[id] = self._next_state(id, parent)
            versions = {"keep": 1, "grow": id, "own": id}
            started = next(self.clock)
            await put(
                saver,
                id,
                self.states[id],
                parent=parent,
                thread=self.thread,
                versions=versions,
                new={"grow": id, "own": id} if parent else versions,
                run_id=name,
            )
            self.acknowledged[id] = (name, started)
            large = "w" * self.dice.choice((10, 300_000))
            config = at(id, thread=self.thread)
            await saver.aput_writes(config, [("c", large)], f"task {id}")
            if self.dice.random() < 0.8:
                parent = id
            for _ in range(self.dice.randrange(4)):
                await asyncio.sleep(0)

    async def remove(self, saver: DocumentCheckpointSaver) -> None:
        calls: dict[str, Callable[[], Awaitable[None]]] = {
            "latest": lambda: saver.aprune([self.thread]),
            "a": lambda: saver.adelete_for_runs(["a"]),
            "ab": lambda: saver.adelete_for_runs(["b", "a"]),
            "all": lambda: saver.adelete_thread(self.thread),
        }
        for _ in range(self.dice.randrange(1, 5)):
            for _ in range(self.dice.randrange(60)):
                await asyncio.sleep(0)
            kind = self.dice.choice(["latest", *calls])
            await calls[kind]()
            self.removals.append((kind, next(self.clock)))

    def must_be_there(self) -> set[str]:
        """What was acknowledged and nobody may have removed."""
        kept: set[str] = set()
        for id, (run, started) in self.acknowledged.items():
            kinds = {kind for kind, ended in self.removals if ended > started}
            spared = {"latest"} if id == max(self.acknowledged) else set()
            removed = set[str]().union(*(REMOVES[kind] for kind in kinds - spared))
            if run not in removed:
                kept.add(id)
        return kept

    async def read(self, saver: DocumentCheckpointSaver) -> None:
        for _ in range(self.readings):
            for found in await listed(saver, at(thread=self.thread)):
                self.check(found)
            latest = await saver.aget_tuple(at(thread=self.thread))
            if latest is not None:
                self.check(latest)
            id = self.dice.choice([*self.states, "unknown"])
            single = await saver.aget_tuple(at(id, thread=self.thread))
            if single is not None:
                self.check(single)

    def check(self, found: CheckpointTuple) -> None:
        assert found.checkpoint["channel_values"] == self.states[id_of(found)]

    async def play(
        self, saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.write(saver, "a"))
            tasks.create_task(self.write(other, "b"))
            tasks.create_task(self.remove(other))
            tasks.create_task(self.read(saver))
            if self.dice.random() < 0.3:
                tasks.create_task(self.remove(saver))
        for each in (saver, other):
            rows = await listed(each, at(thread=self.thread))
            for found in rows:
                self.check(found)
            assert self.must_be_there() <= {id_of(found) for found in rows}
            latest = await each.aget_tuple(at(thread=self.thread))
            assert (latest is None) == (rows == [])
            assert latest is None or latest == rows[0]
        await self.is_clean_after_a_prune(saver)

    async def is_clean_after_a_prune(self, saver: DocumentCheckpointSaver) -> None:
        """Nothing is left that the one checkpoint does not refer to."""
        for id in "89":
            self.states[id] = self._next_state(id, None)
            await put(saver, id, self.states[id], thread=self.thread)
        await saver.aprune([self.thread])
        (kept,) = await listed(saver, at(thread=self.thread))
        self.check(kept)
        within = ("default", self.thread)
        records = await saver.store.find("default", "cp", within=within)
        (record,) = (decode_record(d) for d in records.items if not is_epoch(d))
        parts = await saver.store.ids("default", "bl", within=within)
        assert {part[-1] for part in parts} == {d.hex() for d in record.digests()}


@pytest.mark.parametrize("start", range(0, MEMORY, MEMORY // 4))
async def test_in_any_order_of_messages_what_is_listed_is_whole(start: int) -> None:
    for seed in range(start, start + MEMORY // 4):
        dice = random.Random(seed)
        store = Interleaving(dice)
        async with (
            DocumentCheckpointSaver(store) as saver,
            DocumentCheckpointSaver(store) as other,
        ):
            try:
                await Round(dice, "t", 6).play(saver, other)
            except BaseException as exc:
                exc.add_note(f"seed {seed}")
                raise


@pytest.mark.parametrize("start", range(0, ANY, ANY // 4))
async def test_on_any_store_what_is_listed_is_whole(
    open_saver: OpenSaver, start: int
) -> None:
    async with open_saver() as saver, open_saver() as other:
        for seed in range(start, start + ANY // 4):
            game = Round(random.Random(seed), f"thread {seed}", 1)
            try:
                await game.play(saver, other)
            except BaseException as exc:
                exc.add_note(f"seed {seed}")
                raise
