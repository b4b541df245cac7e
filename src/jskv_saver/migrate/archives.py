"""An archive of `jskv export` as a place to move threads from or to: all in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jskv_saver.adapters.memory import MemoryDocumentStore
from jskv_saver.checkpoint.archive import ArchiveReader
from jskv_saver.checkpoint.archived import ArchivedThread
from jskv_saver.checkpoint.inspect import ThreadRef, list_threads
from jskv_saver.checkpoint.saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.transfer import export_threads, import_threads
from jskv_saver.errors import InvalidRequestError

Owner = tuple[str, str]
_DEFAULT: Owner = ("default", "default")


@asynccontextmanager
async def archive(
    path: Path, namespace: str | None, agent: str | None, *, keep: bool
) -> AsyncIterator[DocumentCheckpointSaver]:
    """A saver with an archive's threads, of one module namespace and agent.

    Args:
        path: The file.
        namespace: The owner; None: that of the threads in it.
        agent: The agent; None: that of the threads in it.
        keep: Write the file anew at the end, threads of other owners included.
            Nothing is written where the end is an error.

    Raises:
        InvalidRequestError: Threads of several owners are in it, and none is chosen.
        CorruptDocumentError: It is damaged, or not whole.
    """
    store = MemoryDocumentStore()
    owners = _owners(path)
    if owners:
        with path.open("rb") as stream:
            await import_threads(store, stream)
    chosen = _chosen(owners, namespace, agent)
    async with DocumentCheckpointSaver(
        store, namespace=chosen[0], agent_id=chosen[1]
    ) as saver:
        yield saver
    if keep:
        await _write(store, owners | {chosen}, path)
    await store.close()


def _owners(path: Path) -> set[Owner]:
    """Whose threads are in a file; nobody's where there is none."""
    if not path.exists():
        return set()
    with path.open("rb") as stream:
        return {
            (item.namespace, item.agent)
            for item in ArchiveReader(stream)
            if isinstance(item, ArchivedThread)
        }


def _chosen(owners: set[Owner], namespace: str | None, agent: str | None) -> Owner:
    fitting = [
        owner
        for owner in sorted(owners)
        if namespace in (None, owner[0]) and agent in (None, owner[1])
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting or (namespace and agent):
        return namespace or _DEFAULT[0], agent or _DEFAULT[1]
    told = ", ".join(f"namespace={one}&agent={two}" for one, two in fitting)
    raise InvalidRequestError(f"the archive has threads of several owners: add {told}")


async def _write(store: MemoryDocumentStore, owners: set[Owner], path: Path) -> None:
    """A file that is there when it is whole, and not before."""
    refs: list[ThreadRef] = []
    for namespace in sorted({owner[0] for owner in owners}):
        refs += [info.ref for info in await list_threads(store, [namespace])]
    refs.sort(key=lambda ref: (ref.namespace, ref.agent, ref.thread))
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            await export_threads(store, refs, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
