"""An error that says "nothing was written" says so only when nothing was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from tests.checkpoint.saving import at, get, put

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.document.model import Document, ReadKey, Reads, Write
from jskv_saver.errors import StoreUnavailableError, UnknownOutcomeError


class Leaving(MemoryDocumentStore):
    """Its server goes away after so many calls that write."""

    lives: int | None = None
    forgets = False

    async def put_many(
        self, namespace: str, writes: Iterable[Write], *, exact: bool = True
    ) -> Sequence[Document]:
        if self.lives is not None:
            if not self.lives:
                raise StoreUnavailableError("nothing was sent")
            self.lives -= 1
        return await super().put_many(namespace, writes, exact=exact)

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        if self.lives == 0 and not self.forgets:
            raise StoreUnavailableError("no answer")
        return {} if self.forgets else await super().get_many(namespace, reads)


@pytest.mark.parametrize("forgets", [False, True], ids=["look back", "store again"])
async def test_large_writes_that_are_stored_and_not_verified_are_in_doubt(
    forgets: bool,
) -> None:
    """The server goes before it is known that no removal came in between."""
    store = Leaving()
    async with DocumentCheckpointSaver(store) as saver:
        await put(saver, "1", {"x": 1})
        store.lives, store.forgets = 1, forgets
        with pytest.raises(UnknownOutcomeError):
            await saver.aput_writes(at("1"), [("a", "l" * 400_000)], "task")
        store.lives, store.forgets = 0, False
        with pytest.raises(StoreUnavailableError):
            await saver.aput_writes(at("1"), [("b", "small")], "other")
        store.lives = None
        found = await get(saver, "1")
        assert found.pending_writes == [("task", "a", "l" * 400_000)]
