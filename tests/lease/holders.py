"""Holders that sleep, and processes that hold leases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.leases import Lease
from jskv_saver.document.model import DocumentId
from jskv_saver.errors import LeaseLostError


def stop_renewing(lease: Lease) -> None:
    """As if its process stood still from here on."""
    assert lease._stop is not None
    lease._portal.home().call_soon_threadsafe(lease._stop.set)


@asynccontextmanager
async def sleeping(lease: Lease) -> AsyncIterator[Lease]:
    """A block whose lease is not renewed, as that of a process that stands still."""
    async with lease:
        stop_renewing(lease)
        yield lease


async def expire(saver: DocumentCheckpointSaver, thread: str = "t") -> None:
    """What the server does when the time of a holder is over, at once."""
    path = (saver.agent_id, thread, "holder")
    await saver.store.delete(saver.namespace, "ls", path)


@contextmanager
def lost_at_the_end() -> Iterator[None]:
    """Around a block that ends with the news that its lease was lost in it."""
    try:
        yield
    except LeaseLostError:
        return
    raise AssertionError("nobody says that the lease was lost")


async def leases_left(saver: DocumentCheckpointSaver) -> Sequence[DocumentId]:
    """What is stored of leases, of all threads."""
    return await saver.store.ids(saver.namespace, "ls")
