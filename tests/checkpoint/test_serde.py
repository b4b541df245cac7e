"""Serialisation is LangGraph's, as the user gives it."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import uuid
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt, Send
from pydantic import BaseModel
from tests.checkpoint.saving import OpenSaver, at, get, ids, listed, put, values
from tests.shown import shown

from jskv_saver import DocumentCheckpointSaver

KEY = b"0123456789abcdef"


class Colour(enum.Enum):
    RED = "red"


class Person(BaseModel):
    name: str
    born: datetime.date | None = None


@dataclasses.dataclass
class Point:
    x: int
    y: int


ANYTHING: dict[str, Any] = {
    "datetime": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC),
    "date": datetime.date(2026, 1, 2),
    "time": datetime.time(3, 4, 5),
    "timedelta": datetime.timedelta(days=1, microseconds=5),
    "decimal": decimal.Decimal("1.10"),
    "uuid": uuid.UUID(int=5),
    "set": {1, 2, 3},
    "frozenset": frozenset("ab"),
    "deque": deque([1, 2]),
    "bytes": b"\x00\xff",
    "path": pathlib.Path("/tmp/x"),
    "pattern": re.compile("a+"),
    "ip": ipaddress.ip_address("127.0.0.1"),
    "enum": Colour.RED,
    "model": Person(name="Ada", born=datetime.date(1815, 12, 10)),
    "dataclass": Point(1, 2),
    "large": 2**62,
    "float": 0.1,
    "messages": [
        SystemMessage("be brief", id="0"),
        HumanMessage("hello", id="1"),
        AIMessage(
            "",
            id="2",
            tool_calls=[
                {"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}
            ],
        ),
        ToolMessage("done", tool_call_id="c", id="3"),
    ],
    "document": Document("text", metadata={"page": 1}),
    "send": Send("node", {"x": 1}),
    "interrupt": [Interrupt("stop?", id="i")],
}

ALLOWED = [(kind.__module__, kind.__name__) for kind in (Colour, Person, Point)]


@pytest.fixture
async def saver(open_saver: OpenSaver) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver that may make the types of this module."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=ALLOWED)
    async with open_saver(serde=serde) as opened:
        yield opened


async def test_any_type_survives_in_values_metadata_and_writes(
    saver: DocumentCheckpointSaver,
) -> None:
    await put(saver, "1", ANYTHING, about=ANYTHING)
    await saver.aput_writes(at("1"), list(ANYTHING.items()), "task")

    for found in (await get(saver), *await listed(saver)):
        assert found.checkpoint["channel_values"] == ANYTHING
        assert found.metadata.get("about") == ANYTHING
        assert found.pending_writes == [("task", k, v) for k, v in ANYTHING.items()]
        for name, value in found.checkpoint["channel_values"].items():
            assert type(value) is type(ANYTHING[name])
    await put(saver, "1", ANYTHING, about=ANYTHING)
    wanted = {"about": ANYTHING}
    assert await ids(saver, at(), filter=wanted) == ["1"]


@pytest.mark.parametrize("value", [fractions.Fraction(1, 3), 1j, object()], ids=shown)
async def test_a_type_that_the_serialiser_refuses_is_the_caller_s_error(
    saver: DocumentCheckpointSaver, value: object
) -> None:
    with pytest.raises(TypeError):
        await put(saver, "1", {"good": 1, "bad": value})

    assert await listed(saver) == []
    assert await saver.store.ids("default", "cp") == []


def _encrypted() -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=KEY)


async def test_encrypted_state_is_read_with_the_key_alone(
    open_saver: OpenSaver,
) -> None:
    secret = "the secret" * 200
    state: dict[str, Any] = {"secret": secret, "messages": ANYTHING["messages"]}
    parent = None
    async with open_saver(serde=_encrypted()) as saver:
        for n in range(6):
            await put(
                saver,
                str(n),
                {**state, "grow": [secret] * n},
                parent=parent,
                versions={"secret": 1, "messages": 1, "grow": n},
                new={"grow": n} if n else None,
                about=secret,
            )
            await saver.aput_writes(at(str(n)), [("c", secret)], "task")
            parent = str(n)
        # The same again: encrypted anew, its bytes are others.
        again = {**state, "grow": [secret] * 5}
        versions = {"secret": 1, "messages": 1, "grow": 5}
        await put(saver, "5", again, parent="4", versions=versions, about=secret)

        await _holds_nowhere(saver, b"the secret")
    async with open_saver(serde=_encrypted()) as reader:
        for n in range(6):
            found = await get(reader, str(n))
            assert found.checkpoint["channel_values"] == {
                **state,
                "grow": [secret] * n,
            }
            assert found.pending_writes == [("task", "c", secret)]
        assert len(await ids(reader, at(), filter={"about": secret})) == 6
        await reader.acopy_thread("t", "copy")
        await reader.acopy_thread("t", "copy")
        assert await values(reader, thread="copy") == await values(reader)
    async with open_saver() as stranger:
        with pytest.raises(NotImplementedError, match="aes"):
            await get(stranger)


async def _holds_nowhere(saver: DocumentCheckpointSaver, secret: bytes) -> None:
    for collection in ("cp", "bl", "wr"):
        page = await saver.store.find("default", collection, limit=1000)
        assert page.items
        for document in page.items:
            assert secret not in b"".join(document.data.values())


async def test_unchanged_encrypted_channels_are_not_stored_again(
    open_saver: OpenSaver,
) -> None:
    state = {"keep": "k" * 50_000}
    async with open_saver(serde=_encrypted()) as saver:
        await put(saver, "1", state, versions={"keep": 1})
        parts = await saver.store.ids("default", "bl")
        await put(saver, "2", state, parent="1", versions={"keep": 1}, new={})

        assert await saver.store.ids("default", "bl") == parts
        assert await values(saver, "2") == state


async def test_a_clone_shares_the_storage_and_the_connection(
    saver: DocumentCheckpointSaver,
) -> None:
    for clone in (saver.with_allowlist([("tests.other", "Kind")]), copy.copy(saver)):
        assert clone is not saver
        assert isinstance(clone, DocumentCheckpointSaver)
        assert clone.store is saver.store
        await put(clone, "1", {"x": "clone"})
        assert await values(saver) == {"x": "clone"}
        await put(saver, "2", {"x": "saver"}, parent="1")
        assert await values(clone) == {"x": "saver"}
        await clone.adelete_thread("t")
        assert await listed(saver) == []


async def test_strict_msgpack_makes_no_type_that_is_not_allowed(
    open_saver: OpenSaver,
) -> None:
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    async with open_saver(serde=strict) as saver:
        await put(saver, "1", {"p": Point(1, 2), "m": HumanMessage("hi", id="1")})
        found = await values(saver)
        assert not isinstance(found["p"], Point)
        assert found["m"] == HumanMessage("hi", id="1")

        clone = saver.with_allowlist([(Point.__module__, "Point")])
        assert (await values(clone))["p"] == Point(1, 2)
        assert not isinstance((await values(saver))["p"], Point)
        assert [f.checkpoint["channel_values"]["p"] for f in await listed(clone)] == [
            Point(1, 2)
        ]


async def test_a_value_without_equality_can_be_put_again(
    open_saver: OpenSaver,
) -> None:
    state = {"nan": float("nan"), "list": [float("nan")], "large": [float("nan")] * 900}
    for serde in (JsonPlusSerializer(), _encrypted()):
        async with open_saver(serde=serde, agent_id=type(serde).__name__) as saver:
            await put(saver, "1", state)
            await put(saver, "1", state)
            assert repr(await values(saver)) == repr(state)
