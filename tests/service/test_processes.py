"""Whole processes: some ask, some serve, some are killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE, patiently, until
from tests.service.processes import (
    as_app,
    guarded_server,
    kill,
    running,
    serving,
)

from jskv_saver import (
    CollectionSpec,
    DocumentService,
    JetStreamDocumentStore,
    LocalServer,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.errors import (
    JskvError,
    PermissionDeniedError,
    StoreUnavailableError,
    UnknownOutcomeError,
)


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalServer]:
    with guarded_server() as server:
        yield server


async def test_a_program_with_the_subjects_only_can_touch_no_bucket(
    guarded: LocalServer, bucket: str
) -> None:
    async with JetStreamDocumentStore.from_conn_string(guarded.url, bucket=bucket):
        store = JetStreamDocumentStore.from_conn_string(
            as_app(guarded), bucket=bucket, timeout=PATIENCE
        )
        with pytest.raises(PermissionDeniedError):
            await store.setup()
        await store.close()


async def test_a_program_may_do_what_its_subjects_allow(guarded: LocalServer) -> None:
    stored = MemoryDocumentStore()
    await stored.put("owner", "cp", "a", {"n": 1})
    async with (
        DocumentService(stored, guarded.url),
        RemoteDocumentStore.from_conn_string(as_app(guarded, "reader")) as store,
    ):
        # It is not told what the service takes either: it never writes.
        assert (await store.get("owner", "cp", "a")).data == {"n": 1}
        with pytest.raises(PermissionDeniedError, match=r"jskv\.v1\.owner\.put"):
            await store.put("owner", "cp", "a", {})
        with pytest.raises(PermissionDeniedError, match=r"jskv\.v1\.other\.get"):
            await store.get("other", "cp", "a")
    assert (await stored.get("owner", "cp", "a")).data == {"n": 1}


async def test_a_graph_that_asks_is_killed_twice_and_ended_by_a_third_process(
    guarded: LocalServer, bucket: str, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    settings: dict[str, Any] = {
        "url": as_app(guarded),
        "graph": "approval",
        "configurable": {"thread_id": "t", "journal": str(journal)},
    }
    async with serving(guarded.url, bucket):
        async with running(**settings, input={"log": ["start"]}) as state:
            assert state["asked"] == [
                {"question": "first?", "so far": ["start", "draft"]}
            ]
        async with running(**settings, resume="yes") as state:
            assert state["asked"] == ["second?"]
        async with running(**settings, resume="sure") as state:
            assert state == {
                "log": ["start", "draft", "ask", "send"],
                "answer": "yes sure",
                "asked": [],
            }
    assert Counter(journal.read_text().split()) == {"draft": 1, "ask": 3, "send": 1}


async def test_a_graph_that_is_killed_in_mid_step_is_resumed_from_there(
    guarded: LocalServer, bucket: str, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    settings: dict[str, Any] = {
        "url": as_app(guarded),
        "graph": "slow",
        "configurable": {"thread_id": "t", "journal": str(journal)},
    }

    def ran(name: str) -> bool:
        return journal.exists() and name in journal.read_text().split()

    async with serving(guarded.url, bucket):
        process = await asyncio.create_subprocess_exec(
            *_worker(**settings, input={"log": []}), cwd=Path(__file__).parents[2]
        )
        await until(lambda: ran("slow") and ran("fast"))
        async with RemoteDocumentStore.from_conn_string(as_app(guarded)) as store:
            # What `fast` wrote is stored, as the write of one task.
            for _ in range(1000):
                if await store.ids("default", "wr", within=("default", "t")):
                    break
                await asyncio.sleep(0.01)
            else:
                raise AssertionError("the writes of `fast` are not stored")
        await kill(process)
        settings["configurable"]["go"] = True
        async with running(**settings) as state:
            assert sorted(state["log"]) == ["fast", "last", "one", "slow", "two"]
    ran_often = Counter(journal.read_text().split())
    assert ran_often["one"] == ran_often["two"] == ran_often["last"] == 1
    assert ran_often["slow"] == 2


def _worker(**settings: Any) -> list[str]:
    return [sys.executable, "-m", "tests.service.processes", json.dumps(settings)]


async def test_a_server_that_is_killed_under_load_tears_nothing(
    guarded: LocalServer, bucket: str
) -> None:
    calls = 200
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(serving(guarded.url, bucket))
            for _ in range(3)
        ]
        store = await stack.enter_async_context(
            RemoteDocumentStore.from_conn_string(as_app(guarded), timeout=2)
        )
        notes = CollectionSpec("notes")
        await patiently(lambda: store.ensure_collection("owner", notes))
        outcomes: dict[str, list[str]] = {}
        started = 0

        async def write(number: int) -> None:
            nonlocal started
            for turn in range(6):
                name = f"{number:03}-{turn}"
                started += 1
                body = {"name": name, "pad": name * 200}
                try:
                    await store.put("owner", "notes", name, body, if_version=0)
                    outcome = "stored"
                except JskvError as error:
                    outcome = type(error).__name__
                outcomes.setdefault(outcome, []).append(name)

        async def read(number: int) -> None:
            for _ in range(6):
                try:
                    page = await store.find("owner", "notes", limit=5)
                except StoreUnavailableError:
                    outcomes.setdefault("unread", []).append(str(number))
                    continue
                for document in page.items:
                    assert document.data["pad"] == document.data["name"] * 200

        load = [
            asyncio.ensure_future(task)
            for number in range(calls // 2)
            for task in (write(number), read(number))
        ]
        await until(lambda: started > calls)
        await kill(servers[0])
        await asyncio.gather(*load)

        assert set(outcomes) <= {
            "stored",
            "unread",
            UnknownOutcomeError.__name__,
            StoreUnavailableError.__name__,
        }
        assert len(outcomes["stored"]) > calls
        kept = {each.id: each async for each in store.iterate("owner", "notes")}
        assert set(outcomes["stored"]) <= set(kept)
        assert not set(outcomes.get("StoreUnavailableError", ())) & set(kept)
        for id, document in kept.items():
            assert document.data == {"name": id, "pad": str(id) * 200}
        # The two others go on.
        await store.put("owner", "notes", "after", {})


async def test_a_service_that_the_broker_has_cut_off_comes_back(
    guarded: LocalServer, bucket: str
) -> None:
    async with (
        serving(guarded.url, bucket) as process,
        RemoteDocumentStore.from_conn_string(as_app(guarded), timeout=3) as store,
    ):
        body = {"b": b"x" * 100_000}
        await patiently(lambda: store.put("owner", "cp", "first", body))
        # It reads nothing more, in mid-message; the broker has 64 MB for it, and then
        # it is a slow consumer.
        load = [
            asyncio.ensure_future(store.put("owner", "cp", f"{n}", body))
            for n in range(50)
        ]
        await load[0]
        process.send_signal(signal.SIGSTOP)
        load += [
            asyncio.ensure_future(store.put("owner", "cp", f"{n}", body))
            for n in range(50, 1000)
        ]
        outcomes = await asyncio.gather(*load, return_exceptions=True)
        assert any(isinstance(each, UnknownOutcomeError) for each in outcomes)
        with pytest.raises(StoreUnavailableError, match="nobody listens"):
            await store.put("owner", "cp", "nobody", body)
        process.send_signal(signal.SIGCONT)
        await patiently(lambda: store.put("owner", "cp", "again", body))
        for number, outcome in enumerate(outcomes):
            if not isinstance(outcome, Exception):
                stored = await store.get("owner", "cp", f"{number}")
                assert stored.data == body


async def test_serve_ends_after_what_it_accepted(
    guarded: LocalServer, bucket: str
) -> None:
    async with (
        serving(guarded.url, bucket) as process,
        RemoteDocumentStore.from_conn_string(as_app(guarded)) as store,
    ):
        await store.ensure_collection("owner", CollectionSpec("notes"))
        puts = [
            asyncio.ensure_future(store.put("owner", "notes", f"{n}", {"n": n}))
            for n in range(200)
        ]
        await puts[0]
        process.send_signal(signal.SIGTERM)
        results = await asyncio.gather(*puts, return_exceptions=True)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert b"answering what was accepted" in out
        # Either stored, or it had left before they came: nothing in doubt.
        assert {type(r) for r in results if isinstance(r, Exception)} <= {
            StoreUnavailableError
        }


async def test_serve_tells_each_fault_in_a_line(
    guarded: LocalServer, bucket: str
) -> None:
    async with (
        serving(guarded.url, bucket) as process,
        RemoteDocumentStore.from_conn_string(guarded.url) as store,
        JetStreamDocumentStore.from_conn_string(guarded.url, bucket=bucket) as direct,
    ):
        await store.put("owner", "cp", "a", {})
        client = store._requests.client
        assert client is not None
        await client.jetstream().delete_stream(f"KV_{bucket}")
        with pytest.raises(JskvError, match="gone"):
            await store.put("owner", "cp", "a\nb", {})
        await client.request("jskv.v1.owner.put", b"\xff\n\xff")
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
        lines = [line for line in err.decode().splitlines() if "jskv.v1." in line]
        assert len(lines) == 2, lines
        assert "BucketNotFoundError" in lines[0]
        assert "the request is no put" in lines[1]
        assert direct.limits.data > 0
