"""Serialisation is the user's: nothing of ours pickles, whatever is called."""

from __future__ import annotations

from tests.attacks.nursery import nursery

LIVE = "tests.attacks.unpickled:live"


async def test_no_operation_pickles_or_unpickles(nats_url: str, bucket: str) -> None:
    common = {"url": nats_url, "bucket": bucket}
    async with nursery() as processes:
        assert await processes.run(LIVE, **common, foreign=False) == 0
        # The same process notices LangGraph's own fallback, which we never set.
        assert await processes.run(LIVE, **common, foreign=True) == 0
