"""States that others store in part, change, or cannot read again."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    checkpoint,
    get,
    listed,
    meta,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver

Saver = DocumentCheckpointSaver


class Pair(NamedTuple):
    left: int
    right: str


ODD: dict[str, Any] = {
    "default dict": collections.defaultdict(list, {"a": [1]}),
    "counter": collections.Counter("abca"),
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "bounded": collections.deque([1, 2], maxlen=2),
    "set of tuples": {(1, 2), (3, 4)},
    "tuple": (1, (2, [3])),
    "named tuple": Pair(1, "b"),
    "int keys": {1: "a", -2: {3: 4}},
    "tuple keys": {(1, 2): "a"},
    "mixed keys": {1: "int", "1": "text", None: "none", 2.5: "float"},
    "bytearray": bytearray(b"\x00\x01"),
    "large int": 2**63 - 1,
    "float": [0.1, -0.0, 1e308, 5e-324, float("inf"), float("-inf")],
    "deep": [[[[[[[[[[[[{"x": [None]}]]]]]]]]]]]],
    "ellipsis text": "…\r\n\t\x00\x1b",
}


async def test_what_the_serialiser_changes_is_given_as_it_gives_it(
    saver: Saver,
) -> None:
    """Nothing more is lost; the same again is still the same."""
    given = {
        name: saver.serde.loads_typed(saver.serde.dumps_typed(value))
        for name, value in ODD.items()
    }
    for _ in range(2):
        await put(saver, "1", ODD, about=[*ODD.values()])
        await saver.aput_writes(at("1"), list(ODD.items()), "task")
    await put(saver, "2", ODD, parent="1", versions=dict.fromkeys(ODD, "1"), new={})
    await saver.acopy_thread("t", "copy")

    wanted = saver.serde.loads_typed(saver.serde.dumps_typed([*ODD.values()]))
    for thread in ("t", "copy"):
        for row in await listed(saver, at(thread=thread)):
            assert repr(row.checkpoint["channel_values"]) == repr(given)
        found = await get(saver, "1", thread=thread)
        assert repr(found.metadata.get("about")) == repr(wanted)
        assert repr(found.pending_writes) == repr([("task", *i) for i in given.items()])


@pytest.mark.parametrize("text", ["a\x00b", "\x00", "half \ud83d", "\u2028", "é" * 999])
async def test_messages_of_any_text_survive(saver: Saver, text: str) -> None:
    given = saver.serde.loads_typed(saver.serde.dumps_typed(text))

    def messages(text: str) -> list[Any]:
        call = {"name": "f", "args": {"x": text}, "id": "c", "type": "tool_call"}
        return [
            HumanMessage(text, id="1"),
            HumanMessage([{"type": "text", "text": text}], id="2"),
            AIMessage("", id="3", tool_calls=[call]),
            ToolMessage(text, tool_call_id="c", id="4", artifact={"deep": [text]}),
        ]

    await put(saver, "1", {"messages": messages(text)}, about=messages(text))
    await saver.aput_writes(at("1"), [("messages", messages(text))], "task")

    (found,) = await listed(saver, at())
    assert found == await get(saver)
    assert found.checkpoint["channel_values"] == {"messages": messages(given)}
    assert found.metadata.get("about") == messages(given)
    assert found.pending_writes == [("task", "messages", messages(given))]


@pytest.mark.parametrize("new", ["none", "changed", "all", "more"])
@pytest.mark.parametrize("size", [1, 3000])
async def test_channels_that_are_not_called_new_are_stored_all_the_same(
    open_saver: OpenSaver, new: str, size: int
) -> None:
    """By whoever puts: with the parent at hand, without it, or with no parent."""
    first = {"a": "a" * size, "b": ["b" * size], "none": None}
    second = {**first, "b": ["B" * size], "c": "c" * size}
    versions = dict.fromkeys(first, "1")
    later = {**versions, "b": "2", "c": "2"}
    called: dict[str, dict[str, Any]] = {
        "none": {},
        "changed": {"b": "2", "c": "2"},
        "all": later,
        "more": {**later, "unset": "2"},
    }
    async with open_saver() as saver, open_saver() as other:
        await put(saver, "1", first, versions=versions, new=called[new])
        for n, each in enumerate((saver, other)):
            options: dict[str, Any] = {"versions": later, "new": called[new]}
            await put(each, f"{2 + n}", second, parent="1", **options)
            await put(each, f"{4 + n}", second, parent="gone", **options)
            await put(each, f"{6 + n}", second, **options)
        for reader in (saver, other):
            assert await values(reader, "1") == first
            for id in "234567":
                assert await values(reader, id) == second


async def test_a_channel_without_a_value_stays_without_one(saver: Saver) -> None:
    versions = {"unset": 3, "empty": 3, "gone": 3}
    await put(saver, "1", {"gone": 1}, versions={"gone": 2})
    await put(saver, "2", {"empty": None}, parent="1", versions=versions)

    found = (await get(saver)).checkpoint
    assert found["channel_values"] == {"empty": None}
    assert found["channel_versions"] == versions


async def test_branches_with_versions_of_the_saver_s_own_keep_their_values(
    saver: Saver, other: Saver
) -> None:
    """Two branches of one parent count on to the same version."""
    version = saver.get_next_version(None)
    await put(saver, "1", {"x": ["root" * 200]}, versions={"x": version})
    after = saver.get_next_version(version)
    assert after == other.get_next_version(version)
    for id, each in (("2", saver), ("3", other), ("4", saver)):
        state = {"x": [f"branch {id}" * 200]}
        await put(each, id, state, parent="1", versions={"x": after})
    for id in "234":
        await put(
            saver,
            f"{id}9",
            {"x": [f"branch {id}" * 200], "y": 1},
            parent=id,
            versions={"x": after, "y": 1},
            new={"y": 1},
        )
    for reader in (saver, other):
        for id in ("2", "3", "4", "29", "39", "49"):
            assert (await values(reader, id))["x"] == [f"branch {id[0]}" * 200]


@pytest.mark.parametrize("v", [1, 2, 3, 4, 5])
async def test_checkpoints_of_any_format_and_any_fields_are_read(
    saver: Saver, v: int
) -> None:
    """Older ones lack fields, newer ones have more."""
    made: Any = checkpoint("1", {"x": 1}, v=v)
    bare: Any = {"v": v, "id": "2", "ts": "2026-01-01T00:00:00+00:00"}
    more: Any = {
        **checkpoint("3", {"x": 1}, v=v),
        "pending_sends": [],
        "of later": {"a": 1},
    }
    for stored in (made, bare, more):
        await saver.aput(at(), stored, meta(), {})
    for stored in (made, bare, more):
        found: Any = (await get(saver, stored["id"])).checkpoint
        assert {name: found[name] for name in stored} == stored
        assert found["channel_values"] == stored.get("channel_values", {})
        assert found["channel_versions"] == stored.get("channel_versions", {})
    assert len(await listed(saver, at())) == 3
