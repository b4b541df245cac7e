"""What is damaged or gone is an error that names it, never a partial state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    ids,
    listed,
    put,
    values,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import CorruptDocumentError

LARGE = "l" * 5000


async def _thread(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", {"x": LARGE, "own": "1" * 900})
    await put(
        saver,
        "2",
        {"x": LARGE + "more" * 90, "own": "2" * 900},
        parent="1",
        about="m" * 40_000,
    )
    await saver.aput_writes(at("2"), [("a", "w" * 600_000)], "task")


async def _everything_else_works(saver: DocumentCheckpointSaver) -> None:
    await put(saver, "1", {"x": "other"}, thread="other")
    assert await values(saver, thread="other") == {"x": "other"}
    await saver.adelete_thread("t")
    assert await listed(saver, at(ns=None)) == []
    await _thread(saver)
    assert await ids(saver, at()) == ["2", "1"]


async def _error(call: Any) -> CorruptDocumentError | None:
    try:
        await call()
    except CorruptDocumentError as exc:
        return exc
    return None


async def test_a_part_that_is_gone_is_an_error_that_names_it(
    saver: DocumentCheckpointSaver, open_saver: OpenSaver
) -> None:
    await _thread(saver)
    found = await saver.store.ids("default", "bl")
    for part in found:
        document = await saver.store.get("default", "bl", part)
        await saver.store.delete("default", "bl", part)
        async with open_saver() as fresh:
            calls: list[Any] = [
                lambda: get(fresh),
                lambda: get(fresh, "2"),
                lambda: get(fresh, "1"),
                lambda: listed(fresh, at()),
                lambda: listed(fresh, at(), filter={"about": "x"}),
            ]
            errors = [await _error(call) for call in calls]
        assert {e.key for e in errors if e} == {"/".join(("bl", *part))}
        assert len([e for e in errors if e]) >= 2
        await saver.store.put("default", "bl", part, document.data)
    assert await ids(saver, at()) == ["2", "1"]
    await _everything_else_works(saver)


async def test_a_part_of_writes_that_is_gone_is_an_error_that_names_it(
    saver: DocumentCheckpointSaver,
) -> None:
    await _thread(saver)
    part = next(p for p in await saver.store.ids("default", "wr") if len(p) == 6)
    await saver.store.delete("default", "wr", part)

    calls: list[Any] = [lambda: get(saver), lambda: listed(saver, at())]
    for call in calls:
        with pytest.raises(CorruptDocumentError) as caught:
            await call()
        assert caught.value.key == "/".join(("wr", *part))
    assert (await get(saver, "1")).pending_writes == []
    await _everything_else_works(saver)


@pytest.mark.parametrize(
    ("collection", "field", "content"),
    [
        ("cp", "l", b"{}"),
        ("cp", "l", b"not json"),
        ("cp", "l", b"\xff"),
        ("cp", "d", None),
        ("wr", "l", b"[]"),
        ("wr", "l", b'{"w": []}'),
        ("wr", "l", None),
    ],
)
async def test_a_document_that_is_not_readable_is_an_error_that_names_it(
    saver: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    collection: str,
    field: str,
    content: bytes | None,
) -> None:
    await _thread(saver)
    id: tuple[str, ...] = ("default", "t", "", "2")
    if collection == "wr":
        id = (*id, "task")
    document = await saver.store.get("default", collection, id)
    data = {k: v for k, v in document.data.items() if k != field}
    if content is not None:
        data[field] = content
    await saver.store.put("default", collection, id, data)

    async with open_saver() as fresh:
        calls: list[Any] = [
            lambda: get(fresh),
            lambda: get(fresh, "2"),
            lambda: listed(fresh, at()),
        ]
        for call in calls:
            with pytest.raises(CorruptDocumentError) as caught:
                await call()
            assert caught.value.key == "/".join((collection, *id))
    await _everything_else_works(saver)


async def test_a_record_that_is_gone_is_none_and_the_next_is_the_latest(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    await _thread(saver)
    await saver.store.delete("default", "cp", ("default", "t", "", "2"))

    for each in (saver, other):
        assert await each.aget_tuple(at("2")) is None
        assert await ids(each, at()) == ["1"]
        assert await values(each) == {"x": LARGE, "own": "1" * 900}
    await put(other, "3", {"x": LARGE + "3"}, parent="1")
    await put(saver, "4", {"x": LARGE + "4"}, parent="2")
    assert await ids(saver, at()) == ["4", "3", "1"]
    assert await values(other) == {"x": LARGE + "4"}
