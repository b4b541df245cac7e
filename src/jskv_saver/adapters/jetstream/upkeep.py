"""The store's calls beside the port: they look at collections, and mend them."""

from __future__ import annotations

from collections.abc import Sequence

from jskv_saver._portal import Portal
from jskv_saver.adapters.jetstream.bucket import Bucket
from jskv_saver.adapters.jetstream.checking import Checking
from jskv_saver.adapters.jetstream.reading import Reading
from jskv_saver.document.findings import SETTLE, Finding, check_settle
from jskv_saver.document.model import Document, Pattern
from jskv_saver.document.names import check_namespace
from jskv_saver.document.requests import check_newer


class StoreUpkeep:
    """What a store does for its collections beside the port."""

    _portal: Portal
    _bucket: Bucket
    _checking: Checking
    _reading: Reading

    @property
    def finds_newer(self) -> bool:
        """As of `FindsNewer`."""
        return self._bucket.finds_newer

    async def newer(
        self, namespace: str, collection: str, within: Pattern, since: int
    ) -> Sequence[Document] | None:
        """As of `FindsNewer`."""
        prefix = check_newer(namespace, collection, within, since)
        return await self._portal.arun(
            self._reading.newer, namespace, collection, prefix, since
        )

    async def owners(self) -> Sequence[str]:
        """The owners of declared collections in the bucket, sorted."""
        return await self._portal.arun(self._checking.owners)

    async def thread_owners(self) -> Sequence[str]:
        """The owners of anything that belongs to threads, indexed or not, sorted."""
        return await self._portal.arun(self._checking.thread_owners)

    async def verify(
        self, namespace: str, *, settle: float = SETTLE
    ) -> Sequence[Finding]:
        """Look at an owner's collections: what is damaged, missing or left over.

        Args:
            namespace: The owner.
            settle: Seconds for which something must be wrong to be found: what a
                writer is about to put right is no finding.
        """
        check_namespace(namespace)
        return await self._portal.arun(
            self._checking.verify, namespace, check_settle(settle)
        )

    async def repair(self, namespace: str) -> None:
        """Mend an owner's indexes, and remove what calls that died left of them."""
        check_namespace(namespace)
        await self._portal.arun(self._checking.repair, namespace)
