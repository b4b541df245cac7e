"""The tools that look at threads, and the one that repairs them, mistake no name."""

from __future__ import annotations

import pytest
from tests.checkpoint.saving import at, listed, put
from tests.faults.hostile import NOT_TEXTS, TEXTS

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.inspect import (
    ThreadRef,
    checkpoint_detail,
    escaped,
    find_thread,
    list_threads,
    thread_history,
)
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError


async def test_tools_find_what_was_named_and_nothing_else(
    saver: DocumentCheckpointSaver,
) -> None:
    store = saver.store
    names = list(zip(TEXTS, reversed(TEXTS), strict=True))
    for thread, ns in names:
        await put(saver, "1", {thread: [ns]}, thread=thread, ns=ns, run_id="r")
        await saver.aput_writes(at("1", thread=thread, ns=ns), [(ns, 1)], thread, ns)

    threads = {info.ref.thread: info for info in await list_threads(store, ["default"])}
    assert sorted(threads) == sorted(TEXTS)
    for thread, ns in names:
        ref = await find_thread(store, ["default", "other"], thread)
        assert ref == ThreadRef("default", "default", thread) == threads[thread].ref
        assert threads[thread].checkpoints == 1
        assert threads[thread].namespaces == (ns,)
        (info,) = (await thread_history(store, ref)).checkpoints
        assert (info.ns, info.id, info.writes) == (ns, "1", 1)
        assert list(info.channels) == [thread]
        for detail in (
            await checkpoint_detail(store, ref),
            await checkpoint_detail(store, ref, "1", ns=ns),
        ):
            assert (detail.ns, detail.id) == (ns, "1")
            assert list(detail.channels) == [thread]
            assert [(w.task, w.channel) for w in detail.writes] == [(thread, ns)]
    for absent in ("b", "A*", "thread", "*.*", "default.a"):
        with pytest.raises(DocumentNotFoundError):
            await find_thread(store, ["default"], absent)


async def test_a_repair_of_one_thread_leaves_all_others_alone(
    saver: DocumentCheckpointSaver,
) -> None:
    for thread in TEXTS:
        state = {"x": thread, "large": "l" * 3000}
        await put(saver, "1", state, thread=thread)
        await saver.aput_writes(at("2", thread=thread), [("early", 1)], "task")
    before = await listed(saver)
    keys = {c: await saver.store.ids("default", c) for c in ("cp", "wr", "bl", "th")}
    await saver.arepair(TEXTS[::2])
    assert await listed(saver) == before
    for collection, found in keys.items():
        assert set(await saver.store.ids("default", collection)) >= set(found)
    for bad in NOT_TEXTS:
        with pytest.raises(InvalidRequestError, match="thread"):
            await saver.arepair([bad])


@pytest.mark.parametrize("text", [*TEXTS, *NOT_TEXTS], ids=ascii)
def test_what_is_shown_is_one_line_that_any_terminal_bears(text: str) -> None:
    shown = escaped(text)
    assert shown.isprintable()
    shown.encode()
    assert escaped(text + "\n") != shown
