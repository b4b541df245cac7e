"""Repair: what died half-way goes, all that was acknowledged stays."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, get, ids, put, values

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.errors import InvalidRequestError

TEXT = "x" * 2000
LARGE = "w" * 700_000


@pytest.fixture
def dying(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """The next batch is stored but for its last document; then its writer dies."""
    store = type(saver.store)
    put_many = store.put_many

    async def broken(self: Any, namespace: str, writes: Any, **options: Any) -> Any:
        *parts, _ = writes
        monkeypatch.setattr(store, "put_many", put_many)
        await put_many(self, namespace, parts, **options)
        raise ConnectionAbortedError

    monkeypatch.setattr(store, "put_many", broken)
    return monkeypatch


async def stored(saver: DocumentCheckpointSaver, name: str) -> list[Any]:
    return list(await saver.store.ids("default", name, within=("default", "t")))


async def test_parts_of_a_put_that_died_are_removed(
    saver: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    request: pytest.FixtureRequest,
) -> None:
    await put(saver, "1", {"text": TEXT})
    request.getfixturevalue("dying")
    with pytest.raises(ConnectionAbortedError):
        await put(saver, "2", {"text": TEXT[::-1] + "2"}, parent="1")
    assert len(await stored(saver, "bl")) == 2
    async with open_saver() as other:
        await other.arepair(["t"])
        assert len(await stored(saver, "bl")) == 1
        assert await ids(other, at()) == ["1"]
        assert await values(other) == {"text": TEXT}
        await put(other, "2", {"text": TEXT + "2"}, parent="1")
    assert await values(saver) == {"text": TEXT + "2"}


async def test_parts_without_any_record_are_removed(
    saver: DocumentCheckpointSaver,
) -> None:
    """As a delete leaves them that came between the parts and their record."""
    await saver.store.put("default", "bl", ("default", "t", "", "ab"), {"b": b"x"})
    await saver.arepair(["t"])
    assert await stored(saver, "bl") == []
    assert await saver.aget_tuple(at()) is None
    await put(saver, "1", {"text": TEXT})
    assert await values(saver) == {"text": TEXT}


async def test_parts_of_writes_that_died_are_removed(
    saver: DocumentCheckpointSaver, request: pytest.FixtureRequest
) -> None:
    await put(saver, "1")
    await saver.aput_writes(at("1"), [("c", LARGE)], "whole")
    before = await stored(saver, "wr")
    request.getfixturevalue("dying")
    with pytest.raises(ConnectionAbortedError):
        await saver.aput_writes(at("1"), [("c", LARGE)], "dead")
    assert len(await stored(saver, "wr")) > len(before)
    await saver.arepair(["t"])
    assert await stored(saver, "wr") == before
    assert (await get(saver)).pending_writes == [("whole", "c", LARGE)]


async def test_a_document_of_writes_that_lacks_a_part_is_removed(
    saver: DocumentCheckpointSaver,
) -> None:
    """As its writer leaves it who died after a removal had come in between."""
    await saver.aput_writes(at("1"), [("c", LARGE)], "task")
    *_, part = await stored(saver, "wr")
    await saver.store.delete("default", "wr", part)
    await saver.arepair(["t"])
    assert await stored(saver, "wr") == []
    await put(saver, "1")
    assert (await get(saver)).pending_writes == []


@pytest.mark.parametrize("step", ["_remove", "_remove_writes", "_remove_parts"])
async def test_a_removal_that_died_is_finished(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async def crash(*_: Any) -> None:
        raise ConnectionAbortedError

    await put(saver, "1", {"text": TEXT}, run_id="r1")
    await put(saver, "2", {"text": TEXT[::-1] + "2"}, parent="1", run_id="r2")
    await saver.aput_writes(at("2"), [("c", LARGE)], "task")
    with monkeypatch.context() as patched:
        patched.setattr(Pruner, step, crash)
        with pytest.raises(ConnectionAbortedError):
            await saver.adelete_for_runs(["r2"])
    await saver.arepair(["t"])
    assert await ids(saver, at()) == ["1"]
    assert await stored(saver, "wr") == []
    assert len(await stored(saver, "bl")) == 1
    assert await values(saver) == {"text": TEXT}


async def test_writes_before_their_checkpoint_stay(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"text": TEXT})
    await saver.aput_writes(at("2"), [("c", LARGE)], "early")
    await saver.store.put("default", "bl", ("default", "t", "", "ab"), {"b": b"x"})
    await saver.arepair(["t"])
    await put(saver, "2", {"text": TEXT}, parent="1")
    assert (await get(saver)).pending_writes == [("early", "c", LARGE)]
    assert await ids(saver, at()) == ["2", "1"]


async def test_where_nothing_is_left_nothing_is_written(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", {"text": TEXT})
    await put(saver, "2", {"text": TEXT + "2"}, parent="1")
    await saver.aput_writes(at("2"), [("c", LARGE)], "task")
    newest: dict[str, Any] = {
        "order_by": ("@version", "desc"),
        "within": ("default", "t"),
    }
    before = [
        (await saver.store.find("default", name, **newest)).items
        for name in ("cp", "bl", "wr")
    ]
    await saver.arepair(["t", "unknown"])
    after = [
        (await saver.store.find("default", name, **newest)).items
        for name in ("cp", "bl", "wr")
    ]
    assert after == before
    assert await stored(saver, "th") != []


async def test_every_namespace_of_a_thread_is_repaired(
    saver: DocumentCheckpointSaver,
) -> None:
    for ns in ("", "child|1"):
        await put(saver, "1", {"text": TEXT}, ns=ns)
        await saver.store.put("default", "bl", ("default", "t", ns, "ab"), {"b": b"x"})
    await saver.arepair(["t"])
    assert len(await stored(saver, "bl")) == 2
    assert await values(saver, ns="child|1") == {"text": TEXT}


async def test_one_thread_as_text_is_refused(saver: DocumentCheckpointSaver) -> None:
    with pytest.raises(InvalidRequestError):
        await saver.arepair("t")


def test_the_blocking_face_repairs_too(open_saver: OpenSaver) -> None:
    with open_saver() as saver:
        saver.put_writes(at("1"), [("c", LARGE)], "task")
        assert saver.get_tuple(at()) is None
        saver.repair(["t"])
        with pytest.raises(InvalidRequestError):
            saver.repair("t")
