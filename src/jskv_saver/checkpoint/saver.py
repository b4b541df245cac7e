"""LangGraph's checkpointer contract on a document store."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
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

from jskv_saver.checkpoint.admitting import AdmittingMethods
from jskv_saver.checkpoint.blocking import BlockingMethods
from jskv_saver.checkpoint.config import (
    config_of,
    parse_ids,
    parse_thread_id,
)
from jskv_saver.checkpoint.following import Follower
from jskv_saver.checkpoint.tuples import histories_of, next_version, tuple_of
from jskv_saver.checkpoint.watch import Watch


class DocumentCheckpointSaver(BlockingMethods, AdmittingMethods):
    """Keeps LangGraph checkpoints as documents; one object, async and sync.

    Module namespace, agent id, thread id, checkpoint namespace and checkpoint id
    together say where a checkpoint is; savers that differ in one of the first two
    never meet.

    Entered with `async with`, it lives on that event loop: the fast path; other loops
    and threads are served from there. Entered with `with`, or not at all, it keeps an
    event loop in a thread of its own and serves any thread and any loop. A blocking
    call on the loop that must serve it raises `WrongThreadError`.

    A copy, also by `with_allowlist` or `copy.deepcopy`, shares the connection: closing
    one closes all. It cannot be pickled. In a forked child one that was used before
    the fork raises `StoreClosedError`; one that was not works in either process.

    A checkpoint is there whole or not at all, and never changes. Failures reach the
    caller; no call to the store is repeated by itself.
    """

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, whole or not at all.

        It is serialised before the call first yields. Only what differs from its
        parent is written.

        Args:
            config: Names the thread and namespace; its checkpoint id is the parent's.
            checkpoint: The checkpoint. The same one again is accepted.
            metadata: Its metadata, of any type that the serialiser takes.
            new_versions: The channels that are new in it.

        Returns:
            The config that names the stored checkpoint.

        Raises:
            InvalidRequestError: There is no thread id or checkpoint id.
            DivergentCheckpointError: Other content is stored under this id.
            WriterConflictError: With `on_conflict="raise"`: another run was first.
            DocumentNotFoundError: Its delta channels need a parent that was deleted.
            UnknownOutcomeError: The answer was lost, and it is not there (yet).
        """
        draft = self._draft(config, checkpoint, metadata, new_versions)
        holding = self._leases.current(draft.scope.thread)
        await self._portal.arun(self._writer.put, draft, self.serde, holding)
        return config_of(draft.scope.thread, draft.scope.ns, draft.id)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store pending writes of a task, all or none.

        They may arrive before, during or after their checkpoint. A regular write
        stays when the same index is written again, a special one is replaced.

        Args:
            config: Names the checkpoint.
            writes: Pairs of channel and value.
            task_id: The task.
            task_path: Its path, which orders the writes of a step.

        Raises:
            InvalidRequestError: The config names no checkpoint.
            UnknownOutcomeError: The answer was lost; the call may be repeated.
        """
        await self._portal.arun(
            self._writer.put_writes, *self._writes(config, writes, task_id, task_path)
        )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the latest of its namespace.

        The latest is the one with the greatest id, whatever arrived last.

        Args:
            config: Names the thread; without a namespace the root; without a
                checkpoint id the latest.

        Returns:
            The checkpoint with its pending writes in `writes_sort_key` order; None if
            there is none.

        Raises:
            CorruptDocumentError: Something that it needs is damaged or gone.
            GraphVersionError: With `graph_version`: another version wrote it.
        """
        return self._given(await self._portal.arun(self._read, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The checkpoints that match, greatest id first.

        Nothing is held between two pages: a listing may be abandoned half-way.

        Args:
            config: Names the thread, and maybe a namespace and one checkpoint; None:
                all threads of this namespace and agent.
            filter: Metadata keys and their values; structural equality.
            before: Only ids smaller than this config's checkpoint id, which need not
                exist.
            limit: How many matches to give at most; 0: none.

        Raises:
            InvalidRequestError: `limit` is negative.
        """
        listing = self._listing(config, filter, before, limit)
        while (page := await self._portal.arun(listing.next_page)) is not None:
            for loaded in page:
                yield tuple_of(loaded, self.serde)

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread with all its checkpoints and writes. Idempotent."""
        await self._portal.arun(self._pruner.delete_thread, parse_thread_id(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that some runs wrote, and their writes.

        Those that hold the history of a surviving checkpoint's delta channels stay.
        """
        await self._portal.arun(self._pruner.delete_runs, parse_ids("run_ids", run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another. Idempotent."""
        await self._portal.arun(self._copy, source_thread_id, target_thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint contributed to some channels.

        Walks the parents in batches, each ancestor once for all channels.

        Args:
            config: Names the checkpoint; without an id the latest.
            channels: The channels.

        Returns:
            For each channel its `writes`, oldest first, and its `seed`, the value of
            the nearest ancestor that has one; without `seed` the walk met the root.

        Raises:
            CorruptDocumentError: An ancestor that is still needed is not stored.
        """
        return histories_of(
            await self._portal.arun(self._history, config, channels), self.serde
        )

    def watch(self, thread_id: str | None = None, *, after: int | None = None) -> Watch:
        """Follow what happens to threads, by any process, as it happens.

        For `for` and `async for`; what is written after the first step is told, or
        after the entry of `with` or `async with`. Checkpoints that are removed before
        they are given are left out; a task's writes that are replaced come once. A
        removal is told for a minute. Losing the server is waited out.

        Args:
            thread_id: The thread; None: all of this namespace and agent.
            after: The revision to go on after, of an event; 0: begin with what is
                stored; None: with what is written from now on.

        Returns:
            An endless iterator of `ThreadEvent`, async and sync. No consumer is left
            behind when it ends, however that is.

        Raises:
            InvalidRequestError: The store does not tell its changes, or `after` was
                never reached in it.
        """
        thread = None if thread_id is None else parse_thread_id(thread_id)

        def follow(after: int | None) -> Follower:
            follower = Follower(
                self._partition.store,
                self.namespace,
                self.agent_id,
                thread,
                after,
                partition_of=lambda namespace, agent: self._partition,
            )
            self._followers.add(follower)
            return follower

        return Watch(self._portal, self.serde, follow, after)

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        """The version after `current`: of its own form, an int for a new channel.

        Text of the form `number.random`, as other savers write it, is continued.
        """
        return next_version(current)
