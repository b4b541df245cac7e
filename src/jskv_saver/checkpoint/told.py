"""What an epoch tells those who watch, beside what the protocol needs of it. Pure.

The epoch that ends a prune names what was removed, in a field that no writer reads: it
replaces the one that announced it, which a watcher may not have seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jskv_saver.checkpoint.layout import key_of
from jskv_saver.checkpoint.values import pack, unpack
from jskv_saver.document.model import Document
from jskv_saver.errors import CorruptDocumentError

_REMOVED = "x"


def with_removed(epoch: dict[str, Any], ids: Iterable[str]) -> dict[str, Any]:
    """The document of an epoch that also names what was removed."""
    named = sorted(ids)
    return {**epoch, _REMOVED: pack(named)} if named else epoch


def removed_in(document: Document) -> tuple[str, ...]:
    """The checkpoints that an epoch says were removed.

    Raises:
        CorruptDocumentError: It is not readable.
    """
    packed = document.data.get(_REMOVED)
    if packed is None:
        return ()
    try:
        return tuple(map(str, unpack(packed)))
    except (ValueError, TypeError) as exc:
        raise CorruptDocumentError(
            f"the epoch {document.id!r} is not readable: {exc!r}",
            key=key_of("cp", document.id),
        ) from exc
