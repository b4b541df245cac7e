"""What the README says of types of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore


@dataclass
class Order:
    number: int


@dataclass
class Customer:
    name: str


@dataclass
class Other:
    text: str


ALLOWED: list[Any] = [Order, (Customer.__module__, "Customer")]


async def test_types_that_are_allowed_come_back() -> None:
    values = {"order": Order(7), "customer": Customer("Ada"), "other": Other("x")}
    serde = JsonPlusSerializer(allowed_msgpack_modules=ALLOWED)
    async with DocumentCheckpointSaver(MemoryDocumentStore(), serde=serde) as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = dict(values)
        checkpoint["channel_versions"] = dict.fromkeys(values, 1)
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        await saver.aput(config, checkpoint, {}, dict.fromkeys(values, 1))
        found = await saver.aget_tuple(config)
    assert found
    assert found.checkpoint["channel_values"] == values | {"other": {"text": "x"}}
