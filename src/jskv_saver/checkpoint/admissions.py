"""Requests that were accepted, kept until their thread has a checkpoint, and after.

    ad  agent, thread, request id     `k` the serialiser's type, `b` the request,
                                      `n` who wrote it

An admission is put once and never changed. Whether its run has begun is not written
down: the thread has a checkpoint that is younger than the admission, or it has none.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.layout import EPOCH, RECORDS, Scope, is_epoch, key_of
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.values import Typed
from jskv_saver.document.model import Document, Path, Pattern, path_of
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    StoreUnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)

ADMISSIONS: Final = "ad"
_SEGMENTS: Final = 3
_MOST_PREFIXES: Final = 64
"""Threads whose checkpoints are named one by one; of more, the whole agent's are."""
_CONCURRENT: Final = 16


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that was accepted.

    Attributes:
        thread_id: The thread that is to run it.
        request_id: Its id; the same one again is the same request.
        request: The request, as it was given.
        admitted_at: When it was accepted (aware, UTC).
        new: Whether the call that returned this accepted it; a repetition did not.
        begun: Whether its thread has a checkpoint that is younger.
    """

    thread_id: str
    request_id: str
    request: Any
    admitted_at: datetime
    new: bool = False
    begun: bool = False


class Stored(NamedTuple):
    """An admission as it is stored; the request is not deserialised."""

    thread: str
    id: str
    request: Typed
    admitted_at: datetime
    version: int
    writer: bytes
    new: bool = False
    begun: bool = False

    def given(self, serde: SerializerProtocol) -> Admission:
        """As a caller is given it."""
        return Admission(
            self.thread,
            self.id,
            serde.loads_typed(self.request),
            self.admitted_at,
            self.new,
            self.begun,
        )


class Admissions:
    """The admissions of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace

    async def admit(
        self, thread: str, id: str, request: Typed, serde: SerializerProtocol
    ) -> Stored:
        """Accept a request, once.

        Raises:
            VersionConflictError: Another request was accepted under this id.
            UnknownOutcomeError: The answer was lost, and it is not there (yet).
        """
        path = (self._partition.agent, thread, id)
        writer = secrets.token_bytes(8)
        data = {"k": request.kind, "b": request.content, "n": writer}
        lost: UnknownOutcomeError | None = None
        while True:
            try:
                document = await self._store.put(
                    self._namespace, ADMISSIONS, path, data, if_version=0
                )
                return decode_admission(document)._replace(new=True)
            except UnknownOutcomeError as exc:
                # Never repeated: it is there, or it may still come.
                lost = exc
            except VersionConflictError:
                pass
            try:
                found = decode_admission(
                    await self._store.get(self._namespace, ADMISSIONS, path)
                )
                break
            except (DocumentNotFoundError, StoreUnavailableError) as exc:
                # That it cannot be read does not mean that it was not stored.
                if lost is not None:
                    raise lost from None
                if isinstance(exc, StoreUnavailableError):
                    raise
                # Its thread was deleted between the refusal and this look.
        if not _alike(found.request, request, serde):
            raise VersionConflictError(
                f"request {id!r} of thread {thread!r} was accepted already, with other "
                "content; another request needs another request_id",
                expected=0,
                actual=found.version,
            )
        return found._replace(new=found.writer == writer)

    async def admitted(self, thread: str | None, *, begun: bool) -> list[Stored]:
        """What was accepted, oldest first.

        Costs the names of the admissions and of the checkpoints, and, in batches, the
        admissions and the newest checkpoint of each of their threads.

        Args:
            thread: Of this thread only; None: of all.
            begun: Those too whose run has begun.
        """
        agent = self._partition.agent
        within = (agent,) if thread is None else (agent, thread)
        names = await self._store.ids(self._namespace, ADMISSIONS, within=within)
        paths = [path for path in map(path_of, names) if len(path) == _SEGMENTS]
        found = [decode_admission(each) for each in await self._read(ADMISSIONS, paths)]
        youngest = await self._youngest({each.thread for each in found})
        marked = [
            each._replace(begun=youngest.get(each.thread, 0) > each.version)
            for each in found
        ]
        open_ones = [each for each in marked if not each.begun]
        late = await self._begun_by_other_clocks(open_ones, youngest)
        marked = [
            each._replace(begun=each.begun or (each.thread, each.id) in late)
            for each in marked
        ]
        marked.sort(key=lambda each: each.version)
        return [each for each in marked if begun or not each.begun]

    async def _youngest(self, threads: set[str]) -> dict[str, int]:
        """The version of the greatest checkpoint of each thread that has one."""
        if not threads:
            return {}
        agent = self._partition.agent
        within: Pattern | Sequence[Pattern] = (agent,)
        if len(threads) <= _MOST_PREFIXES:
            within = [(agent, thread, "") for thread in sorted(threads)]
        greatest: dict[str, str] = {}
        for id in await self._store.ids(self._namespace, RECORDS, within=within):
            path = path_of(id)
            if len(path) == 4 and path[1] in threads and path[2:3] == ("",):
                greatest[path[1]] = max(greatest.get(path[1], EPOCH), path[3])
        newest = [
            Scope(agent, thread, "").record(id)
            for thread, id in greatest.items()
            if id != EPOCH
        ]
        return {
            path_of(document.id)[1]: document.version
            for document in await self._read(RECORDS, newest)
        }

    async def _begun_by_other_clocks(
        self, unfinished: Sequence[Stored], youngest: dict[str, int]
    ) -> set[tuple[str, str]]:
        """Those whose run wrote below the greatest id: its clock is behind."""
        threads = sorted({e.thread for e in unfinished if e.thread in youngest})
        versions: dict[str, int] = {}
        for at in range(0, len(threads), _CONCURRENT):
            some = threads[at : at + _CONCURRENT]
            found = await asyncio.gather(*map(self._last_version, some))
            versions.update(zip(some, found, strict=True))
        return {
            (each.thread, each.id)
            for each in unfinished
            if versions.get(each.thread, 0) > each.version
        }

    async def _last_version(self, thread: str) -> int:
        """The version of the checkpoint of a thread that was stored last."""
        scope = Scope(self._partition.agent, thread, "")
        last = await self._partition.last_message(scope)
        if last is None or not is_epoch(last):
            return last.version if last else 0
        # A prune came after it: only the records themselves can say.
        names = await self._partition.names(scope)
        found = await self._read(RECORDS, map(scope.record, names))
        return max((document.version for document in found), default=0)

    async def _read(self, collection: str, paths: Iterable[Path]) -> list[Document]:
        wanted = [(collection, path) for path in paths]
        found: list[Document] = []
        for at in range(0, len(wanted), PAGE):
            page = await self._store.get_many(self._namespace, wanted[at : at + PAGE])
            found += page.values()
        return found


def decode_admission(document: Document) -> Stored:
    """An admission as it is stored.

    Raises:
        CorruptDocumentError: It is none.
    """
    try:
        _, thread, id = path_of(document.id)
        data = document.data
        return Stored(
            thread=thread,
            id=id,
            request=Typed(data["k"], data["b"]),
            admitted_at=document.created_at,
            version=document.version,
            writer=data["n"],
        )
    except (KeyError, ValueError) as exc:
        raise CorruptDocumentError(
            f"the admission {document.id!r} is not readable: {exc!r}",
            key=key_of(ADMISSIONS, document.id),
        ) from exc


def _alike(stored: Typed, new: Typed, serde: SerializerProtocol) -> bool:
    if stored == new:
        return True
    left, right = serde.loads_typed(stored), serde.loads_typed(new)
    # Encrypted bytes always differ, and a nan is not equal to itself.
    inner = getattr(serde, "serde", serde)
    return bool(inner.dumps_typed(left) == inner.dumps_typed(right) or left == right)
