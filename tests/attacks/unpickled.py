"""A process in which nobody can pickle, and that does all a saver does."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt, Send
from tests.attacks.operations import OPERATIONS
from tests.checkpoint.saving import at, get, put

from jskv_saver import JetStreamSaver

VALUES: dict[str, Any] = {
    "messages": [HumanMessage("hello"), AIMessage("hello yourself")],
    "send": Send("node", {"arg": HumanMessage("x")}),
    "when": datetime(2026, 1, 1, tzinfo=UTC),
    "uuid": UUID(int=5),
    "decimal": Decimal("1.5"),
    "set": {1, 2},
    "bytes": b"\0\xff",
}


class Foreign:
    """A type that no serialiser knows, so that only pickle is left."""


def _refuse(*args: Any, **options: Any) -> NoReturn:
    raise AssertionError("somebody pickles")


def forbid_pickle() -> None:
    """From now on, whoever pickles or unpickles fails."""
    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        setattr(pickle, name, _refuse)


async def live(url: str, bucket: str, *, foreign: bool) -> None:
    """Use all operations; or only put a value that nobody can serialise otherwise."""
    forbid_pickle()
    serde = JsonPlusSerializer(pickle_fallback=True) if foreign else None
    async with JetStreamSaver.from_conn_string(
        url, bucket=bucket, serde=serde
    ) as saver:
        if foreign:
            with pytest.raises(AssertionError, match="somebody pickles"):
                await put(saver, "1", {"foreign": Foreign()}, thread="types")
        else:
            await _use(saver)


async def _use(saver: JetStreamSaver) -> None:
    await put(saver, "1", VALUES, thread="types")
    writes = [*VALUES.items(), ("__interrupt__", [Interrupt("why?", id="i")])]
    await saver.aput_writes(at("1", thread="types"), writes, "task")
    found = await get(saver, thread="types")
    assert found.checkpoint["channel_values"] == VALUES
    assert {c: v for _, c, v in found.pending_writes or ()} == dict(writes)
    for number, operation in enumerate(OPERATIONS.values()):
        thread = f"t{number}"
        await operation.prepare(saver, thread)
        await operation.call(saver, thread)
