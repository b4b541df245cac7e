"""The JetStream store is held to the model: schedules replayed on a real server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.explorer.budget import REPLAYS
from tests.explorer.game import Game
from tests.explorer.replays import Different, Replay
from tests.explorer.scenarios import SCENARIOS
from tests.explorer.search import Search

from jskv_saver import JetStreamDocumentStore
from jskv_saver.document.names import RESERVED_COLLECTIONS

THREAD = ("default", "t")
AGAIN_BEFORE_THE_PURGE = "P P P P P P A A A A A A A A A A"
"""2 is put again after an epoch has named it, and before its record is purged."""
BOTH_AT_ONCE = "A A A B B B A B A B"
"""Both writers have read the head before one of them puts."""


@pytest.fixture
async def store(nats_url: str, bucket: str) -> AsyncIterator[JetStreamDocumentStore]:
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as opened:
        yield opened


@pytest.fixture(params=SCENARIOS)
def games(request: pytest.FixtureRequest) -> list[Game]:
    """Some schedules, played on the memory store. No loop runs yet."""
    search = Search(SCENARIOS[request.param], recovery=0)
    return search.games(random.randrange(2**32), REPLAYS)


async def test_the_real_store_answers_as_the_model(
    games: list[Game], store: JetStreamDocumentStore
) -> None:
    for game in games:
        try:
            await Replay(game.scenario, store).follow(game)
        except Different as exc:
            exc.add_note(f"replay: {game.scenario.name} {' '.join(game.trace)}")
            raise
        await store.delete(
            "default", RESERVED_COLLECTIONS, ("default", "t"), subtree=True
        )


async def test_a_store_that_answers_differently_is_found(
    store: JetStreamDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It purges whatever age it has, and takes every condition for true."""
    delete, put_many = JetStreamDocumentStore.delete, JetStreamDocumentStore.put_many

    async def purge(self: Any, *what: Any, below: Any = None, **how: Any) -> None:
        await delete(self, *what, **how)

    async def put(self: Any, namespace: str, writes: Any, **how: Any) -> Any:
        writes = [(name, id, data, None) for name, id, data, _ in writes]
        return await put_many(self, namespace, writes, **how)

    for lie, name, scenario, trace in (
        (purge, "delete", "again-runs", AGAIN_BEFORE_THE_PURGE),
        (put, "put_many", "two-prune", BOTH_AT_ONCE),
    ):
        # In a thread: a loop runs here already.
        search = Search(SCENARIOS[scenario])
        game = await asyncio.to_thread(search.replay, trace.split())
        with monkeypatch.context() as patch:
            patch.setattr(JetStreamDocumentStore, name, lie)
            with pytest.raises(Different):
                await Replay(game.scenario, store).follow(game)
        await store.delete("default", RESERVED_COLLECTIONS, THREAD, subtree=True)
        await Replay(game.scenario, store).follow(game)
        await store.delete("default", RESERVED_COLLECTIONS, THREAD, subtree=True)
