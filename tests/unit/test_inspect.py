from __future__ import annotations

import subprocess
import sys
import textwrap
from operator import add
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.inspect import (
    ThreadRef,
    checkpoint_detail,
    find_thread,
    list_threads,
    thread_history,
)
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError

HOSTILE = "\x1b[31mred\n[bold]\u202ex\\ \x07"
SERDE = JsonPlusSerializer()


class State(TypedDict):
    log: Annotated[list[str], add]
    answer: str


def _graph(saver: DocumentCheckpointSaver) -> Any:
    def ask(state: State) -> dict[str, Any]:
        return {"log": ["asked"], "answer": interrupt("really?")}

    builder = StateGraph(State)
    builder.add_node("begin", lambda state: {"log": ["begun " + "x" * 900]})
    builder.add_node("ask", ask)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


async def _run(
    store: MemoryDocumentStore, thread: str, *, resume: bool = False, **saver: Any
) -> None:
    async with DocumentCheckpointSaver(store, **saver) as keeper:
        graph = _graph(keeper)
        config = {"configurable": {"thread_id": thread}}
        await graph.ainvoke({"log": ["input"]}, config)
        if resume:
            await graph.ainvoke(Command(resume="yes"), config)


async def _put(
    store: MemoryDocumentStore, thread: str, values: dict[str, Any], **saver: Any
) -> str:
    async with DocumentCheckpointSaver(store, **saver) as keeper:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = dict.fromkeys(values, 1)
        await keeper.aput(
            {"configurable": {"thread_id": thread, "checkpoint_ns": ""}},
            checkpoint,
            {"source": "loop", "step": 3},
            dict.fromkeys(values, 1),
        )
    return checkpoint["id"]


# -- threads -------------------------------------------------------------------------


async def test_threads_of_all_namespaces_and_agents() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a")
    await _run(store, "b", namespace="app", agent_id="reviewer")
    await _run(store, HOSTILE, namespace="app")

    found = await list_threads(store, ["default", "app"])

    assert [(t.ref.namespace, t.ref.agent, t.ref.thread) for t in found] == [
        ("app", "default", HOSTILE),
        ("app", "reviewer", "b"),
        ("default", "default", "a"),
    ]
    assert {t.checkpoints for t in found} == {3}
    assert {t.namespaces for t in found} == {("",)}
    for thread in found:
        assert thread.newest_id
        UUID(thread.newest_id)
        assert thread.newest_at
        assert thread.newest_at.tzinfo


async def test_threads_of_one_agent_and_a_limit() -> None:
    store = MemoryDocumentStore()
    for name in "abc":
        await _run(store, name, agent_id="x")
    await _run(store, "d", agent_id="y")
    found = await list_threads(store, ["default"], agent="x", limit=2)
    assert [thread.ref.thread for thread in found] == ["c", "b"]
    assert await list_threads(store, ["elsewhere"]) == []
    assert await list_threads(store, []) == []


async def test_a_thread_without_a_checkpoint_is_shown() -> None:
    store = MemoryDocumentStore()
    await store.put("default", "th", ("agent", "begun", ""), {})
    (thread,) = await list_threads(store, ["default"])
    assert thread.ref == ThreadRef("default", "agent", "begun")
    assert (thread.checkpoints, thread.newest_id, thread.newest_at) == (0, None, None)
    assert (await thread_history(store, thread.ref)).checkpoints == ()
    with pytest.raises(DocumentNotFoundError, match="has no checkpoint"):
        await checkpoint_detail(store, thread.ref)


async def test_a_deleted_thread_is_gone() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a")
    async with DocumentCheckpointSaver(store) as saver:
        await saver.adelete_thread("a")
    assert await list_threads(store, ["default"]) == []


async def test_finding_a_thread() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a")
    await _run(store, "a", namespace="app", agent_id="x")
    both = ["default", "app"]
    with pytest.raises(InvalidRequestError, match=r"2 threads 'a'.*'app' agent 'x'"):
        await find_thread(store, both, "a")
    expected = ThreadRef("app", "x", "a")
    assert await find_thread(store, ["app"], "a") == expected
    assert await find_thread(store, both, "a", agent="x") == expected
    with pytest.raises(DocumentNotFoundError, match="no thread 'b'"):
        await find_thread(store, both, "b")


# -- history -------------------------------------------------------------------------


async def test_a_history() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a", resume=True)
    ref = ThreadRef("default", "default", "a")

    history = await thread_history(store, ref)

    rows = history.checkpoints
    assert history.total == len(rows) == 4
    assert [row.id for row in rows] == sorted((r.id for r in rows), reverse=True)
    assert [(row.source, row.step) for row in rows] == [
        ("loop", 2),
        ("loop", 1),
        ("loop", 0),
        ("input", -1),
    ]
    assert [row.parent for row in rows] == [*(row.id for row in rows[1:]), None]
    # The interrupt and its answer, and what each task wrote.
    assert rows[1].writes >= 2
    assert rows[0].writes == 0
    assert rows[1].channels["log"] > 900
    # The long value is stored once: the checkpoint after it refers to it.
    assert rows[1].new_bytes > 900 > rows[0].channels["log"] - rows[0].shared_bytes
    assert rows[1].shared_bytes == 0


async def test_a_limited_history_knows_what_is_shared() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a", resume=True)
    ref = ThreadRef("default", "default", "a")
    whole = await thread_history(store, ref)
    limited = await thread_history(store, ref, limit=1)
    assert limited.checkpoints == whole.checkpoints[:1]
    assert limited.total == whole.total
    elsewhere = await thread_history(store, ref, ns="no such namespace")
    assert elsewhere.checkpoints == ()


# -- one checkpoint ------------------------------------------------------------------


async def test_the_latest_checkpoint() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a")
    ref = ThreadRef("default", "default", "a")
    newest = (await thread_history(store, ref)).checkpoints[0]

    shown = await checkpoint_detail(store, ref)

    assert (shown.id, shown.parent) == (newest.id, newest.parent)
    assert (shown.source, shown.step) == ("loop", 1)
    assert shown.channels["log"].preview.startswith('["input", "begun xxx')
    assert shown.channels["log"].preview.endswith("x…")
    assert shown.channels["log"].parts == 1
    assert '"step": 1' in shown.metadata.preview
    (write,) = [w for w in shown.writes if w.channel == "__interrupt__"]
    assert write.idx < 0
    assert "langgraph.types.Interrupt" in write.value.preview
    assert '"really?"' in write.value.preview
    assert shown == await checkpoint_detail(store, ref, newest.id)


async def test_a_missing_checkpoint_names_what_was_asked_for() -> None:
    store = MemoryDocumentStore()
    await _run(store, "a")
    ref = ThreadRef("default", "default", "a")
    with pytest.raises(DocumentNotFoundError, match=r"no checkpoint .zz. in .* .sub."):
        await checkpoint_detail(store, ref, "zz", ns="sub")


async def test_the_same_id_in_two_namespaces_must_be_told_apart() -> None:
    store = MemoryDocumentStore()
    async with DocumentCheckpointSaver(store) as saver:
        checkpoint = empty_checkpoint()
        for ns in ("", "sub"):
            await saver.aput(
                {"configurable": {"thread_id": "a", "checkpoint_ns": ns}},
                checkpoint,
                {},
                {},
            )
    ref = ThreadRef("default", "default", "a")
    with pytest.raises(InvalidRequestError, match="several checkpoint namespaces"):
        await checkpoint_detail(store, ref, checkpoint["id"])
    assert (await checkpoint_detail(store, ref)).ns == ""
    assert (await checkpoint_detail(store, ref, checkpoint["id"], ns="sub")).ns == "sub"


async def test_encrypted_values_are_said_to_be() -> None:
    store = MemoryDocumentStore()
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    await _put(store, "a", {"secret": "the word"}, serde=serde)
    ref = ThreadRef("default", "default", "a")
    shown = await checkpoint_detail(store, ref)
    assert shown.channels["secret"].encrypted
    assert shown.channels["secret"].preview.startswith("<encrypted with aes")
    assert "word" not in str(shown)
    assert (shown.source, shown.step) == (None, None)
    (row,) = (await thread_history(store, ref)).checkpoints
    assert (row.source, row.step) == (None, None)


async def test_large_values_are_shown_by_their_beginning() -> None:
    store = MemoryDocumentStore()
    await _put(store, "a", {"big": "y" * 3_000_000})
    ref = ThreadRef("default", "default", "a")
    shown = (await checkpoint_detail(store, ref)).channels["big"]
    assert shown.parts > 1
    assert shown.size > 3_000_000
    assert shown.preview.startswith(f"<msgpack, {shown.size} bytes: ")


async def test_large_writes_are_shown_by_their_size() -> None:
    store = MemoryDocumentStore()
    id = await _put(store, "a", {})
    config: Any = {
        "configurable": {"thread_id": "a", "checkpoint_ns": "", "checkpoint_id": id}
    }
    async with DocumentCheckpointSaver(store) as saver:
        await saver.aput_writes(config, [("x", "z" * 600_000)], "task")
    ref = ThreadRef("default", "default", "a")
    (write,) = (await checkpoint_detail(store, ref)).writes
    assert write.value.size > 600_000
    assert write.value.parts == 2
    assert write.value.missing is None
    (row,) = (await thread_history(store, ref)).checkpoints
    assert row.writes == 1
    parts = await store.ids("default", "wr", within=("default", "a", "", id, "task"))
    await store.delete("default", "wr", parts[0])
    size = write.value.size
    (write,) = (await checkpoint_detail(store, ref)).writes
    assert write.value.missing == "/".join(("wr", *parts[0]))
    assert (write.value.size, write.value.preview) == (size, "")
    (row,) = (await thread_history(store, ref)).checkpoints
    assert row.writes == 1


async def test_a_missing_part_is_said_and_the_rest_is_shown() -> None:
    store = MemoryDocumentStore()
    await _put(store, "a", {"big": "y" * 5_000, "small": 1})
    (part,) = await store.ids("default", "bl")
    await store.delete("default", "bl", part)
    ref = ThreadRef("default", "default", "a")
    shown = (await checkpoint_detail(store, ref)).channels
    assert shown["big"].missing == "/".join(("bl", *part))
    assert shown["small"].preview == "1"


def test_no_type_of_the_user_is_imported() -> None:
    """A value whose class's module must not be imported is listed and shown."""
    script = """
    import asyncio, sys, types

    trap = types.ModuleType("trap")
    exec('''
    import dataclasses
    @dataclasses.dataclass
    class Secret:
        word: str
    ''', trap.__dict__)
    trap.Secret.__module__ = "trap"
    sys.modules["trap"] = trap

    from langgraph.checkpoint.base import empty_checkpoint
    from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
    from jskv_saver.checkpoint.inspect import *

    imported = []
    class Forbidden:
        def find_spec(self, name, path=None, target=None):
            if name == "trap":
                imported.append(name)

    async def main():
        store = MemoryDocumentStore()
        async with DocumentCheckpointSaver(store) as saver:
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"it": trap.Secret("hidden")}
            checkpoint["channel_versions"] = {"it": 1}
            config = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
            metadata = {"source": "loop", "step": 0, "who": trap.Secret("x")}
            await saver.aput(config, checkpoint, metadata, {"it": 1})
            config["configurable"]["checkpoint_id"] = checkpoint["id"]
            await saver.aput_writes(config, [("it", trap.Secret("w"))], "task")
        del sys.modules["trap"]
        sys.meta_path.insert(0, Forbidden())
        (thread,) = await list_threads(store, ["default"])
        (row,) = (await thread_history(store, thread.ref)).checkpoints
        shown = await checkpoint_detail(store, thread.ref)
        assert row.source == "loop"
        assert "trap.Secret" in shown.channels["it"].preview
        assert "trap.Secret" in shown.metadata.preview
        assert "trap.Secret" in shown.writes[0].value.preview
        assert not imported
        # The trap works: the saver itself does import.
        async with DocumentCheckpointSaver(store) as saver:
            await saver.aget_tuple({"configurable": {"thread_id": "a"}})
        assert imported

    asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
