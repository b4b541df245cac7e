"""Savers that keep nothing, or less than they say: drills on them must fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from jskv_saver import (
    Admission,
    DocumentCheckpointSaver,
    JetStreamSaver,
    MemoryDocumentStore,
)


@asynccontextmanager
async def open_saver(url: str) -> AsyncIterator[InMemorySaver]:
    """LangGraph's own, in the worker's memory."""
    yield InMemorySaver()


@asynccontextmanager
async def open_silent(url: str) -> AsyncIterator[DocumentCheckpointSaver]:
    """One that never speaks to the server, so that its worker is never killed."""
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as saver:
        yield saver


class Promising(JetStreamSaver):
    """Accepts requests, and stores none."""

    async def aadmit(
        self, config: RunnableConfig, request: Any, *, request_id: str | None = None
    ) -> Admission:
        """Say so, and no more."""
        thread = config["configurable"]["thread_id"]
        now = datetime.now(UTC)
        return Admission(thread, request_id or "", request, now, new=True)


@asynccontextmanager
async def open_promising(url: str) -> AsyncIterator[DocumentCheckpointSaver]:
    """One that accepts what it does not keep."""
    async with Promising.from_conn_string(url) as saver:
        yield saver
