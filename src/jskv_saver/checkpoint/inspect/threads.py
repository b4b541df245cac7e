"""Which threads there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jskv_saver.checkpoint.envelope import is_sealed
from jskv_saver.checkpoint.inspect.reading import (
    RECORD_SEGMENTS,
    greatest_first,
    is_record,
    read,
)
from jskv_saver.checkpoint.layout import RECORDS, THREADS
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.document.model import ANY, Document, Path, Pattern, path_of
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError

_SEGMENTS = {THREADS: 3, RECORDS: RECORD_SEGMENTS}


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """A thread: its owner's namespace, its agent, its id."""

    namespace: str
    agent: str
    thread: str

    @property
    def prefix(self) -> Path:
        """The prefix of all that the thread owns."""
        return (self.agent, self.thread)


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """What is known of a thread without opening its checkpoints.

    Attributes:
        ref: Which one it is.
        checkpoints: How many it has, in all checkpoint namespaces.
        namespaces: Its checkpoint namespaces; the root's is empty.
        newest_id: The greatest checkpoint id; None if it has none (yet).
        newest_at: When that one was stored.
        encrypted: Whether that one is encrypted.
        newest_ns: Its checkpoint namespace.
    """

    ref: ThreadRef
    checkpoints: int
    namespaces: tuple[str, ...]
    newest_id: str | None
    newest_at: datetime | None
    encrypted: bool = False
    newest_ns: str | None = None


async def list_threads(
    store: DocumentStore,
    namespaces: Iterable[str],
    *,
    agent: str | None = None,
    limit: int | None = None,
) -> list[ThreadInfo]:
    """The threads of some namespaces, the most recently moved on first.

    Costs the names of all their checkpoints, and one record for each thread given.

    Args:
        store: Where they are.
        namespaces: The owners to look at.
        agent: Only threads of this agent; None: of all.
        limit: How many to give at most; None: all.
    """
    found: dict[ThreadRef, dict[Path, None]] = {}
    within = None if agent is None else (agent,)
    for namespace in namespaces:
        # A thread may have no checkpoint yet: its index entry comes first.
        for collection, segments in _SEGMENTS.items():
            for id in await store.ids(namespace, collection, within=within):
                path = path_of(id)
                # Other programs may have put other keys into the bucket.
                if len(path) == segments:
                    ref = ThreadRef(namespace, path[0], path[1])
                    found.setdefault(ref, {})[path] = None
    greatest = {
        ref: max(filter(is_record, paths), key=greatest_first, default=None)
        for ref, paths in found.items()
    }
    order = sorted(
        found,
        key=lambda ref: ((greatest[ref] or ("",))[-1], ref.thread, ref.agent),
        reverse=True,
    )[:limit]
    # What is encrypted needs no key for that.
    raw = store.store if isinstance(store, SealedStore) else store
    newest = await _newest(raw, [(ref, greatest[ref]) for ref in order])
    return [
        ThreadInfo(
            ref=ref,
            checkpoints=sum(map(is_record, found[ref])),
            namespaces=tuple(sorted({path[2] for path in found[ref]})),
            newest_id=at[-1] if (at := greatest[ref]) else None,
            newest_at=newest[ref].created_at if ref in newest else None,
            encrypted=ref in newest and is_sealed(newest[ref].data),
            newest_ns=at[2] if at else None,
        )
        for ref in order
    ]


async def find_thread(
    store: DocumentStore,
    namespaces: Iterable[str],
    thread: str,
    *,
    agent: str | None = None,
) -> ThreadRef:
    """The one thread with this id.

    Raises:
        DocumentNotFoundError: There is none.
        InvalidRequestError: There are several; the message says where.
    """
    within: Pattern = (ANY if agent is None else agent, thread)
    found = {
        ThreadRef(namespace, path_of(id)[0], thread)
        for namespace in namespaces
        for collection, segments in _SEGMENTS.items()
        for id in await store.ids(namespace, collection, within=within)
        if len(path_of(id)) == segments
    }
    if not found:
        raise DocumentNotFoundError(
            f"there is no thread {thread!r} here", collection=RECORDS, id=thread
        )
    if len(found) > 1:
        places = ", ".join(
            f"namespace {ref.namespace!r} agent {ref.agent!r}"
            for ref in sorted(found, key=lambda ref: (ref.namespace, ref.agent))
        )
        raise InvalidRequestError(
            f"there are {len(found)} threads {thread!r}: {places}; "
            "say which one is meant with namespace and agent (--namespace and --agent)"
        )
    return found.pop()


async def _newest(
    store: DocumentStore, wanted: Sequence[tuple[ThreadRef, Path | None]]
) -> dict[ThreadRef, Document]:
    paths: dict[str, list[tuple[ThreadRef, Path]]] = {}
    for ref, path in wanted:
        if path is not None:
            paths.setdefault(ref.namespace, []).append((ref, path))
    newest: dict[ThreadRef, Document] = {}
    for namespace, pairs in paths.items():
        found = await read(store, namespace, [(RECORDS, path) for _, path in pairs])
        newest.update((ref, found[path]) for ref, path in pairs if path in found)
    return newest
