"""Large states, many channels, many writes: whole, or refused and not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import INTERRUPT
from tests.checkpoint.saving import at, get, listed, put, values
from tests.limits.lines import Line, blob, refusal, text
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import DocumentTooLargeError

MB = 1_000_000
COUNTS = (300, 2000, 5000, 20_000, 100_000) if SOAK else (300, 2000, 5000)


@pytest.mark.parametrize(
    ("size", "channels"), [(3 * 1024 * 1024, 1), (12 * MB, 300), (20 * MB, 1)]
)
async def test_a_large_state_is_whole(limited: Line, size: int, channels: int) -> None:
    state = {f"{n}": blob(size // channels + n) for n in range(channels)}
    await put(limited.saver, "1", state)
    changed = {**state, "0": state["0"] + b"more"}
    versions = dict.fromkeys(state, "1") | {"0": "2"}
    new = {"0": "2"}
    await put(limited.saver, "2", changed, parent="1", versions=versions, new=new)

    assert await values(limited.other, "1") == state
    assert await values(limited.other) == changed
    rows = await listed(limited.other, at())
    assert [row.checkpoint["channel_values"] for row in rows] == [changed, state]
    await limited.saver.adelete_thread("t")
    assert await limited.keys() == set()
    await limited.lives()


def _channels(saver: DocumentCheckpointSaver, count: int) -> Awaitable[Any]:
    state = {f"channel {n}": n for n in range(count)}
    versions = {c: f"{n:032}.{n:016}" for n, c in enumerate(state)}
    return put(saver, "2", state, versions=versions)


def _writes(saver: DocumentCheckpointSaver, count: int) -> Awaitable[Any]:
    writes: list[tuple[str, Any]] = [(f"channel {n}", n) for n in range(count)]
    return saver.aput_writes(at("1"), [*writes, (INTERRUPT, "stop")], "task", "~path")


@pytest.mark.parametrize("call", [_channels, _writes])
async def test_many_are_stored_or_refused(
    limited: Line, call: Callable[[DocumentCheckpointSaver, int], Awaitable[Any]]
) -> None:
    await put(limited.saver, "1")
    before = await limited.keys()
    for count in COUNTS:
        wanted = [(f"channel {n}", n) for n in range(count)]
        refused = await refusal(call(limited.saver, count))
        if refused is not None:
            # Names and versions are in one message, whatever their values are.
            assert isinstance(refused, DocumentTooLargeError)
            assert refused.limit == limited.max_payload
            assert count * 100 > limited.max_payload
            assert await limited.keys() == before
        else:
            found = await get(limited.other)
            if call is _channels:
                assert list(found.checkpoint["channel_values"].items()) == wanted
            else:
                assert found.pending_writes is not None
                pairs = [(channel, value) for _, channel, value in found.pending_writes]
                assert pairs == [(INTERRUPT, "stop"), *wanted]
            await limited.saver.adelete_thread("t")
            await put(limited.saver, "1")
    await limited.lives()


async def test_a_listing_of_large_states_and_writes_is_whole(limited: Line) -> None:
    parent = None
    for n in range(12):
        id = f"{n:02}"
        await put(limited.saver, id, {"x": blob(MB + n)}, parent=parent, m=text(90_000))
        await limited.saver.aput_writes(at(id), [("a", blob(MB - n))], "task")
        parent = id

    rows = await listed(limited.other, at())
    assert [row.checkpoint["id"] for row in rows] == [f"{n:02}" for n in range(12)][
        ::-1
    ]
    for n, row in enumerate(reversed(rows)):
        assert row.checkpoint["channel_values"] == {"x": blob(MB + n)}
        assert row.pending_writes == [("task", "a", blob(MB - n))]
        assert dict(row.metadata)["m"] == text(90_000)
    await limited.lives()
