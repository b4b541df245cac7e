"""What a serialiser refuses, or makes only of what it knows."""

from __future__ import annotations

import fractions
import io
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.checkpoint.saving import OpenSaver, at, get, ids, listed, put, values

from jskv_saver import DocumentCheckpointSaver

Saver = DocumentCheckpointSaver
REFUSED: dict[str, Any] = {
    "fraction": fractions.Fraction(1, 3),
    "complex": 1j,
    "object": object(),
    "lock": threading.Lock(),
    "file": io.StringIO(),
    "function": lambda: None,
    "generator": (n for n in "ab"),
    "module": json,
    "class": Saver,
    "exception": ValueError,
    "range": range(3),
    "huge int": 2**64,
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_refused_reaches_the_caller_and_leaves_nothing(
    saver: Saver, name: str
) -> None:
    bad = REFUSED[name]
    large = "x" * 700_000
    for nested in (bad, [bad], {"deep": [{"bad": bad}]}):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            await put(saver, "1", {"good": large, "bad": nested}, run_id="r")
        with pytest.raises((TypeError, ValueError, OverflowError)):
            await put(saver, "1", {"good": large}, bad=[nested])
        writes = [("good", large), ("bad", nested), ("also", 1)]
        with pytest.raises((TypeError, ValueError, OverflowError)):
            await saver.aput_writes(at("1"), writes, "task")
    assert await saver.aget_tuple(at()) is None
    assert await saver.aget_tuple(at("1")) is None
    assert await listed(saver) == []
    for collection in ("cp", "wr", "bl", "th", "rn"):
        assert await saver.store.ids("default", collection) == []
    await saver.aput_writes(at("1"), [("good", 1)], "task")
    await put(saver, "1", {"good": large})
    assert (await get(saver)).pending_writes == [("task", "good", 1)]


class Once:
    """A value that only `Moody` knows."""


class Moody(JsonPlusSerializer):
    """A serialiser that writes any state, and reads none."""

    reads = True

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, Once):
            return "once", b"once" * 300
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if data[0] == "once":
            if not self.reads:
                raise ModuleNotFoundError("the class is gone")
            return "read"
        return super().loads_typed(data)


@pytest.fixture
async def moody(open_saver: OpenSaver) -> AsyncIterator[Saver]:
    """A saver that can be read no more where one of its values is."""
    serde = Moody()
    async with open_saver(serde=serde) as opened:
        for n in range(4):
            parent = f"{n - 1}" if n else None
            await put(opened, f"{n}", {"x": Once()}, parent=parent, run_id=f"r{n}")
            await opened.aput_writes(at(f"{n}"), [("x", Once())], "task")
        await put(opened, "1", {"x": 1}, thread="kept")
        serde.reads = False
        yield opened
        serde.reads = True


async def test_a_state_that_cannot_be_read_is_an_error_and_no_partial_state(
    moody: Saver,
) -> None:
    for config in (at(), at("2")):
        with pytest.raises(ModuleNotFoundError):
            await moody.aget_tuple(config)
    with pytest.raises(ModuleNotFoundError):
        await listed(moody, at())
    assert await values(moody, thread="kept") == {"x": 1}
    assert await ids(moody, at(), filter={"run_id": "unknown"}) == []


async def test_a_state_that_cannot_be_read_can_be_copied_pruned_and_deleted(
    moody: Saver, other: Saver
) -> None:
    await moody.acopy_thread("t", "copy")
    await moody.adelete_for_runs(["r1"])
    await moody.aprune(["copy"])
    assert isinstance(moody.serde, Moody)
    moody.serde.reads = True
    assert await ids(moody, at()) == ["3", "2", "0"]
    assert await ids(moody, at(thread="copy")) == ["3"]
    assert await values(moody, thread="copy") == {"x": "read"}
    assert (await get(moody, "0")).pending_writes == [("task", "x", "read")]
    moody.serde.reads = False
    for thread in ("t", "copy"):
        await moody.adelete_thread(thread)
    assert [row.config for row in await listed(other)] == [at("1", thread="kept")]


class Plain:
    """A serialiser of the old kind, without types."""

    def dumps(self, obj: Any) -> bytes:
        return json.dumps(obj).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


async def test_a_serialiser_without_types_works(open_saver: OpenSaver) -> None:
    async with open_saver(serde=Plain()) as saver:
        state = {"x": ["a" * 2000, None, {"y": 1.5}]}
        await put(saver, "1", state)
        await put(saver, "2", {**state, "z": 1}, parent="1", new={})
        await saver.aput_writes(at("2"), [("c", {"n": [1]})], "task")
        assert await values(saver, "1") == state
        found = await get(saver)
        assert found.checkpoint["channel_values"] == {**state, "z": 1}
        assert found.pending_writes == [("task", "c", {"n": [1]})]
        assert await ids(saver, at(), filter={"source": "loop"}) == ["2", "1"]
