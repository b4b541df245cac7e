"""A process that is killed before one of its messages."""

from __future__ import annotations

from tests.attacks.operations import OPERATIONS, spill_early
from tests.integration.stores import MortalBucket, die_for_real, store_over

from jskv_saver import DocumentCheckpointSaver


async def act(url: str, bucket: str, operation: str, thread: str, lives: int) -> None:
    """Do an operation in a process that sends so many messages, and dies."""
    spill_early()
    store = store_over(MortalBucket(url, bucket, lives, die_for_real))
    async with DocumentCheckpointSaver(store, close_store=True) as saver:
        await OPERATIONS[operation].call(saver, thread)
