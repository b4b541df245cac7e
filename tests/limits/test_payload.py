"""Around the greatest message of a server: stored whole, or refused and not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR
from tests.checkpoint.saving import at, get, put
from tests.limits.lines import Line, blob, refusal, text
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import DocumentTooLargeError

Saver = DocumentCheckpointSaver
MIB = 1024 * 1024


def _sizes(max_payload: int) -> list[int]:
    """What is around the limit, and around what it leaves room for."""
    if max_payload > MIB:
        offsets = [-300, 4096]
    elif max_payload == MIB:
        offsets = [*range(-4096, 4097, 2048), -600, -300, -100, 1]
    else:
        offsets = [*range(-4096, 4097, 512), *range(-700, 0, 100), -1, 1, max_payload]
    if SOAK:
        offsets = [*range(-4096, 4097, 128), max_payload]
    return [max_payload + offset for offset in offsets]


@dataclass(frozen=True)
class Place:
    """Where a checkpoint goes: long names leave less room in a message."""

    name: str

    @property
    def ns(self) -> str:
        return "" if self == SHORT else f"ns {self.name}"

    async def put(self, saver: Saver, state: dict[str, Any], **about: Any) -> None:
        await put(saver, self.name, state, thread=self.name, ns=self.ns, **about)

    async def put_writes(self, saver: Saver, writes: list[tuple[str, Any]]) -> None:
        config = at(self.name, thread=self.name, ns=self.ns)
        await saver.aput_writes(config, writes, self.name)

    async def get(self, saver: Saver) -> CheckpointTuple:
        return await get(saver, thread=self.name, ns=self.ns)


SHORT, LONG = Place("t"), Place("é" * 160)


async def _value(saver: Saver, place: Place, size: int) -> None:
    await place.put(saver, {"x": blob(size)})


async def _value_read(saver: Saver, place: Place, size: int) -> None:
    found = await place.get(saver)
    assert found.checkpoint["channel_values"] == {"x": blob(size)}


async def _about(saver: Saver, place: Place, size: int) -> None:
    await place.put(saver, {"x": 1}, **{"about": text(size), text(size): "key"})


async def _about_read(saver: Saver, place: Place, size: int) -> None:
    found: dict[str, Any] = {**(await place.get(saver)).metadata}
    assert found["about"] == text(size)
    assert found[text(size)] == "key"


async def _writes(saver: Saver, place: Place, size: int) -> None:
    await place.put(saver, {})
    writes = [("a", blob(size)), ("b", 1), (ERROR, blob(size)[::-1])]
    await place.put_writes(saver, writes)


async def _writes_read(saver: Saver, place: Place, size: int) -> None:
    assert (await place.get(saver)).pending_writes == [
        (place.name, ERROR, blob(size)[::-1]),
        (place.name, "a", blob(size)),
        (place.name, "b", 1),
    ]


Call = Callable[[Saver, Place, int], Awaitable[None]]


@pytest.mark.parametrize(
    ("store", "check"),
    [(_value, _value_read), (_about, _about_read), (_writes, _writes_read)],
    ids=["channel value", "metadata", "write"],
)
@pytest.mark.parametrize("place", [SHORT, LONG], ids=["short", "long"])
async def test_what_is_larger_than_a_message_is_stored_in_parts(
    limited: Line, store: Call, check: Call, place: Place
) -> None:
    for size in _sizes(limited.max_payload):
        await store(limited.saver, place, size)
        await check(limited.other, place, size)
        await limited.saver.adelete_thread(place.name)
    assert await limited.keys() == set()
    await limited.lives()


def _channel(saver: Saver, name: str) -> Awaitable[Any]:
    return put(saver, "2", {name: "v"})


def _version(saver: Saver, name: str) -> Awaitable[Any]:
    return put(saver, "2", {"x": "v"}, versions={"x": name})


def _channel_of_a_write(saver: Saver, name: str) -> Awaitable[Any]:
    return saver.aput_writes(at("1"), [(name, "v")], "task")


def _task_path(saver: Saver, name: str) -> Awaitable[Any]:
    return saver.aput_writes(at("1"), [("a", "v")], "task", name)


@pytest.mark.parametrize("call", [_channel, _version, _channel_of_a_write, _task_path])
async def test_names_that_fill_a_message_are_stored_or_refused(
    limited: Line, call: Callable[[Saver, str], Awaitable[Any]]
) -> None:
    refusals = 0
    await put(limited.saver, "1", {"x": 1})
    before = await limited.keys()
    whole = limited.max_payload
    for size in (whole // 4, *_sizes(whole), 5 * whole if whole < MIB else 2 * whole):
        refused = await refusal(call(limited.saver, text(size)))
        if refused is not None:
            assert isinstance(refused, DocumentTooLargeError)
            assert refused.size is not None
            assert refused.size > whole == refused.limit
            refusals += 1
            assert await limited.keys() == before
        else:
            found = await get(limited.other)
            same = await get(limited.saver)
            assert found == same
            assert "v" in (
                *found.checkpoint["channel_values"].values(),
                *(value for _, _, value in found.pending_writes or ()),
            )
            await limited.saver.adelete_thread("t")
            await put(limited.saver, "1", {"x": 1})
    assert refusals
    assert await limited.keys() == before
    await limited.lives()
