"""Retentions beside writers, in orders of their messages by chance."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.checkpoint.interleaving import Interleaving
from tests.checkpoint.saving import at, put, values
from tests.removal.test_prune import moment
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver, Retention
from jskv_saver.checkpoint.expiry import Expirer
from jskv_saver.errors import CorruptDocumentError, DocumentNotFoundError

GAMES, AT_ONCE = (20_000, 500) if SOAK else (400, 50)
DAY = timedelta(days=1)
TEXT = "x" * 3000
BEFORE = {(ns, id): TEXT + id for ns in ("", "child") for id in ("1", "2")}

Saver = DocumentCheckpointSaver
Act = Callable[["Game", Saver], Awaitable[None]]


class Game:
    """One thread, which was used before a moment, and those who use or remove it.

    Attributes:
        acknowledged: What was put since, and must be there.
        written: The tasks whose writes to the old head were acknowledged.
        erased: Whether a retention says that it removed the thread.
        removals: How many remove at the same time.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.store = Interleaving(self.dice)
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.written: list[str] = []
        self.erased = False
        self.removals = 0
        self.limit: datetime | None = None

    def saver(self) -> Saver:
        return Saver(self.store)

    async def begin(self) -> None:
        saver = self.saver()
        for ns, id in BEFORE:
            parent = "1" if id == "2" else None
            text = {"text": BEFORE[ns, id]}
            await put(saver, id, text, parent=parent, ns=ns, run_id="old")
        await saver.aput_writes(at("2"), [("c", "old")], "old")
        self.limit = await moment()

    async def put(
        self, saver: Saver, id: str, parent: str | None, ns: str = ""
    ) -> None:
        text = TEXT + (parent or "") + id
        try:
            await put(saver, id, {"text": text}, parent=parent, ns=ns, run_id=id)
        except DocumentNotFoundError:
            return
        self.acknowledged[ns, id] = text


async def go_on(game: Game, saver: Saver) -> None:
    await saver.aget_tuple(at())
    await game.put(saver, "4", "2")
    await game.put(saver, "6", "4")


async def go_on_unread(game: Game, saver: Saver) -> None:
    await game.put(saver, "5", "2")


async def fork(game: Game, saver: Saver) -> None:
    await game.put(saver, "3", "1")


async def go_on_below(game: Game, saver: Saver) -> None:
    await saver.aget_tuple(at(ns="child"))
    await game.put(saver, "3", "2", "child")


async def begin_below(game: Game, saver: Saver) -> None:
    await game.put(saver, "1", None, "new")
    await game.put(saver, "2", "1", "new")


async def write(game: Game, saver: Saver) -> None:
    await saver.aput_writes(at("2"), [("c", "w" * 300_000)], "new")
    game.written.append("new")


async def pin(game: Game, saver: Saver) -> None:
    try:
        await saver.apin("t")
    except DocumentNotFoundError:
        return
    # What is pinned is there, be it the thread's next life.
    assert await _there(saver)


async def expire(game: Game, saver: Saver) -> None:
    assert game.limit is not None
    report = await saver._keeper.enforce(Retention(idle=DAY), game.limit + DAY)
    game.erased = game.erased or report.erased == ("t",)


async def repair(game: Game, saver: Saver) -> None:
    await saver.arepair(["t"])


USES: list[Act] = [go_on, go_on_unread, fork, go_on_below, begin_below, write, pin]
REMOVES: list[Act] = [expire, expire, repair]


async def _there(saver: Saver) -> Mapping[tuple[str, str], str]:
    return {
        (found.config["configurable"]["checkpoint_ns"], found.checkpoint["id"]): (
            found.checkpoint["channel_values"]["text"]
        )
        async for found in saver.alist(at(ns=None))
    }


async def play(seed: int) -> Game:
    game = Game(seed)
    await game.begin()
    acts = [expire, *game.dice.sample(USES, game.dice.randint(1, 3))]
    others = game.dice.choice((0, 0, 0, 1, 2))
    acts += game.dice.sample(REMOVES, others)
    game.removals = 1 + others
    # Half of them remember nothing of the thread.
    old = game.saver()
    await old.aget_tuple(at())
    savers = [old if game.dice.random() < 0.3 else game.saver() for _ in acts]

    async def act(do: Act, saver: Saver) -> None:
        for _ in range(game.dice.randint(0, 60)):
            await asyncio.sleep(0)
        await do(game, saver)

    await asyncio.gather(*map(act, acts, savers))
    await _check(game)
    return game


async def _check(game: Game) -> None:
    fresh = game.saver()
    there = await _there(fresh)
    for key, text in game.acknowledged.items():
        assert there.get(key) == text, f"{key} was acknowledged"
    old = {key: text for key, text in there.items() if key in BEFORE}
    if game.removals > 1:
        # Each namespace is whole or gone; nothing that was acknowledged is.
        for ns in ("", "child"):
            whole = {key for key in BEFORE if key[0] == ns}
            left = {key for key in old if key[0] == ns} - game.acknowledged.keys()
            assert left in (set(), whole - game.acknowledged.keys()), "a part"
    elif game.erased:
        again = old.keys() & game.acknowledged.keys()
        assert old.keys() == again, "an erased thread keeps nothing"
    else:
        assert old == BEFORE, "a thread stays whole"
        head = await fresh.aget_tuple(at("2"))
        assert head is not None
        tasks = {task for task, *_ in head.pending_writes or []}
        assert tasks == {"old", *game.written}
    report = await fresh.averify(settle=0)
    assert all(finding.severity == "warning" for finding in report.findings)
    await fresh.arepair()
    assert (await fresh.averify(settle=0)).ok
    # Whoever is the latest by now is continued.
    latest = await fresh.aget_tuple(at())
    parent = latest.checkpoint["id"] if latest else None
    await put(fresh, "9", {"text": TEXT + "9"}, parent=parent)
    assert await values(game.saver()) == {"text": TEXT + "9"}


@pytest.mark.timeout(60 if not SOAK else 3600)
@pytest.mark.parametrize("begin", range(0, GAMES, AT_ONCE))
async def test_what_is_acknowledged_is_there_and_the_rest_is_whole_or_gone(
    begin: int,
) -> None:
    base = begin if SOAK else random.randrange(1 << 32)
    erased = stayed = 0
    for seed in range(base, base + AT_ONCE):
        try:
            game = await play(seed)
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}: {exc}") from exc
        erased += game.erased
        stayed += not game.erased
    assert erased
    assert stayed


async def _no_second_look(*_: Any) -> bool:
    return False


async def _no_fence(self: Expirer, scope: Any, seen: Any) -> int:
    versions = {id: record.version for id, record in seen.records.items()}
    before = seen.epoch.version if seen.epoch else 0
    return await self._announce(scope, versions, before, {})


@pytest.mark.parametrize(
    ("step", "instead"), [("_is_used", _no_second_look), ("_close", _no_fence)]
)
async def test_the_games_find_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, step: str, instead: Any
) -> None:
    monkeypatch.setattr(Expirer, step, instead)
    found = 0
    for seed in range(1000):
        try:
            await play(seed)
        except (AssertionError, CorruptDocumentError):
            found += 1
            break
    assert found
