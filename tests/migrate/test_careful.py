"""What a migration leaves alone, finds out, and finishes when it is repeated."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import StateGraph
from langgraph.types import Command
from tests.acceptance.graphs import approval
from tests.migrate.conftest import Place
from tests.migrate.threads import ODD, Order, fill, shop, thread

from jskv_saver import Encryption
from jskv_saver.__main__ import main
from jskv_saver.errors import InvalidRequestError, StoreUnavailableError
from jskv_saver.migrate import Report, migrate
from jskv_saver.migrate.places import opened
from jskv_saver.migrate.source import Row, Write, _with_paths, parents_first

Saver = BaseCheckpointSaver[Any]


def compiled(builder: StateGraph[Any, Any, Any, Any], saver: Saver) -> Any:
    return builder.compile(checkpointer=saver)


async def asked(saver: Saver, name: str = "t") -> None:
    """A thread of three checkpoints that waits for an answer."""
    await compiled(approval(), saver).ainvoke({"log": ["go"]}, thread(name))


async def listed(saver: Saver, name: str = "t") -> list[Any]:
    return [(e.config, e.pending_writes) async for e in saver.alist(thread(name))]


def only(report: Report) -> tuple[str, int, str]:
    (found,) = report.threads
    return found.outcome, found.missing, found.why


async def test_a_thread_that_went_on_in_the_target_is_left_alone() -> None:
    source, target = InMemorySaver(), InMemorySaver()
    await asked(source)
    await migrate(source, target, apply=True)
    await compiled(approval(), target).ainvoke(Command(resume="yes"), thread("t"))
    before = await listed(target)
    outcome, _, why = only(await migrate(source, target, apply=True))
    assert outcome == "diverged"
    assert "pending writes in the target that the source has not" in why
    await compiled(approval(), target).ainvoke(Command(resume="yes"), thread("t"))
    outcome, _, why = only(await migrate(source, target, apply=True))
    assert outcome == "diverged"
    assert "is in the target only: the thread went on there" in why
    assert len(await listed(target)) == len(before) + 2


async def test_another_checkpoint_under_the_same_id_is_found() -> None:
    source, target = InMemorySaver(), InMemorySaver()
    checkpoint = empty_checkpoint()
    config = thread("t", checkpoint_ns="")
    await source.aput(config, checkpoint, {"source": "input", "step": -1}, {})
    await target.aput(config, checkpoint, {"source": "input", "step": 7}, {})
    report = await migrate(source, target, apply=True)
    outcome, _, why = only(report)
    assert outcome == "diverged"
    assert "is another one: its metadata are not the same" in why
    assert not report.complete


async def test_what_was_interrupted_is_finished_by_the_next_call(place: Place) -> None:
    source = InMemorySaver()
    threads = await fill(source)
    async with opened(place("bucket"), make=True) as target:

        class Interrupted(Exception):
            pass

        def interrupt(*_: object) -> None:
            raise Interrupted

        with pytest.raises(Interrupted):
            await migrate(source, target, apply=True, on_thread=interrupt)
        counts = (await migrate(source, target)).counts
        assert counts == {"same": 1, "pending": len(threads) - 1}
        # Cancelled at any point of the rest.
        moving = asyncio.create_task(migrate(source, target, apply=True))
        for _ in range(60):
            await asyncio.sleep(0)
        moving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moving
        done = await migrate(source, target, apply=True)
        assert done.complete
        assert (await migrate(source, target)).counts == {"same": len(threads)}


async def test_only_what_is_missing_of_a_thread_is_copied() -> None:
    source, target = InMemorySaver(), InMemorySaver()
    await asked(source)
    await migrate(source, target, apply=True)
    newest, *_ = sorted(target.storage["t"][""], reverse=True)
    del target.storage["t"][""][newest]
    assert only(await migrate(source, target)) == ("pending", 1, "")
    task = next(iter(target.writes.pop(("t", "", newest))))
    assert task
    assert only(await migrate(source, target, apply=True)) == ("copied", 1, "")
    assert await listed(source) == await listed(target)


async def test_an_address_of_nothing_is_no_place() -> None:
    for address, told in {
        "mysql://localhost/x": "no place to move threads",
        "threads.db": "no place to move threads",
        "sqlite:missing.db": "there is no file 'missing.db'",
        "jskv:b?encrypted=maybe": "encrypted= has to be yes or no, not 'maybe'",
        "jskv:b?agnet=x": "takes namespace=, agent=, encrypted=, not agnet=",
    }.items():
        with pytest.raises(InvalidRequestError, match=told.replace("?", r"\?")):
            async with opened(address, make=False):
                pass


async def test_an_archive_with_several_owners_asks_for_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for owner in ("one", "two"):
        async with opened(f"archive:{path}?namespace={owner}&agent=x", make=True) as to:
            await asked(to, owner)
    with pytest.raises(InvalidRequestError, match="namespace=one&agent=x, namespace"):
        async with opened(f"archive:{path}", make=False):
            pass
    async with opened(f"archive:{path}?namespace=one", make=False) as source:
        found = await migrate(source, InMemorySaver())
    assert [each.thread for each in found.threads] == ["one"]


async def test_an_archive_stays_as_it_was_where_moving_failed(tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    async def interrupted() -> None:
        async with opened(f"archive:{tmp_path / 'a'}", make=True) as to:
            await asked(to)
            raise Interrupted

    with pytest.raises(Interrupted):
        await interrupted()
    assert os.listdir(tmp_path) == []


async def test_an_encrypted_bucket_takes_the_keys_of_the_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, there = InMemorySaver(), place("bucket")
    await asked(source)
    with pytest.raises(InvalidRequestError, match="JSKV_ENCRYPTION_KEYS is not set"):
        async with opened(f"{there}&encrypted=yes", make=True):
            pass
    monkeypatch.setenv("JSKV_ENCRYPTION_KEYS", Encryption.generate_key())
    async with opened(f"{there}&encrypted=yes", make=True) as target:
        assert (await migrate(source, target, apply=True)).counts == {"copied": 1}
    async with opened(there, make=False) as unread:
        assert (await migrate(source, unread)).counts == {"failed": 1}


async def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aiosqlite", None)
    with pytest.raises(InvalidRequestError, match=r"jskv-saver\[migrate\]"):
        async with opened("sqlite:threads.db", make=False):
            pass


@pytest.mark.parametrize(
    "url", ["postgresql://u:pw@127.0.0.1:1/d", "redis://:pw@127.0.0.1:1"]
)
async def test_a_database_that_does_not_answer_is_told_so(url: str) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        async with opened(url, make=False) as saver:
            await migrate(saver, InMemorySaver())
    assert "pw" not in str(caught.value)


async def test_a_thread_that_is_not_there_is_told_so() -> None:
    source, target = InMemorySaver(), InMemorySaver()
    await asked(source)
    found = await migrate(source, target, thread_ids=["t", "T"])
    assert [(each.outcome, each.why) for each in found.threads] == [
        ("pending", ""),
        ("failed", "the source has no such thread"),
    ]


@pytest.mark.timeout(20)
async def test_a_circle_of_parents_has_an_end() -> None:
    source, target = InMemorySaver(), InMemorySaver()
    await asked(source)
    stored = source.storage["t"][""]
    first, *_, last = sorted(stored)
    checkpoint, metadata, _ = stored[first]
    stored[first] = (checkpoint, metadata, last)
    assert only(await migrate(source, target, apply=True)) == ("copied", 3, "")


async def test_source_and_target_are_two() -> None:
    saver = InMemorySaver()
    with pytest.raises(InvalidRequestError, match="one and the same"):
        await migrate(saver, saver)
    with pytest.raises(TypeError, match="a single str"):
        await migrate(saver, InMemorySaver(), thread_ids="t")


async def test_many_threads_with_one_checkpoint_id(place: Place) -> None:
    """PostgreSQL is read in pages, which must not part them."""
    first, second = empty_checkpoint(), empty_checkpoint()
    async with opened(place("postgres"), make=True) as source:
        for number in range(70):
            config = thread(f"t{number}", checkpoint_ns="")
            for checkpoint in (first, second)[: 1 + number % 2]:
                config = await source.aput(config, checkpoint, {"step": 1}, {})
        found = await migrate(source, InMemorySaver())
        assert sorted((e.thread, e.checkpoints) for e in found.threads) == sorted(
            (f"t{number}", 1 + number % 2) for number in range(70)
        )


async def test_values_that_are_encrypted_are_so_again(place: Place) -> None:
    key = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    source, target = InMemorySaver(serde=key), InMemorySaver(serde=key)
    await compiled(shop(), source).ainvoke({}, thread(ODD))
    assert (await migrate(source, target, apply=True)).counts == {"copied": 1}
    kinds = {kind for kind, _ in target.blobs.values()}
    assert kinds == {kind for kind, _ in source.blobs.values()}
    assert "msgpack+aes" in kinds
    found = await compiled(shop(), target).aget_state(thread(ODD))
    assert found.values["orders"] == [Order(0, ["é", "\0"])]


def test_parents_come_before_their_children() -> None:
    rows = [
        Row("", "3", "1"),
        Row("", "1", "2"),
        Row("", "2", None),
        Row("n", "0", "9"),
    ]
    assert [(row.ns, row.id) for row in parents_first(rows)] == [
        ("n", "0"),
        ("", "2"),
        ("", "1"),
        ("", "3"),
    ]


def test_numbers_keep_the_order_of_tasks_whose_paths_are_hidden() -> None:
    in_order = [("a", "c", 1), ("a", "d", 2), ("b", "c", 3)]
    assert _with_paths(in_order, None) == [Write(*each, "") for each in in_order]
    numbered = _with_paths(in_order[::-1], None)
    assert [write.path for write in numbered] == ["000000", "000001", "000001"]


async def asked_and_bought(here: str) -> None:
    async with opened(here, make=True) as source:
        await compiled(shop(), source).ainvoke({}, thread(ODD))
        await asked(source, "asked")


def test_the_command(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def jskv(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jskv", "migrate", *arguments])
        code = 0
        try:
            main()
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else 1
        return code, *capsys.readouterr()

    async def answer() -> None:
        async with opened(there, make=False) as target:
            await compiled(approval(), target).ainvoke(
                Command(resume="yes"), thread("asked")
            )

    here, there = place("sqlite"), place("bucket")
    asyncio.run(asked_and_bought(here))
    capsys.readouterr()
    dry = "2 threads: 2 to copy\nnothing was written: --apply does it\n"
    assert jskv("--from", here, "--to", there) == (0, dry, "")
    # Nor was anything made.
    code, out, err = jskv("--from", there, "--to", here)
    assert (code, out) == (1, "")
    assert err.startswith("jskv: there is no bucket ")

    moved = "2 threads: 2 copied and read back\n"
    assert jskv("--from", here, "--to", there, "--apply") == (0, moved, "")
    asyncio.run(answer())
    code, out, err = jskv("--from", here, "--to", there, "--apply")
    assert (code, err) == (1, "")
    assert out.startswith("diverged: thread asked: checkpoint ")
    assert out.endswith("2 threads: 1 there already, 1 diverged, left alone\n")

    wrong = "jskv: --from and --to are the same place\n"
    assert jskv("--from", here, "--to", here) == (1, "", wrong)


async def test_types_that_cannot_be_imported_come_through(
    place: Place, tmp_path: Path
) -> None:
    here, there = place("sqlite"), place("bucket")
    await asked_and_bought(here)
    command = ["jskv_saver", "migrate", "--from", here, "--to", there]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", *command, "--apply", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["applied"] is True
    assert {each["thread"]: each["outcome"] for each in told["threads"]} == {
        ODD: "copied",
        "asked": "copied",
    }
    async with opened(there, make=False) as target:
        found = await compiled(shop(), target).aget_state(thread(ODD))
    assert found.values["orders"] == [Order(0, ["é", "\0"])]
