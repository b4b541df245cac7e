"""A server with what `jskv permissions` prints, and what its users try there."""

from __future__ import annotations

import contextlib
import io
import json
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import nats
import pytest
from nats.aio.client import Client
from tests.acceptance.graphs import sending
from tests.checkpoint.saving import at, ids, put, put_chain, values
from tests.conftest import BINARY
from tests.patience import until

from jskv_saver import (
    CollectionSpec,
    DocumentCheckpointSaver,
    FieldSpec,
    LocalServer,
)
from jskv_saver.cli.app import app
from jskv_saver.cli.isolation import variable_of
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import DocumentNotFoundError

APP = "my.app*"
"""A namespace whose name is no subject's; its user is `app`."""
OTHER = "other"
TWO = ["--namespace", APP, "--user", "app", "--namespace", OTHER, "--user", "other"]


def printed(*args: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        app(["permissions", *args], standalone_mode=False)
    return out.getvalue()


@contextmanager
def guarded(*args: str, users: Iterable[str]) -> Iterator[LocalServer]:
    """A server with it; a user's password is `pw-` and its name."""
    first, *_ = users = list(users)
    with pytest.MonkeyPatch.context() as patch:
        for user in users:
            patch.setenv(variable_of(user), f"pw-{user}")
        with LocalServer(
            binary=BINARY,
            user=first,
            password=f"pw-{first}",
            sync_interval="2m",
            # The login that LocalServer writes itself gives way to the accounts.
            config="authorization { timeout: 5 }\n" + printed(*args),
        ) as server:
            yield server


def url_of(server: LocalServer, user: str) -> str:
    return f"nats://{user}:pw-{user}@127.0.0.1:{server.port}"


class Intruder:
    """A bare client that keeps what it is refused.

    Attributes:
        client: The client.
        refused: What the server has said.
    """

    def __init__(self) -> None:
        self.client: Client = Client()
        self.refused: list[str] = []

    async def _error(self, error: Exception) -> None:
        self.refused.append(str(error))

    async def connect(self, url: str) -> None:
        await self.client.connect(url, error_cb=self._error)

    async def may_not_publish(self, *subjects: str) -> None:
        """Each of them is refused by the server."""
        await self._may_not("publish", subjects)

    async def may_not_subscribe(self, *subjects: str) -> None:
        """Each of them is refused by the server."""
        await self._may_not("subscription", subjects)

    async def _may_not(self, what: str, subjects: Iterable[str]) -> None:
        for subject in subjects:
            self.refused.clear()
            if what == "publish":
                await self.client.publish(subject, b"x")
            else:
                await self.client.subscribe(subject)
            await self.client.flush()
            told = f'permissions violation for {what} to "{subject.lower()}"'
            await until(partial(self._has_heard, told))

    def _has_heard(self, told: str) -> bool:
        return any(told in each for each in self.refused)


@asynccontextmanager
async def intruder(server: LocalServer, user: str) -> AsyncIterator[Intruder]:
    made = Intruder()
    await made.connect(url_of(server, user))
    try:
        yield made
    finally:
        await made.client.close()


async def live(saver: DocumentCheckpointSaver, thread: str = "t") -> None:
    """A graph, and each kind of call: put, read, list, prune, copy, repair, delete."""
    graph = sending(3).compile(checkpointer=saver)
    state = await graph.ainvoke({"log": []}, at(thread=f"{thread} graph"))
    assert len(state["log"]) == 4
    await put_chain(saver, ["1", "2", "3"], thread=thread)
    await saver.aput_writes(at("3", thread=thread), [("a", b"x" * 3_000)], "task")
    assert await ids(saver, at(thread=thread)) == ["3", "2", "1"]
    await saver.aprune([thread])
    assert await ids(saver, at(thread=thread)) == ["3"]
    assert await values(saver, thread=thread) == {"n": 2}
    large = {"a": secrets.token_bytes(1_500_000)}
    await put(saver, "1", large, thread=f"{thread} gone")
    assert await values(saver, thread=f"{thread} gone") == large
    await saver.acopy_thread(thread, f"{thread} copied")
    assert await values(saver, thread=f"{thread} copied") == {"n": 2}
    await put(saver, "1", {"a": 1}, thread=f"{thread} run", run_id="run")
    await saver.adelete_for_runs(["run"])
    assert await ids(saver, at(thread=f"{thread} run")) == []
    await saver.arepair([thread])
    await saver.adelete_thread(f"{thread} gone")
    assert await ids(saver, at(thread=f"{thread} gone")) == []


async def keep_documents(notes: BoundDocuments) -> None:
    """Documents with an index and a unique field: put, read, find, remove."""
    status = FieldSpec("status", "string", indexed=True)
    mail = FieldSpec("mail", "string", unique=True)
    await notes.ensure_collection(CollectionSpec("orders", (status, mail)))
    for n in range(3):
        await notes.put("orders", f"{n}", {"status": "open", "mail": f"{n}@x"})
    assert (await notes.get("orders", "1")).data["mail"] == "1@x"
    page = await notes.find("orders", [("status", "eq", "open")])
    assert [each.id for each in page.items] == ["0", "1", "2"]
    await notes.delete("orders", "1")
    with pytest.raises(DocumentNotFoundError):
        await notes.get("orders", "1")
    assert "orders" in await notes.collections()
    # One of the saver's own, which is read by its key.
    await notes.put("cp", ("a", "b"), {"n": 1})
    assert (await notes.get("cp", ("a", "b"))).data == {"n": 1}
    await notes.delete("cp", ("a", "b"))


def violations(server: LocalServer) -> list[str]:
    """What the server has refused so far."""
    return [line for line in server.log.splitlines() if "Violation" in line]


def read_request(bucket: str, key: str) -> bytes:
    """The body of a direct read of a key's newest value."""
    return json.dumps({"last_by_subj": f"$KV.{bucket}.{key}"}).encode()


async def last_of(client: Client, bucket: str, key: str) -> bytes | None:
    """The newest value of a key, read directly; None: there is none."""
    answer = await client.request(
        f"$JS.API.DIRECT.GET.KV_{bucket}", read_request(bucket, key), timeout=10
    )
    if (answer.headers or {}).get("Status") == "404":
        return None
    return answer.data


async def put_raw(client: Client, bucket: str, key: str, value: bytes) -> None:
    """Store a value, and wait until it is."""
    answer = await client.request(f"$KV.{bucket}.{key}", value, timeout=10)
    assert b'"seq"' in answer.data, answer.data


@asynccontextmanager
async def connected(
    server: LocalServer, user: str, inbox_prefix: str = "_INBOX"
) -> AsyncIterator[Client]:
    client = await nats.connect(
        url_of(server, user), inbox_prefix=inbox_prefix.encode()
    )
    try:
        yield client
    finally:
        await client.close()
