"""A saver that keeps nothing: drills on it must fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.memory import InMemorySaver

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore


@asynccontextmanager
async def open_saver(url: str) -> AsyncIterator[InMemorySaver]:
    """LangGraph's own, in the worker's memory."""
    yield InMemorySaver()


@asynccontextmanager
async def open_promising(url: str) -> AsyncIterator[DocumentCheckpointSaver]:
    """One that accepts requests in the worker's memory."""
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as saver:
        yield saver
