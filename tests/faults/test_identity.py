"""Each hostile text in each place that takes a name: none meets or harms another."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.checkpoint.saving import OpenSaver, at, get, ids, listed, put, values
from tests.faults.hostile import NOT_TEXTS, SEPARATORS, TEXTS
from tests.soak import SOAK

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import InvalidRequestError

Saver = DocumentCheckpointSaver


@pytest.fixture(params=["memory", "jetstream"])
def kind(request: pytest.FixtureRequest) -> str:
    """Keys of a plain bucket are the same: see test_elsewhere.py."""
    kind: str = request.param
    return kind


async def test_threads_stay_apart(saver: Saver) -> None:
    for thread in TEXTS:
        await put(saver, "1", {"x": thread}, thread=thread)
        await put(saver, "2", {"x": [thread]}, parent="1", thread=thread)
        await saver.aput_writes(at("2", thread=thread), [("c", thread)], "task")
    left = set(TEXTS)
    for n, thread in enumerate(TEXTS):
        found = await get(saver, thread=thread)
        assert found.config == at("2", thread=thread)
        assert found.checkpoint["channel_values"] == {"x": [thread]}
        assert found.pending_writes == [("task", "c", thread)]
        if n % 3 == 0:
            await saver.aprune([thread])
            assert await ids(saver, at(thread=thread)) == ["2"]
        elif n % 3 == 1:
            await saver.adelete_thread(thread)
            left.remove(thread)
            assert await ids(saver, at(thread=thread)) == []
        else:
            await saver.aprune([thread], strategy="delete")
            left.remove(thread)
    rows = await listed(saver)
    assert sorted(row.config["configurable"]["thread_id"] for row in rows) == sorted(
        left
    )


async def test_namespaces_of_a_thread_stay_apart(saver: Saver) -> None:
    for ns in TEXTS:
        await put(saver, "1", {"x": ns}, ns=ns)
        await saver.aput_writes(at("1", ns=ns), [("c", ns)], "task")
    for ns in TEXTS:
        (found,) = await listed(saver, at(ns=ns))
        assert found == await get(saver, ns=ns)
        assert found.config == at("1", ns=ns)
        assert found.checkpoint["channel_values"] == {"x": ns}
        assert found.pending_writes == [("task", "c", ns)]
    rows = await listed(saver, at(ns=None))
    assert sorted(
        row.config["configurable"]["checkpoint_ns"] for row in rows
    ) == sorted(TEXTS)


async def test_checkpoints_stay_apart_and_are_sorted_as_text(saver: Saver) -> None:
    names = [text for text in TEXTS if text]
    for name in names:
        await put(saver, name, {"x": name})
        await saver.aput_writes(at(name), [("c", name)], "task")
    for name in names:
        found = await get(saver, name)
        assert found.checkpoint["channel_values"] == {"x": name}
        assert found.pending_writes == [("task", "c", name)]
    ascending = sorted(names)
    assert await ids(saver, at()) == ascending[::-1]
    for n, name in enumerate(ascending[::6]):
        assert await ids(saver, at(), before=at(name)) == ascending[: 6 * n][::-1]
    assert await values(saver) == {"x": max(names)}


async def test_tasks_paths_and_channels_stay_apart(saver: Saver) -> None:
    await put(saver, "1", {text: [text] for text in TEXTS})
    for text, path in zip(TEXTS, reversed(TEXTS), strict=True):
        await saver.aput_writes(at("1"), [(text, [text]), (path, [path])], text, path)

    (found,) = await listed(saver, at())
    assert found == await get(saver)
    assert found.checkpoint["channel_values"] == {text: [text] for text in TEXTS}
    assert found.pending_writes == [
        (task, channel, [channel])
        for path, task in sorted(zip(reversed(TEXTS), TEXTS, strict=True))
        for channel in (task, path)
    ]


async def test_runs_stay_apart(saver: Saver) -> None:
    runs = [text for text in TEXTS if text]
    for n, run in enumerate(runs):
        await put(saver, "1", {"x": run}, thread=f"{n % 7}", ns=f"{n}", run_id=run)
    left = set(runs)
    for run in runs[::2]:
        found = await listed(saver, filter={"run_id": run})
        assert [row.checkpoint["channel_values"] for row in found] == [{"x": run}]
        await saver.adelete_for_runs([run])
        left.remove(run)
        rows = await listed(saver)
        assert {row.checkpoint["channel_values"]["x"] for row in rows} == left
    await saver.adelete_for_runs(["", *runs[::2], "unknown"])
    assert len(await listed(saver)) == len(left)


@pytest.mark.parametrize("who", ["agent_id", "namespace"])
async def test_agents_and_owners_stay_apart(open_saver: OpenSaver, who: str) -> None:
    names = [text for text in TEXTS if text and len(text) <= 128]
    async with open_saver() as first:

        def of(name: str) -> Saver:
            return Saver(first.store, **{who: name})  # type: ignore[arg-type]

        for name in names:
            await put(of(name), "1", {"x": name}, run_id="r")
            await of(name).aput_writes(at("1"), [("c", name)], "task")
        for name in names:
            (found,) = await listed(of(name))
            assert found == await get(of(name))
            assert found.checkpoint["channel_values"] == {"x": name}
            assert found.pending_writes == [("task", "c", name)]
        for n, name in enumerate(names[::2]):
            if n % 2:
                await of(name).adelete_thread("t")
            else:
                await of(name).adelete_for_runs(["r"])
            assert await listed(of(name)) == []
        for name in names[1::2]:
            assert await values(of(name)) == {"x": name}


async def test_metadata_of_any_name_and_value_is_filtered_literally(
    saver: Saver,
) -> None:
    rows: dict[str, dict[str, Any]] = {
        f"{n:03}": {text: "key", "value": text, "n": {text: [text]}}
        for n, text in enumerate(TEXTS)
    }
    for name, about in rows.items():
        await put(saver, name, **about)
    for name in [*rows][:: 1 if SOAK else 4]:
        assert await ids(saver, at(), filter=rows[name]) == [name]
    for text in TEXTS[::8]:
        assert len(await ids(saver, at(), filter={text: "key"})) == 1
        assert len(await ids(saver, at(), filter={"value": text})) == 1
        assert await ids(saver, at(), filter={text: text}) == []
    assert await ids(saver, at(), filter={"n": "key"}) == []


async def test_names_that_are_one_text_when_joined_stay_apart(saver: Saver) -> None:
    for n, between in enumerate(SEPARATORS):
        await _joined(Saver(saver.store, agent_id=f"{n}"), between)


async def _joined(saver: Saver, between: str) -> None:
    """Wherever the border is: two places of one text, or of two."""
    whole = f"a{between}b{between}c"
    one, other = f"a{between}b", f"b{between}c"
    cuts = [("a", other), (one, "c"), (whole, ""), ("", whole), ("b", "b")]
    for left, right in cuts:
        value = [left, right]
        await put(saver, "1", {"x": value}, thread=left, ns=right)
        await saver.aput_writes(at("1", thread="m"), [(right, value)], left, right)
        if left:
            await put(saver, left, {"x": value}, thread="n", ns=right)
        if right:
            config = at(right, thread=f"{left}w")
            await saver.aput_writes(config, [("x", value)], left)
            await put(saver, right, thread=f"{left}w")
    await put(saver, "1", thread="m")

    for left, right in cuts:
        value = [left, right]
        assert await values(saver, thread=left, ns=right) == {"x": value}
        if left:
            assert await values(saver, left, thread="n", ns=right) == {"x": value}
        if right:
            pending = (await get(saver, right, thread=f"{left}w")).pending_writes
            assert pending == [(left, "x", value)]
    assert (await get(saver, thread="m")).pending_writes == [
        (left, right, [left, right])
        for right, left in sorted((right, left) for left, right in cuts)
    ]
    assert len(await listed(saver, at(thread="n", ns=None))) == len(cuts) - 1


CALLS: Mapping[str, Callable[[Saver, str], Awaitable[Any]]] = {
    "put, thread": lambda s, text: put(s, "1", thread=text),
    "put, ns": lambda s, text: put(s, "1", ns=text),
    "put, parent": lambda s, text: put(s, "1", parent=text),
    "put, id": lambda s, text: put(s, text, {"x": "y" * 9000}, run_id="r"),
    "writes, thread": lambda s, t: s.aput_writes(at("1", thread=t), [("a", 1)], "t"),
    "writes, ns": lambda s, t: s.aput_writes(at("1", ns=t), [("a", 1)], "t"),
    "writes, id": lambda s, text: s.aput_writes(at(text), [("a", 1)], "t"),
    "writes, task": lambda s, text: s.aput_writes(at("1"), [("a", 1)], text),
    "get, thread": lambda s, text: s.aget_tuple(at(thread=text)),
    "get, ns": lambda s, text: s.aget_tuple(at(ns=text)),
    "get, id": lambda s, text: s.aget_tuple(at(text)),
    "list, thread": lambda s, text: listed(s, at(thread=text)),
    "list, ns": lambda s, text: listed(s, at(ns=text)),
    "list, id": lambda s, text: listed(s, at(text)),
    "list, before": lambda s, text: listed(s, at(), before=at(text)),
    "delete": lambda s, text: s.adelete_thread(text),
    "runs": lambda s, text: s.adelete_for_runs(["r", text]),
    "copy, source": lambda s, text: s.acopy_thread(text, "new"),
    "copy, target": lambda s, text: s.acopy_thread("kept", text),
    "prune": lambda s, text: s.aprune(["kept", text]),
    "prune all": lambda s, text: s.aprune(["kept", text], strategy="delete"),
    "history": lambda s, text: s.aget_delta_channel_history(
        config=at("1", thread=text), channels=["x"]
    ),
}


async def test_what_no_id_can_be_is_refused_before_anything_happens(
    saver: Saver,
) -> None:
    for n in "12":
        await put(saver, n, {"x": n}, thread="kept", run_id="r")
    everything = await listed(saver)
    for (name, call), text in itertools.product(CALLS.items(), NOT_TEXTS):
        with pytest.raises(InvalidRequestError) as caught:
            await call(saver, text)
        place = {"thread": "thread_id", "ns": "checkpoint_ns", "id": "checkpoint_id"}
        _, _, what = name.partition(", ")
        assert place.get(what, "") in str(caught.value)
        str(caught.value).encode()  # it can be printed and logged
    assert await listed(saver) == everything
    for collection in ("cp", "wr", "bl", "th", "rn"):
        for path in await saver.store.ids("default", collection):
            assert path[1] == "kept"


@pytest.mark.parametrize("text", NOT_TEXTS, ids=ascii)
async def test_what_no_id_can_be_may_stand_where_any_text_can(
    saver: Saver, text: str
) -> None:
    """What is serialised comes back as LangGraph's serialiser gives it."""
    given = saver.serde.loads_typed(saver.serde.dumps_typed(text))
    state: dict[str, Any] = {text: text, "m": [HumanMessage(text, id="1")]}
    versions = dict.fromkeys(state, text)
    await put(saver, "1", state, versions=versions, about=[text])
    writes: list[tuple[str, Any]] = [(text, text), *state.items()]
    await saver.aput_writes(at("1"), writes, "task", text)

    (found,) = await listed(saver, at(), filter={"about": [given]})
    wanted = {text: given, "m": [HumanMessage(given, id="1")]}
    assert found == await get(saver)
    assert found.checkpoint["channel_values"] == wanted
    assert found.checkpoint["channel_versions"] == versions
    assert found.pending_writes == [
        ("task", *write) for write in [(text, given), *wanted.items()]
    ]


async def test_a_key_that_the_serialiser_refuses_leaves_nothing(saver: Saver) -> None:
    bad: dict[str, Any] = {"half \ud83d": 1}
    with pytest.raises(TypeError):
        await put(saver, "1", {"good": "x" * 9000, "bad": bad})
    with pytest.raises(TypeError):
        await put(saver, "1", {"good": "x" * 9000}, **bad)
    with pytest.raises(TypeError):
        await saver.aput_writes(at("1"), [("good", 1), ("bad", bad)], "task")
    for collection in ("cp", "wr", "bl", "th", "rn"):
        assert await saver.store.ids("default", collection) == []


NOT_IDS = [None, True, 1.5, b"t", ["t"], ("t",), {"t": 1}, object()]


async def test_what_is_no_text_names_no_thread_and_never_all(saver: Saver) -> None:
    await put(saver, "1", {"x": 1}, thread="kept", run_id="r")
    await put(saver, "1", {"x": 1}, thread="", run_id="r")
    for bad in NOT_IDS:
        thread: Any = bad
        for call in (
            lambda t: saver.adelete_thread(t),
            lambda t: saver.aprune([t]),
            lambda t: saver.aprune([t], strategy="delete"),
            lambda t: saver.adelete_for_runs([t]),
            lambda t: saver.acopy_thread(t, "x"),
            lambda t: saver.acopy_thread("kept", t),
            lambda t: put(saver, "1", thread=t),
            lambda t: saver.aget_tuple(at(thread=t)),
            lambda t: listed(saver, at(thread=t)),
        ):
            with pytest.raises(InvalidRequestError):
                await call(thread)
        if bad is not None:
            for config in (at(ns=thread), at(thread)):
                with pytest.raises(InvalidRequestError):
                    await saver.aget_tuple(config)
                with pytest.raises(InvalidRequestError):
                    await listed(saver, config)
    await saver.adelete_for_runs([""])
    assert len(await listed(saver)) == 2
    await saver.aprune([""])
    await saver.acopy_thread("", "copy")
    assert await values(saver, thread="copy") == {"x": 1}
    await saver.adelete_thread("")
    assert len(await listed(saver)) == 2
    assert await values(saver, thread="kept") == {"x": 1}


@pytest.mark.parametrize("ns", [None, ""])
@pytest.mark.parametrize("id", [None, ""])
async def test_an_id_that_is_not_given_is_the_latest_of_the_root(
    saver: Saver, ns: str | None, id: str | None
) -> None:
    """Never the text `None`, never that of another namespace."""
    await put(saver, "1", {"x": "root"})
    await put(saver, "9", {"x": "child"}, ns="child:1")
    for name in ("None", "__empty__", "null", "undefined"):
        await put(saver, name, {"x": name}, thread="words")
        await put(saver, "1", {"x": name}, ns=name)
    config = at(ns="")
    config["configurable"] |= {"checkpoint_ns": ns, "checkpoint_id": id}

    found = await saver.aget_tuple(config)
    assert found is not None
    assert found.config == at("1")
    assert found.checkpoint["channel_values"] == {"x": "root"}
    assert await saver.aget(config) == found.checkpoint
    assert await ids(saver, at("None", thread="words")) == ["None"]
    assert await values(saver, "None", thread="words") == {"x": "None"}
    assert (await saver.aget_tuple(at("None"))) is None
    wanted = ["1"] if ns == "" else ["9", "1", "1", "1", "1", "1"]
    assert await ids(saver, config) == wanted
    assert await ids(saver, at(), before=config) == ["1"]
