"""How LangGraph's own conformance suite is run on a saver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from tests.checkpoint.saving import OpenSaver

from jskv_saver import DocumentCheckpointSaver

TESTS = {
    Capability.PUT: 17,
    Capability.PUT_WRITES: 10,
    Capability.GET_TUPLE: 10,
    Capability.LIST: 16,
    Capability.DELETE_THREAD: 5,
    Capability.DELETE_FOR_RUNS: 7,
    Capability.COPY_THREAD: 8,
    Capability.PRUNE: 8,
}
"""How many tests the suite has for each capability: 81."""


class Forwarding(BaseCheckpointSaver[Any]):
    """Calls the blocking methods of a saver, each in a thread."""

    def __init__(self, saver: DocumentCheckpointSaver) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(
            self._saver.put, config, checkpoint, metadata, new_versions
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(
            self._saver.put_writes, config, writes, task_id, task_path
        )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self._saver.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        def read() -> list[CheckpointTuple]:
            found = self._saver.list(config, filter=filter, before=before, limit=limit)
            return list(found)

        for found in await asyncio.to_thread(read):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self._saver.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self._saver.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(
            self._saver.copy_thread, source_thread_id, target_thread_id
        )

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        await asyncio.to_thread(self._saver.prune, thread_ids, strategy=strategy)


Factory = Callable[[], AsyncGenerator[BaseCheckpointSaver[Any], None]]


def asynchronous(open_saver: OpenSaver) -> Factory:
    async def factory() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        async with open_saver() as saver:
            yield saver

    return factory


def entered(open_saver: OpenSaver) -> Factory:
    async def factory() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        saver = open_saver()
        await asyncio.to_thread(saver.__enter__)
        yield Forwarding(saver)
        await asyncio.to_thread(saver.__exit__, None, None, None)

    return factory


def not_entered(open_saver: OpenSaver) -> Factory:
    async def factory() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        saver = open_saver()
        yield Forwarding(saver)
        await asyncio.to_thread(saver.close)

    return factory


async def conform(factory: Factory) -> None:
    """Assert that all 81 tests of all capabilities run and pass."""
    report = await validate(checkpointer_test(name="jskv_saver")(factory))

    failures = [text for r in report.results.values() for text in r.failures]
    assert failures == []
    assert {c for c, r in report.results.items() if r.detected and r.passed} == {
        c.value for c in Capability
    }
    assert {c: r.tests_passed for c, r in report.results.items()} == {
        c.value: count for c, count in TESTS.items()
    }
    assert sum(r.tests_passed for r in report.results.values()) == 81
