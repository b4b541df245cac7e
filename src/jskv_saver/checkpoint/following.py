"""Changes of documents as what happens to threads: nothing is deserialised."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from jskv_saver.checkpoint.capabilities import telling
from jskv_saver.checkpoint.contents import Contents
from jskv_saver.checkpoint.epochs import decode_epoch
from jskv_saver.checkpoint.layout import RECORDS, WRITES, Scope, decode_record, is_epoch
from jskv_saver.checkpoint.partition import Partition, scope_of
from jskv_saver.checkpoint.told import removed_in
from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.writes import sizes_of
from jskv_saver.document.model import ANY, Change, Document, path_of
from jskv_saver.document.port import Changes, DocumentStore
from jskv_saver.errors import CorruptDocumentError, StoreUnavailableError

_log = logging.getLogger(__name__)

EventKind: TypeAlias = Literal["checkpoint", "writes", "interrupt", "pruned", "deleted"]
_TASK_SEGMENTS = 5
_CONTROL = frozenset((ERROR, INTERRUPT, RESUME))
"""Channels of a task that has no result yet."""
_PAUSE = 0.2
"""Seconds between two attempts to read what a change refers to."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a thread; its values are not deserialised.

    Attributes:
        kind: What it is.
        namespace: The thread's owner.
        agent: Its agent.
        thread: The thread.
        revision: The version of the change.
        at: When the store took it.
        ns: The checkpoint namespace; None: of the whole thread.
        ids: The checkpoints it is about.
        parent: Of a checkpoint: its parent's id.
        run: Of a checkpoint: the run that wrote it.
        metadata: Of a checkpoint: its metadata; None where that is gone.
        channels: Of a checkpoint its channels with a value, of writes where they go.
        task: Of writes: the task.
        interrupts: Of an interrupt: the values.
    """

    kind: EventKind
    namespace: str
    agent: str
    thread: str
    revision: int
    at: datetime
    ns: str | None = None
    ids: tuple[str, ...] = ()
    parent: str | None = None
    run: str | None = None
    metadata: Typed | None = None
    channels: tuple[str, ...] = ()
    task: str | None = None
    interrupts: tuple[Typed, ...] = ()


class Follower:
    """What happens to the threads of a store, in order.

    Args:
        store: The store.
        namespace: The owner; None: all.
        agent: The agent; None: all.
        thread: The thread; None: all.
        after: The revision to go on after; 0: begin with what is there; None: with
            what is written from now on.
        partition_of: Gives the documents of a namespace and agent.

    Raises:
        InvalidRequestError: The store does not tell its changes, or an argument is
            none.
    """

    def __init__(
        self,
        store: DocumentStore,
        namespace: str | None,
        agent: str | None,
        thread: str | None,
        after: int | None = None,
        *,
        partition_of: Callable[[str, str], Partition] | None = None,
    ) -> None:
        self._partition_of = partition_of or partial(Partition, store)
        agents, threads = agent or ANY, ANY if thread is None else thread
        self._changes: Changes = telling(store).changes(
            namespace,
            [
                (RECORDS, (agents, threads, ANY, ANY)),
                (WRITES, (agents, threads, ANY, ANY, ANY)),
            ],
            removals=[(agents, threads)],
            after=after,
        )
        self._ready: deque[Happening] = deque()
        # What is being looked at: a failure or a cancellation loses nothing.
        self._change: Change | None = None
        # Per namespace what an epoch has announced and nobody has told yet.
        self._announced: dict[tuple[str, Scope], Happening] = {}

    async def open(self) -> None:
        """Begin; what is written after this is told. `next` does it by itself."""
        await self._changes.open()

    async def next(self) -> Happening:
        """Wait for what happens next."""
        while not self._ready:
            if self._change is None:
                self._change = await self._changes.next()
            try:
                await self._take(self._change)
                self._change = None
            except StoreUnavailableError:
                # As the changes do: it is waited for, and asked again.
                await asyncio.sleep(_PAUSE)
            except CorruptDocumentError as exc:
                self._change = None
                _log.warning(
                    "left out of a watch: %s",
                    exc,
                    extra={"event": "jskv.watch.left_out"},
                )
        return self._ready.popleft()

    async def close(self) -> None:
        """End it. Idempotent."""
        await self._changes.close()

    async def _take(self, change: Change) -> None:
        path, document = path_of(change.id), change.document
        if not change.collection:
            self._forget(change)
            self._ready.append(_happening("deleted", change, path[0], path[1]))
        elif change.collection == RECORDS:
            scope = scope_of(path)
            if document is None:
                self._ready.append(_pruned(change, scope, path[3:]))
            elif is_epoch(document):
                self._take_epoch(change, scope, document)
            else:
                self._flush(change.namespace, scope)
                await self._take_record(change, scope, document)
        elif document is not None and len(path) == _TASK_SEGMENTS:
            await self._take_writes(change, scope_of(path), document)

    def _take_epoch(self, change: Change, scope: Scope, document: Document) -> None:
        key = change.namespace, scope
        removed, dead = removed_in(document), decode_epoch(document).decided.dead
        if removed:
            self._announced.pop(key, None)
            self._ready.append(_pruned(change, scope, removed))
        elif dead:
            # It tells so when it is done, or one who writes in between ends it.
            self._announced[key] = _pruned(change, scope, tuple(sorted(dead)))
        else:
            self._announced.pop(key, None)

    def _flush(self, namespace: str, scope: Scope) -> None:
        announced = self._announced.pop((namespace, scope), None)
        if announced is not None:
            self._ready.append(announced)

    def _forget(self, change: Change) -> None:
        agent, thread = path_of(change.id)
        for key in [*self._announced]:
            namespace, scope = key
            if (namespace, scope.agent, scope.thread) == (
                change.namespace,
                agent,
                thread,
            ):
                del self._announced[key]

    def _contents(self, change: Change, scope: Scope) -> Contents:
        return Contents(self._partition_of(change.namespace, scope.agent))

    async def _take_record(
        self, change: Change, scope: Scope, document: Document
    ) -> None:
        record = decode_record(document)
        metadata = None
        try:
            contents = self._contents(change, scope)
            (metadata,) = await contents.read_metadata([(scope, record)])
        except CorruptDocumentError as exc:
            _log.warning(
                "the metadata of a checkpoint is left out: %s",
                exc,
                extra={"event": "jskv.watch.metadata_left_out"},
            )
        self._ready.append(
            _happening(
                "checkpoint",
                change,
                scope.agent,
                scope.thread,
                ns=scope.ns,
                ids=(record.id,),
                parent=record.parent,
                run=record.run,
                metadata=metadata,
                channels=tuple(record.channels),
            )
        )

    async def _take_writes(
        self, change: Change, scope: Scope, document: Document
    ) -> None:
        path = path_of(document.id)
        writes = [write for write, _ in sizes_of(document)]
        interrupts: tuple[Typed, ...] = ()
        channels = tuple(dict.fromkeys(write.channel for write in writes))
        # A task that was answered keeps its question, beside what it then wrote.
        interrupted = INTERRUPT in channels and _CONTROL.issuperset(channels)
        if interrupted:
            # They are in parts, where they are large.
            found = await self._contents(change, scope).read_writes([path])
            interrupts = tuple(
                write.value
                for write in found.get((scope, path[3]), ())
                if write.channel == INTERRUPT
            )
        self._ready.append(
            _happening(
                "interrupt" if interrupted else "writes",
                change,
                scope.agent,
                scope.thread,
                ns=scope.ns,
                ids=(path[3],),
                channels=channels,
                task=path[4],
                interrupts=interrupts,
            )
        )


def _pruned(change: Change, scope: Scope, ids: tuple[str, ...]) -> Happening:
    return _happening("pruned", change, scope.agent, scope.thread, ns=scope.ns, ids=ids)


def _happening(
    kind: EventKind, change: Change, agent: str, thread: str, **more: Any
) -> Happening:
    return Happening(
        kind, change.namespace, agent, thread, change.version, change.at, **more
    )
