"""What is put is what is read, and never changes afterwards."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any, cast

import pytest
from langgraph.checkpoint.serde.types import TASKS
from langgraph.types import Send
from tests.checkpoint.saving import (
    at,
    checkpoint,
    get,
    id_of,
    ids,
    listed,
    meta,
    parent_of,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import DivergentCheckpointError, InvalidRequestError

FALSY: dict[str, Any] = {
    "none": None,
    "text": "",
    "zero": 0,
    "false": False,
    "list": [],
    "dict": {},
    "bytes": b"",
}


async def test_put_returns_the_config_of_what_it_stored(
    saver: DocumentCheckpointSaver,
) -> None:
    config = await put(saver, "2", {"a": 1}, parent="1", ns="child:1")

    assert config == {
        "configurable": {
            "thread_id": "t",
            "checkpoint_ns": "child:1",
            "checkpoint_id": "2",
        }
    }
    found = await saver.aget_tuple(config)
    assert found is not None
    assert found.config == config
    assert parent_of(found) == "1"
    assert found.checkpoint == checkpoint("2", {"a": 1})
    assert found.pending_writes == []


async def test_a_checkpoint_without_parent_has_no_parent_config(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1")

    assert (await get(saver)).parent_config is None


async def test_falsy_values_are_values(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", FALSY)

    found = await values(saver)

    assert found == FALSY
    assert {k: type(v) for k, v in found.items()} == {
        k: type(v) for k, v in FALSY.items()
    }


async def test_send_comes_back_as_a_send(saver: DocumentCheckpointSaver) -> None:
    sent = [Send("node", {"x": [1, [2, 3]]})]
    await put(saver, "1", {TASKS: sent})

    assert (await values(saver))[TASKS] == sent


@pytest.mark.parametrize("text", ["a\x00b", "\u2028", "é" * 3000, "🦜" * 3000])
async def test_any_text_survives_in_values_and_metadata(
    saver: DocumentCheckpointSaver, text: str
) -> None:
    await put(saver, "1", {"x": text, "y": {"z": [text]}}, m={"deep": text})

    found = await get(saver)

    assert found.checkpoint["channel_values"] == {"x": text, "y": {"z": [text]}}
    assert found.metadata.get("m") == {"deep": text}


async def test_half_a_surrogate_pair_is_given_as_the_serialiser_gives_it(
    saver: DocumentCheckpointSaver,
) -> None:
    text = "half \ud83d"
    given = saver.serde.loads_typed(saver.serde.dumps_typed(text))
    await put(saver, "1", {"x": text}, m=text)
    await saver.aput_writes(at("1"), [("x", text)], "task")

    found = await get(saver)

    assert found.checkpoint["channel_values"] == {"x": given}
    assert found.metadata.get("m") == given
    assert found.pending_writes == [("task", "x", given)]


@pytest.mark.parametrize(
    "versions",
    [
        {"a": 1, "b": 2},
        {"a": 1.5, "b": 2.0},
        {"a": f"{1:032}.0123456789012345", "b": f"{2:032}.9"},
    ],
    ids=["int", "float", "str"],
)
async def test_versions_keep_their_type(
    saver: DocumentCheckpointSaver, versions: dict[str, Any]
) -> None:
    await put(saver, "1", {"a": "x"}, versions=versions)

    found = (await get(saver)).checkpoint["channel_versions"]

    assert found == versions
    assert {k: type(v) for k, v in found.items()} == {
        k: type(v) for k, v in versions.items()
    }


def test_the_next_version_is_of_the_same_form() -> None:
    saver = DocumentCheckpointSaver.__new__(DocumentCheckpointSaver)

    assert saver.get_next_version(None) == 1
    assert saver.get_next_version(4) == 5
    assert saver.get_next_version(4.5) == 5.5
    text = saver.get_next_version(f"{9:032}.123")
    assert text.split(".")[0] == f"{10:032}"
    assert saver.get_next_version(text) > text


async def test_the_same_checkpoint_again_is_accepted(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    state = {"small": {1, 2, 3}, "large": ["x" * 700] * 4}
    for each in (saver, saver, other):
        await put(each, "1", state, step=1)
        await put(each, "2", state, parent="1", step=2)

    assert await ids(saver, at()) == ["2", "1"]
    assert await values(saver, "1") == state


@pytest.mark.parametrize(
    "change",
    [
        {"values": {"a": 2}},
        {"values": {"a": 1, "b": 1}},
        {"values": {}},
        {"parent": "0"},
        {"metadata": {"step": 7}},
        {"versions": {"a": "x"}},
    ],
    ids=str,
)
async def test_other_content_under_a_stored_id_is_refused(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    change: dict[str, Any],
) -> None:
    await put(saver, "1", {"a": 1})
    for each in (saver, other):
        with pytest.raises(DivergentCheckpointError) as caught:
            await put(
                each,
                "1",
                change.get("values", {"a": 1}),
                parent=change.get("parent"),
                versions=change.get("versions"),
                **change.get("metadata", {}),
            )

        assert caught.value.checkpoint_id == "1"
    assert await values(other) == {"a": 1}


async def test_an_older_id_does_not_become_the_latest(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await put(saver, "9", {"a": 9})
    await put(saver, "3", {"a": 3})
    await put(other, "5", {"a": 5}, parent="3")

    for each in (saver, other):
        assert await values(each) == {"a": 9}
        assert await ids(each, at()) == ["9", "5", "3"]


async def test_get_gives_the_checkpoint_alone(saver: DocumentCheckpointSaver) -> None:
    config = await put(saver, "1", {"a": 1})

    assert await saver.aget(config) == checkpoint("1", {"a": 1})
    assert await saver.aget(at(thread="unknown")) is None


async def test_what_is_unknown_is_none_and_leaves_no_trace(
    saver: DocumentCheckpointSaver,
) -> None:
    for n in range(20):
        assert await saver.aget_tuple(at(thread=f"miss {n}")) is None
        assert await saver.aget_tuple(at("1", thread=f"miss {n}")) is None
        assert await listed(saver, at(thread=f"miss {n}")) == []

    assert await listed(saver) == []
    for collection in ("cp", "wr", "bl", "th", "rn"):
        assert await saver.store.ids("default", collection) == []


async def test_state_is_stored_as_it_was_at_the_call(
    saver: DocumentCheckpointSaver,
) -> None:
    state: dict[str, Any] = {"list": ["a"], "deep": {"x": [1]}}
    made, about = checkpoint("1", state), meta(tags=["old"])
    wanted = checkpoint("1", {"list": ["a"], "deep": {"x": [1]}})
    task = asyncio.create_task(saver.aput(at(), made, about, made["channel_versions"]))
    await asyncio.sleep(0)
    state["list"].append("b")
    state["deep"]["x"][0] = 2
    made["channel_values"]["new"] = 1
    made["channel_versions"]["list"] = "changed"
    cast(dict[str, Any], about)["tags"].append("new")
    await task

    found = await get(saver)

    assert found.checkpoint == wanted
    assert found.metadata.get("tags") == ["old"]


async def test_writes_are_stored_as_they_were_at_the_call(
    saver: DocumentCheckpointSaver,
) -> None:
    value = ["a"]
    writes: list[tuple[str, Any]] = [("x", value)]
    task = asyncio.create_task(saver.aput_writes(at("1"), writes, "task"))
    await asyncio.sleep(0)
    value.append("b")
    writes.append(("y", 1))
    await task
    await put(saver, "1")

    assert (await get(saver)).pending_writes == [("task", "x", ["a"])]


async def test_arguments_are_left_alone(saver: DocumentCheckpointSaver) -> None:
    config, made, about = at("0"), checkpoint("1", {"a": [1]}), meta(x=[1])
    versions = dict(made["channel_versions"])
    await saver.aput(config, made, about, versions)

    assert config == at("0")
    assert made == checkpoint("1", {"a": [1]})
    assert about == meta(x=[1])
    assert versions == made["channel_versions"]


async def test_what_is_given_belongs_to_the_caller(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"a": ["x"], "large": ["y" * 2000]}, tags=["m"])
    await saver.aput_writes(at("1"), [("c", ["w"])], "task")
    first = await get(saver)
    first.checkpoint["channel_values"]["a"].append("changed")
    first.checkpoint["channel_values"]["large"].clear()
    first.checkpoint["channel_versions"]["a"] = "changed"
    cast(dict[str, Any], first.metadata)["tags"].clear()
    assert first.pending_writes is not None
    first.pending_writes[0][2].append("changed")

    for again in (await get(saver), await get(saver, "1"), (await listed(saver))[0]):
        assert again.checkpoint == checkpoint("1", {"a": ["x"], "large": ["y" * 2000]})
        assert again.metadata.get("tags") == ["m"]
        assert again.pending_writes == [("task", "c", ["w"])]


async def test_state_that_cannot_be_serialised_leaves_nothing(
    saver: DocumentCheckpointSaver,
) -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError):
        await put(saver, "1", {"good": "x" * 9999, "bad": lock})
    with pytest.raises(TypeError):
        await put(saver, "1", {"good": 1}, bad=lock)
    with pytest.raises(TypeError):
        await saver.aput_writes(at("1"), [("good", 1), ("bad", lock)], "task")

    assert await listed(saver) == []
    for collection in ("cp", "wr", "bl", "th", "rn"):
        assert await saver.store.ids("default", collection) == []
    await put(saver, "1", {"good": 1})
    assert (await get(saver)).pending_writes == []


async def test_a_config_without_thread_is_refused(
    saver: DocumentCheckpointSaver,
) -> None:
    configs: list[Any] = [
        {},
        {"configurable": {}},
        {"configurable": {"thread_id": None}},
    ]
    for config in configs:
        made = checkpoint("1")
        with pytest.raises(InvalidRequestError, match="configurable"):
            await saver.aput(config, made, meta(), {})
        with pytest.raises(InvalidRequestError, match="configurable"):
            await saver.aget_tuple(config)
        with pytest.raises(InvalidRequestError, match="configurable"):
            await saver.aput_writes(config, [("a", 1)], "t")
    with pytest.raises(InvalidRequestError, match="thread_id"):
        await saver.aget_tuple(at(thread=[1]))
    with pytest.raises(InvalidRequestError, match="checkpoint_id"):
        await saver.aput_writes(at(), [("a", 1)], "task")
    with pytest.raises(InvalidRequestError, match="no id"):
        await saver.aput(at(), checkpoint(""), meta(), {})


async def test_an_int_is_the_thread_of_its_decimal_text(
    saver: DocumentCheckpointSaver,
) -> None:
    config = await put(saver, "1", {"a": 1}, thread=42)

    assert config["configurable"]["thread_id"] == "42"
    assert await values(saver, thread="42") == {"a": 1}
    assert await values(saver, thread=42) == {"a": 1}
    await saver.adelete_thread(42)  # type: ignore[arg-type]
    assert await listed(saver) == []


async def test_a_uuid_is_the_thread_of_its_text(
    saver: DocumentCheckpointSaver,
) -> None:
    thread = uuid.UUID(int=7)
    config = await put(saver, "1", {"a": 1}, thread=thread)

    assert config["configurable"]["thread_id"] == str(thread)
    assert await values(saver, thread=thread) == {"a": 1}
    assert await values(saver, thread=str(thread)) == {"a": 1}


async def test_no_namespace_means_the_root(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", {"a": "root"})
    await put(saver, "2", {"a": "child"}, ns="child:1")

    for ns in (None, ""):
        found = await saver.aget_tuple(at(ns=ns))
        assert found is not None
        assert id_of(found) == "1"
        assert found.config["configurable"]["checkpoint_ns"] == ""
    assert await ids(saver, at()) == ["1"]
    assert await ids(saver, at(ns=None)) == ["2", "1"]


async def test_old_checkpoints_get_the_sends_of_their_parent(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"a": 1}, v=1)
    await saver.aput_writes(
        at("1"), [("a", 1), (TASKS, Send("x", 1)), (TASKS, Send("y", 2))], "t1", "~2"
    )
    await saver.aput_writes(at("1"), [(TASKS, Send("z", 3))], "t0", "~1")
    await put(saver, "2", {"a": 2}, parent="1", v=3, versions={"a": 5})

    found = [await get(saver), await get(saver, "2"), (await listed(saver, at()))[0]]

    for each in found:
        assert each.checkpoint["channel_values"][TASKS] == [
            Send("z", 3),
            Send("x", 1),
            Send("y", 2),
        ]
        assert each.checkpoint["channel_versions"] == {"a": 5, TASKS: 5}
    assert TASKS not in await values(saver, "1")
