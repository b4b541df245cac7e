"""Two removals and a writer: whoever dies or is slow, what is left is whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, listed, put

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.choosing import children_first
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.errors import DocumentTooLargeError, WriterConflictError


async def test_a_record_that_is_gone_when_it_is_read_leaves_its_child_whole(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "x" * 2000
    await put(saver, "1", {"text": text + "1"})
    await put(saver, "2", {"text": text}, parent="1")
    names, marking = Partition.names, False
    remove_parts = Pruner._remove_parts

    async def overtaken(partition: Partition, scope: Any) -> list[str]:
        nonlocal marking
        found = await names(partition, scope)
        if marking and partition is saver._partition:
            # Between the names and the records: a child of 2, and 2 goes.
            marking = False
            async with open_saver() as writer:
                await writer.aget_tuple(at())
                await put(writer, "3", {"text": text}, parent="2")
            await other.aprune(["t"])
        return found

    async def mark(pruner: Pruner, *what: Any) -> None:
        nonlocal marking
        marking = pruner is saver._pruner
        await remove_parts(pruner, *what)

    monkeypatch.setattr(Partition, "names", overtaken)
    monkeypatch.setattr(Pruner, "_remove_parts", mark)
    await saver.aprune(["t"])
    async with open_saver() as reader:
        found = await reader.aget_tuple(at("3"))
    assert found
    assert found.checkpoint["channel_values"] == {"text": text}


@pytest.mark.parametrize("second", ["prune", "runs"])
async def test_what_a_dead_removal_named_is_spared_if_it_is_needed(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
) -> None:
    counters = {"d": (1, 1)}
    await put(saver, "1", {"d": ["seed"]}, run_id="r1")
    await saver.aput_writes(at("1"), [("d", "write of 1")], "task")
    await put(
        saver, "2", parent="1", run_id="r2", counters_since_delta_snapshot=counters
    )
    await saver.aput_writes(at("2"), [("d", "write of 2")], "task")
    announce = Pruner._announce

    async def continued_then_dead(pruner: Pruner, *what: Any) -> int:
        monkeypatch.setattr(Pruner, "_announce", announce)
        await put(
            other, "3", parent="2", run_id="r3", counters_since_delta_snapshot=counters
        )
        await announce(pruner, *what)
        raise ConnectionAbortedError

    monkeypatch.setattr(Pruner, "_announce", continued_then_dead)
    with pytest.raises(ConnectionAbortedError):
        await saver.adelete_for_runs(["r2"])
    if second == "prune":
        await other.aprune(["t"])
    else:
        await other.adelete_for_runs(["unknown", "r2"])
    history = await saver.aget_delta_channel_history(config=at("3"), channels=["d"])
    assert [write[2] for write in history["d"]["writes"]] == [
        "write of 1",
        "write of 2",
    ]
    assert history["d"]["seed"] == ["seed"]


async def test_a_removal_that_dies_leaves_whole_histories(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = {"d": (1, 1)}
    await put(saver, "0", {"d": ["seed"]}, run_id="r")
    for n in range(1, 6):
        await saver.aput_writes(at(f"{n - 1}"), [("d", n)], "task")
        await put(
            saver,
            f"{n}",
            parent=f"{n - 1}",
            run_id="r",
            counters_since_delta_snapshot=counters,
        )
    delete, left = type(saver.store).delete, 3

    async def dying(
        store: Any, namespace: str, name: Any, *id: Any, **how: Any
    ) -> None:
        nonlocal left
        if name == "cp":
            left -= 1
            if left < 0:
                raise ConnectionAbortedError
        await delete(store, namespace, name, *id, **how)

    with monkeypatch.context() as patched:
        patched.setattr(type(saver.store), "delete", dying)
        with pytest.raises(ConnectionAbortedError):
            await saver.adelete_for_runs(["r"])
    rows = await listed(saver, at())
    assert len(rows) == 3
    for row in rows:
        history = await saver.aget_delta_channel_history(
            config=row.config, channels=["d"]
        )
        assert len(history["d"]["writes"]) == int(row.checkpoint["id"])


async def test_a_record_that_slips_through_a_delete_is_removed(
    saver: DocumentCheckpointSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the server may store it: its fence was looked at before the purge."""
    await put(saver, "1", {"text": "x" * 2000})
    store, path = saver.store, ("default", "t", "", "1")
    record = await store.get("default", "cp", path)
    delete, purges = type(store).delete, 0

    async def late(self: Any, *what: Any, **how: Any) -> None:
        nonlocal purges
        await delete(self, *what, **how)
        purges += 1
        if purges == 1:
            await store.put("default", "cp", path, record.data)

    monkeypatch.setattr(type(store), "delete", late)
    await saver.adelete_thread("t")
    assert purges == 2
    assert await listed(saver, at()) == []
    await put(saver, "1", {"text": "y" * 2000})
    found = await saver.aget_tuple(at())
    assert found
    assert found.checkpoint["channel_values"] == {"text": "y" * 2000}


async def test_what_is_removed_while_it_is_compared_is_put_anew(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = {"text": "x" * 2000}
    await put(saver, "1", run_id="r1")
    await put(saver, "2", state, parent="1", run_id="r2")
    parts = Partition.parts

    async def overtaken(partition: Partition, *what: Any) -> Any:
        monkeypatch.setattr(Partition, "parts", parts)
        await other.adelete_for_runs(["r2"])
        return await parts(partition, *what)

    async with open_saver() as writer:
        monkeypatch.setattr(Partition, "parts", overtaken)
        await put(writer, "2", state, parent="1", run_id="r2")
    found = await saver.aget_tuple(at("2"))
    assert found
    assert found.checkpoint["channel_values"] == state


async def test_what_is_put_again_while_it_is_named_once_more_is_alive(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two removals know it as dead; the second one has read its first life."""
    await put(saver, "1", {"text": "x" * 2000}, run_id="r1")
    await put(saver, "2", {"text": "y" * 2000}, parent="1", run_id="r2")
    await saver.aput_writes(at("2"), [("c", "old")], "task")
    remove, announce = Pruner._remove, Pruner._announce

    async def die(*_: Any) -> None:
        raise ConnectionAbortedError

    async def late(pruner: Pruner, *what: Any) -> int:
        monkeypatch.setattr(Pruner, "_announce", announce)
        async with open_saver() as writer:
            await put(writer, "2", {"text": "y" * 2000}, parent="1", run_id="r2")
            await writer.aput_writes(at("2"), [("c", "new")], "other task")
        return await announce(pruner, *what)

    monkeypatch.setattr(Pruner, "_remove", die)
    with pytest.raises(ConnectionAbortedError):
        await saver.adelete_for_runs(["r2"])
    monkeypatch.setattr(Pruner, "_remove", remove)
    monkeypatch.setattr(Pruner, "_announce", late)
    await other.aprune(["t"])
    for each in (saver, other):
        found = await each.aget_tuple(at())
        assert found
        assert found.checkpoint["id"] == "2"
        assert found.pending_writes == [("other task", "c", "new")]
    await saver.aprune(["t"])
    assert [row.checkpoint["id"] for row in await listed(saver, at())] == ["2"]


@pytest.mark.parametrize("second", ["prune", "repair"])
@pytest.mark.parametrize("dies", [False, True])
async def test_who_removes_it_too_spares_what_was_written_since_it_was_named(
    saver: DocumentCheckpointSaver,
    other: DocumentCheckpointSaver,
    open_saver: OpenSaver,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
    dies: bool,
) -> None:
    """The first one has ended, and what was acknowledged is read by all."""
    await put(saver, "1", {"text": "x" * 9000}, run_id="r1")
    await put(saver, "2", {"text": "y" * 9000}, parent="1", run_id="r2")
    remove, announce = Pruner._remove, Pruner._announce
    async with open_saver() as writer:

        async def late(pruner: Pruner, *what: Any) -> int:
            monkeypatch.setattr(Pruner, "_announce", announce)
            # The second one knows the first life of 2 only; the first one ends.
            await put(writer, "2", {"text": "y" * 9000}, parent="1", run_id="r2")
            await remove(saver._pruner, *claim)
            found = await writer.aget_tuple(at())
            assert found
            assert found.pending_writes == [("task", "c", "new")]
            return await announce(pruner, *what)

        async def die(*_: Any) -> None:
            raise ConnectionAbortedError

        async def slow(_: Pruner, *what: Any) -> None:
            claim.extend(what)
            await writer.aput_writes(at("2"), [("c", "new")], "task")
            if dies:
                monkeypatch.setattr(Pruner, "_remove", die)
                with pytest.raises(ConnectionAbortedError):
                    await other.aprune(["t"])
            monkeypatch.setattr(Pruner, "_remove", remove)
            monkeypatch.setattr(Pruner, "_announce", late)
            await (other.aprune if second == "prune" else other.arepair)(["t"])

        claim: list[Any] = []
        monkeypatch.setattr(Pruner, "_remove", slow)
        await saver.adelete_for_runs(["r2"])
        await other.aprune(["t"])
    for each in (saver, other):
        found = await each.aget_tuple(at())
        assert found
        assert found.checkpoint["id"] == "2"
        assert found.pending_writes == [("task", "c", "new")]


def test_without_delta_channels_all_go_at_once() -> None:
    assert children_first({}) == [[]]


async def test_a_store_that_is_too_small_is_refused_before_anything_is_stored() -> None:
    store = MemoryDocumentStore(max_document_bytes=5000)
    async with DocumentCheckpointSaver(store) as saver:
        with pytest.raises(DocumentTooLargeError, match="max_payload"):
            await put(saver, "1", {"n": "x" * 600})
        assert await saver.aget_tuple(at()) is None


@pytest.mark.parametrize("channels", [30, 60, 200])
async def test_many_small_values_fit_a_store_of_small_documents(channels: int) -> None:
    store = MemoryDocumentStore(max_document_bytes=40_000)
    state = {f"channel{n}": f"{n}" * 200 for n in range(channels)}
    async with DocumentCheckpointSaver(store) as saver:
        await put(saver, "1", state, note="m" * 20_000)
        found = await saver.aget_tuple(at())
    assert found
    assert found.checkpoint["channel_values"] == state


async def test_a_page_of_a_listing_holds_no_more_than_some_megabytes(
    saver: DocumentCheckpointSaver,
) -> None:
    large = "l" * 3_000_000
    for n in range(12):
        await put(
            saver,
            f"{n:02}",
            {"large": large, "n": n},
            parent=f"{n - 1:02}" if n else None,
            versions={"large": 1, "n": n},
            new={"n": n} if n else None,
        )
    listing = saver._listing(at(), None, None, None)
    page = await saver._portal.arun(listing.next_page)
    assert page
    assert 1 <= len(page) <= 6
    assert len(await listed(saver, at())) == 12
    assert len(await listed(saver, at(), limit=7)) == 7


async def test_a_step_whose_clock_is_behind_is_a_conflict_where_that_is_asked(
    open_saver: OpenSaver,
) -> None:
    async with open_saver(on_conflict="raise") as saver:
        await put(saver, "2000")
        with pytest.raises(WriterConflictError) as raised:
            await put(saver, "1500", parent="2000")
        assert raised.value.theirs == "2000"
        await put(saver, "2001", parent="2000")


async def test_a_saver_closes_quietly_when_the_loop_that_opened_it_has_ended() -> None:
    def opened() -> DocumentCheckpointSaver:
        saver = DocumentCheckpointSaver(MemoryDocumentStore())
        asyncio.run(saver.__aenter__())
        return saver

    saver = await asyncio.to_thread(opened)
    await saver.aclose()
    saver.close()


async def test_the_latest_is_found_in_a_bucket_that_was_copied_in_another_order(
    saver: DocumentCheckpointSaver, other: DocumentCheckpointSaver
) -> None:
    """A tool that copies key by key may put the opening epoch last."""
    for id in "12":
        await put(saver, id, {"n": id})
    path = ("default", "t", "", "")
    epoch = await saver.store.get("default", "cp", path)
    await saver.store.put("default", "cp", path, epoch.data)
    for each in (saver, other):
        found = await each.aget_tuple(at())
        assert found
        assert found.checkpoint["channel_values"] == {"n": "2"}
    await put(other, "3", {"n": "3"}, parent="2")
    assert [row.checkpoint["id"] for row in await listed(saver, at())] == list("321")
