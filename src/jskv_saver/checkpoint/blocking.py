"""The blocking face: each method is one call through the portal."""

from __future__ import annotations

from collections.abc import (
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from jskv_saver.checkpoint.config import (
    config_of,
    parse_ids,
    parse_thread_id,
)
from jskv_saver.checkpoint.tuples import histories_of, tuple_of
from jskv_saver.checkpoint.upkeep import Upkeep


class BlockingMethods(Upkeep):
    """LangGraph's synchronous methods; what they do is said at the asynchronous."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `aput`, blocking."""
        draft = self._draft(config, checkpoint, metadata, new_versions)
        holding = self._leases.current(draft.scope.thread)
        self._portal.run(self._writer.put, draft, self.serde, holding)
        return config_of(draft.scope.thread, draft.scope.ns, draft.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `aput_writes`, blocking."""
        self._portal.run(
            self._writer.put_writes, *self._writes(config, writes, task_id, task_path)
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `aget_tuple`, blocking."""
        return self._given(self._portal.run(self._read, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """As `alist`, blocking."""
        listing = self._listing(config, filter, before, limit)
        while (page := self._portal.run(listing.next_page)) is not None:
            for loaded in page:
                yield tuple_of(loaded, self.serde)

    def delete_thread(self, thread_id: str) -> None:
        """As `adelete_thread`, blocking."""
        self._portal.run(self._pruner.delete_thread, parse_thread_id(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `adelete_for_runs`, blocking."""
        self._portal.run(self._pruner.delete_runs, parse_ids("run_ids", run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `acopy_thread`, blocking."""
        self._portal.run(self._copy, source_thread_id, target_thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `aget_delta_channel_history`, blocking."""
        return histories_of(
            self._portal.run(self._history, config, channels), self.serde
        )
