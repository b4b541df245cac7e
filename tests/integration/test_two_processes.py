"""Processes of their own on one bucket, which share nothing but the server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from jskv_saver import CollectionSpec, FieldSpec, JetStreamDocumentStore
from jskv_saver.errors import JskvError

SPECS = {
    "plain": CollectionSpec("people"),
    "unique": CollectionSpec("people", (FieldSpec("email", "string", unique=True),)),
}
PROCESSES, WRITERS, ROUNDS = 4, 4, 8


class Child:
    """Another process: it makes the calls that it is told, some at once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def calls(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """The outcomes: a version, or the name of an error."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(calls).encode() + b"\n")
        answer: list[str] = json.loads(await self._process.stdout.readline())
        return answer


@asynccontextmanager
async def _child(url: str, bucket: str) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        url,
        bucket,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Child(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


@pytest.fixture
async def children(nats_url: str, bucket: str) -> AsyncIterator[list[Child]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_child(nats_url, bucket))
            for _ in range(PROCESSES)
        ]


async def _race(
    children: list[Child], ids: str, data: dict[str, Any], **condition: Any
) -> Counter[str]:
    """Every writer of every process puts at once; how often each outcome came."""
    answers = await asyncio.gather(
        *(
            child.calls(
                *(
                    (
                        "put",
                        {
                            "id": ids.format(f"{number}-{writer}"),
                            "data": {**data, "by": f"{number}-{writer}"},
                            **condition,
                        },
                    )
                    for writer in range(WRITERS)
                )
            )
            for number, child in enumerate(children)
        )
    )
    outcomes = [outcome for answer in answers for outcome in answer]
    return Counter("stored" if each.isdigit() else each for each in outcomes)


@pytest.mark.parametrize("name", SPECS)
async def test_one_of_many_processes_wins_each_version(
    children: list[Child], store: JetStreamDocumentStore, name: str
) -> None:
    await store.ensure_collection("owner", SPECS[name])
    version = 0
    for turn in range(ROUNDS):
        outcomes = await _race(children, "one", {"turn": turn}, if_version=version)
        losers = PROCESSES * WRITERS - 1
        assert outcomes == {"stored": 1, "VersionConflictError": losers}
        document = await store.get("owner", "people", "one")
        assert document.data["turn"] == turn
        version = document.version


async def test_one_of_many_processes_gets_a_unique_value(
    children: list[Child], store: JetStreamDocumentStore
) -> None:
    await store.ensure_collection("owner", SPECS["unique"])
    for turn in range(ROUNDS):
        outcomes = await _race(children, f"{turn}-{{}}", {"email": f"e{turn}"})
        losers = PROCESSES * WRITERS - 1
        assert outcomes == {"stored": 1, "UniqueViolationError": losers}
    assert await store.count("owner", "people") == ROUNDS


async def test_what_one_process_declares_another_enforces_on_its_next_call(
    children: list[Child],
) -> None:
    one, other = children[:2]
    put = ("put", {"id": "1", "data": {"email": "e"}})
    twin = ("put", {"id": "2", "data": {"email": "e"}})
    for _ in range(3):
        assert await other.calls(put) == ["CollectionNotFoundError"]
        assert await one.calls(("ensure", {"spec": "plain"})) == ["0"]
        assert (await other.calls(put))[0].isdigit()
        assert await one.calls(("ensure", {"spec": "unique"})) == ["0"]
        assert await other.calls(twin) == ["UniqueViolationError"]
        wrong = ("put", {"id": "3", "data": {"email": 1}})
        assert await other.calls(wrong) == ["InvalidRequestError"]
        assert await one.calls(("drop", {})) == ["0"]


async def test_a_declaration_made_while_processes_write_misses_nothing(
    children: list[Child], store: JetStreamDocumentStore
) -> None:
    for turn in range(ROUNDS):
        owner = f"owner-{turn}"
        await store.ensure_collection(owner, SPECS["plain"])
        racing = asyncio.gather(
            *(
                child.calls(
                    *(
                        (
                            "put",
                            {
                                "owner": owner,
                                "id": f"{number}-{writer}",
                                "data": {"email": f"{number}-{writer}"},
                            },
                        )
                        for writer in range(WRITERS)
                    )
                )
                for number, child in enumerate(children)
            )
        )
        await asyncio.sleep(0.001 * turn)
        await store.ensure_collection(owner, SPECS["unique"])
        await racing
        everyone = [each async for each in store.iterate(owner, "people")]
        assert len(everyone) == PROCESSES * WRITERS
        for each in everyone:
            page = await store.find(
                owner, "people", [("email", "eq", each.data["email"])]
            )
            assert page.items == (each,)


async def _call(store: JetStreamDocumentStore, name: str, args: dict[str, Any]) -> str:
    try:
        if name == "ensure":
            await store.ensure_collection("owner", SPECS[args["spec"]])
        elif name == "drop":
            await store.drop_collection("owner", "people")
        else:
            owner = args.pop("owner", "owner")
            return str((await store.put(owner, "people", **args)).version)
    except JskvError as error:
        return type(error).__name__
    return "0"


async def _serve(url: str, bucket: str) -> None:
    async with JetStreamDocumentStore.from_conn_string(url, bucket=bucket) as store:
        while line := await asyncio.to_thread(sys.stdin.readline):
            answers = [_call(store, name, args) for name, args in json.loads(line)]
            print(json.dumps(await asyncio.gather(*answers)), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
