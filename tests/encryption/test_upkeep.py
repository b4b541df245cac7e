"""What keeps a bucket in order works on what it cannot read from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.checkpoint.saving import OpenSaver, at, get, ids, listed, put, values
from tests.encryption.keys import NEW, OLD
from tests.encryption.stored import changed, documents, everything, fill
from tests.patience import PATIENCE

from jskv_saver import Encryption, Retention
from jskv_saver.checkpoint.writes import SPILL
from jskv_saver.errors import LeaseHeldError


async def _grow(saver: Any, thread: str, count: int = 5) -> dict[str, Any]:
    state: dict[str, Any] = {"log": "begin " * 2_000}
    for n in range(count):
        state = {"log": state["log"] + f"line {n} " * 100}
        parent = str(n - 1) if n else None
        await put(saver, str(n), state, parent=parent, thread=thread, run_id=f"r{n}")
        config = at(str(n), thread=thread)
        await saver.aput_writes(config, [("log", "w" * (SPILL + 1))], "task")
    return state


async def test_prune_keeps_what_the_latest_needs(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        state = await _grow(saver, "t")
        before = len(await documents(saver.store))
        await saver.aprune(["t"])
        assert await ids(saver, at()) == ["4"]
        assert len(await documents(saver.store)) < before
        async with open_saver() as reader:
            assert await values(reader) == state
            await put(reader, "5", state | {"more": 1}, parent="4", new={"more": 1})
            assert await values(saver) == state | {"more": 1}


async def test_runs_are_removed_with_their_writes(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        state = await _grow(saver, "t")
        await saver.adelete_for_runs(["r0", "r1", "r3"])
        assert await ids(saver, at()) == ["4", "2"]
        assert await values(saver) == state
        stored = await documents(saver.store)
        assert {path[3] for kind, path in stored if kind == "wr"} == {"2", "4"}


async def test_repair_removes_what_nothing_refers_to(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        state = await _grow(saver, "t")
        expected = {key for key in await documents(saver.store) if key[0] != "cp"}
        store = saver._partition.store
        scope = ("default", "t", "")
        await store.put("default", "bl", (*scope, "00" * 16), {"b": b"litter"})
        await store.put("default", "wr", (*scope, "4", "task", "dead"), {"b": b"x"})
        await saver.arepair(["t"])
        found = {key for key in await documents(saver.store) if key[0] != "cp"}
        assert found == expected
        assert await values(saver) == state
        assert len(await everything(saver)) == 5


async def test_a_thread_is_erased_without_a_rest(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await fill(saver)
        await saver.aadmit(at(), "please", request_id="1")
        await saver.apin("t")
        await fill(saver, "u")
        await saver.adelete_thread("t")
        assert {path[1] for _, path in await documents(saver.store)} == {"u"}
        assert len(await everything(saver, "u")) == 4


async def test_a_copy_is_encrypted_anew(open_saver: OpenSaver) -> None:
    """For its own names, with its own key, and with the one that is current."""
    async with open_saver(encryption=Encryption(OLD)) as saver:
        await fill(saver)
        expected = await everything(saver)
    async with open_saver(encryption=Encryption([NEW, OLD])) as saver:
        await saver.acopy_thread("t", "u")
        await saver.acopy_thread("t", "u")
        stored = await documents(saver.store)
        of = {
            thread: [
                # Key id, nonce and what follows.
                data["sealed"][1:37]
                for (kind, path), data in stored.items()
                if path[1] == thread and kind in ("cp", "bl", "wr")
            ]
            for thread in "tu"
        }
        assert min(len(of["t"]), len(of["u"])) > 8
        new = bytes.fromhex(Encryption(NEW).key_ids[0])
        assert {sealed[:8] for sealed in of["u"]} == {new}
        assert not {*of["t"]} & {*of["u"]}
        parts = {path[1:] for kind, path in stored if kind == "bl"}
        assert len({path[-1] for path in parts}) == len(parts)
        await saver.adelete_thread("t")
    async with open_saver() as saver:
        copied = await everything(saver, "u")
        assert [
            (found.checkpoint, found.metadata, found.pending_writes) for found in copied
        ] == [
            (found.checkpoint, found.metadata, found.pending_writes)
            for found in expected
        ]


async def test_retention_and_pins_need_no_more(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        state = await _grow(saver, "t")
        await _grow(saver, "u")
        await saver.apin("u")
        assert await saver.apinned() == {"u": ("pin",)}
        await saver.aenforce_retention(Retention(keep_last=2))
        assert await ids(saver, at()) == ["4", "3"]
        assert len(await ids(saver, at(thread="u"))) == 5
        assert await values(saver) == state


async def test_requests_are_kept_and_found(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        admitted = await saver.aadmit(at(), {"ask": "secret"}, request_id="1")
        assert admitted.new
        async with open_saver() as other:
            again = await other.aadmit(at(), {"ask": "secret"}, request_id="1")
            assert not again.new
            (found,) = await other.aadmitted()
            assert found.request == {"ask": "secret"}
            await put(other, "1", {"x": 1})
            assert await other.aadmitted() == []


async def test_a_thread_is_watched(open_saver: OpenSaver) -> None:
    async with open_saver() as saver, open_saver() as other:
        async with saver.watch("t") as watch, asyncio.timeout(PATIENCE):
            events = aiter(watch)
            await put(other, "1", {"x": 1}, about="secret")
            await other.aput_writes(at("1"), [("x", 2)], "task")
            found = [await anext(events), await anext(events)]
        assert [event.kind for event in found] == ["checkpoint", "writes"]
        assert (found[0].metadata or {}).get("about") == "secret"


async def test_a_lease_is_held_and_seen_by_others(open_saver: OpenSaver) -> None:
    async with open_saver() as saver, open_saver() as other:
        await put(saver, "1", {"x": 1})
        async with saver.lease("t", ttl=30):
            await put(saver, "2", {"x": 2}, parent="1")
            with pytest.raises(LeaseHeldError):
                async with other.lease("t", ttl=30, wait=0):
                    pass
        async with other.lease("t", ttl=30, wait=0):
            assert await values(other) == {"x": 2}
        assert {
            name
            for (kind, _), data in (await documents(saver.store)).items()
            for name in data
            if kind == "ls"
        } <= {"sealed"}


@pytest.mark.parametrize("first", ["prune", "repair"])
async def test_removals_beside_a_writer_leave_all_whole(
    open_saver: OpenSaver, first: str
) -> None:
    async with open_saver() as writer, open_saver() as remover:
        state = await _grow(writer, "t", 2)

        async def write() -> None:
            nonlocal state
            for n in range(2, 20):
                state = {"log": state["log"] + f"line {n} " * 100}
                await put(writer, f"{n:02}", state, parent=f"{n - 1:02}", thread="t")

        async def remove() -> None:
            for _ in range(6):
                if first == "prune":
                    await remover.aprune(["t"])
                await remover.arepair(["t"])

        await asyncio.gather(write(), remove())
        async with open_saver() as reader:
            latest = await get(reader)
            assert latest.checkpoint["channel_values"] == state
            for found in await listed(reader, at()):
                assert found.checkpoint["channel_values"]["log"] in state["log"]


async def test_what_is_verified_is_whole_under_any_of_its_keys(
    open_saver: OpenSaver,
) -> None:
    """Parts are named with the key that was current when they were written."""
    stages = [
        None,
        Encryption(OLD, accept_plaintext=True),
        Encryption([NEW, OLD], accept_plaintext=True),
    ]
    for n, encryption in enumerate(stages):
        async with open_saver(encryption=encryption) as saver:
            # Another text each time, so that each writes parts of its own.
            await fill(saver, f"t{n}", f"about {n}")
            state = await values(saver, "2", thread="t0")
            more = state | {f"huge {n}": f"{n} more " * 90_000}
            await put(saver, f"{n + 3}", more, parent=f"{n + 2}", thread="t0")
            report = await saver.averify(settle=0)
            assert report.findings == ()
            assert report.threads == n + 1
    async with open_saver(encryption=Encryption([NEW, OLD])) as saver:
        report = await saver.averify(["t1", "t2"], settle=0)
        assert report.findings == ()


async def test_what_was_tampered_with_is_found(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await fill(saver)
        stored = await documents(saver.store)
        keys = [key for key in sorted(stored) if key[0] in ("cp", "wr", "bl")]
        for key in keys[::3]:
            bad = changed(stored[key], 40)
            await saver.store.put("default", key[0], key[1], bad)
        report = await saver.averify(settle=0)
        damaged = {each.key for each in report.findings if each.kind == "corrupt"}
        assert damaged == {"/".join((key[0], *key[1])) for key in keys[::3]}
