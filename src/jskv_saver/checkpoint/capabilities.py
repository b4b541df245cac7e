"""What some stores can do and others cannot, and what to say where they cannot."""

from __future__ import annotations

from jskv_saver.document.port import ExpiresDocuments, OffersChanges
from jskv_saver.errors import InvalidRequestError


def telling(store: object) -> OffersChanges:
    """The store, if it tells its changes.

    Raises:
        InvalidRequestError: It does not.
    """
    if not isinstance(store, OffersChanges):
        raise InvalidRequestError(
            f"a {type(store).__name__} does not tell its changes: watch over a "
            "JetStreamDocumentStore, with a connection that may read the bucket"
        )
    return store


def expiring(store: object) -> ExpiresDocuments:
    """The store, if its documents may expire.

    Raises:
        InvalidRequestError: They may not.
    """
    if not isinstance(store, ExpiresDocuments):
        raise InvalidRequestError(
            f"a {type(store).__name__} has no documents that expire, which a lease "
            "needs: hold one over a JetStreamDocumentStore, or use "
            "on_conflict='raise', which needs none"
        )
    return store
