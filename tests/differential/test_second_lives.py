"""An id that was removed and stored again: what a game has found."""

from __future__ import annotations

import pytest
from tests.checkpoint.saving import put, values

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore


@pytest.mark.parametrize("size", [10, 5000])
async def test_a_checkpoint_is_the_same_again_whatever_its_parent_was_before(
    size: int,
) -> None:
    store = MemoryDocumentStore()
    mine, other = DocumentCheckpointSaver(store), DocumentCheckpointSaver(store)
    second, version = {"c": "second" * size}, {"c": 1}
    async with mine, other:
        await put(mine, "1", {"c": "first" * size}, versions=version)
        await other.adelete_thread("t")
        await put(other, "1", second, versions=version)
        await put(other, "2", second, parent="1", versions=version, new={})
        await put(mine, "2", second, parent="1", versions=version, new={})
        assert await values(mine, "2") == second
