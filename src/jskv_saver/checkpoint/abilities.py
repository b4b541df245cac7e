"""An encrypting store that can do what the store below it can: no more, no less."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.document.model import (
    Change,
    Data,
    Document,
    DocumentId,
    Pattern,
    Reads,
)
from jskv_saver.document.port import (
    Changes,
    DocumentStore,
    ExpiresDocuments,
    FindsNewer,
    ForeseesVersions,
    OffersChanges,
)
from jskv_saver.document.values import check_data
from jskv_saver.errors import (
    CorruptDocumentError,
    InvalidRequestError,
    UnsupportedFormatError,
)

_log = logging.getLogger(__name__)


def sealed_store(store: DocumentStore, encryption: Encryption | None) -> DocumentStore:
    """A store that encrypts, with the abilities of the one below; None: that one.

    Raises:
        InvalidRequestError: `encryption` is something else.
    """
    if encryption is None:
        return store
    if not isinstance(encryption, Encryption):
        raise InvalidRequestError(
            "encryption must be an Encryption, e.g. Encryption.from_env(), not a "
            f"{type(encryption).__name__}"
        )
    able = tuple([ability for ability in _ABILITIES if isinstance(store, ability)])
    return _class(type(store).__name__, able)(store, encryption)


class _Foreseeing:
    """Guesses at its next version."""

    store: Any

    @property
    def next_version(self) -> int | None:
        """As of the store."""
        next_version: int | None = self.store.next_version
        return next_version


class _FindingNewer(SealedStore):
    """Finds what was written since."""

    store: Any

    @property
    def finds_newer(self) -> bool:
        """As of the store."""
        finds: bool = self.store.finds_newer
        return finds

    async def newer(
        self, namespace: str, collection: str, within: Pattern, since: int
    ) -> Sequence[Document] | None:
        """As of the store, decrypted."""
        found = await self.store.newer(namespace, collection, within, since)
        return found and [self.opened(namespace, collection, each) for each in found]


class _Telling(SealedStore):
    """Tells what is written."""

    store: Any

    def changes(
        self,
        namespace: str | None,
        reads: Reads,
        *,
        removals: Sequence[Pattern] = (),
        after: int | None = None,
    ) -> Changes:
        """As of the store, decrypted."""
        changes = self.store.changes(namespace, reads, removals=removals, after=after)
        return _OpenedChanges(self, changes)


class _Expiring(SealedStore):
    """Has documents that expire."""

    store: Any

    async def put_expiring(
        self,
        namespace: str,
        collection: str,
        id: DocumentId,
        data: Data,
        *,
        ttl: float,
        if_version: int | None = None,
    ) -> Document:
        """As of the store, encrypted."""
        data = check_data(data)
        stored: Document = await self.store.put_expiring(
            namespace,
            collection,
            id,
            self.sealed(namespace, collection, id, data),
            ttl=ttl,
            if_version=if_version,
        )
        return replace(stored, data=data)


class _OpenedChanges:
    """Changes of an encrypted store; what is damaged is left out."""

    def __init__(self, store: SealedStore, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def open(self) -> None:
        """As of the store."""
        await self._changes.open()

    async def next(self) -> Change:
        """As of the store, decrypted."""
        while True:
            change = await self._changes.next()
            document = change.document
            if document is None:
                return change
            try:
                opened = self._store.opened(
                    change.namespace, change.collection, document
                )
            except (CorruptDocumentError, UnsupportedFormatError) as exc:
                _log.warning(
                    "left out of the changes: %s",
                    exc,
                    extra={"event": "jskv.watch.left_out"},
                )
            else:
                return replace(change, document=opened)

    async def close(self) -> None:
        """As of the store."""
        await self._changes.close()


_ABILITIES: Final[dict[type, type]] = {
    ExpiresDocuments: _Expiring,
    FindsNewer: _FindingNewer,
    ForeseesVersions: _Foreseeing,
    OffersChanges: _Telling,
}
"""What some stores can do, and how an encrypting one does."""


@lru_cache
def _class(name: str, able: tuple[type, ...]) -> type[SealedStore]:
    # Who asks what a store can do looks at its class.
    bases = (*[_ABILITIES[ability] for ability in able], SealedStore)
    made: type[SealedStore] = type(name, bases, {})
    return made
