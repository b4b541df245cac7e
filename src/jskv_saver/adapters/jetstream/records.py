"""Bucket entries ⇄ documents, and what a stored document says about its hints. Pure.

A document in an indexed collection carries, beside its fields, the birth of the
collection that it was written into and for each index the token at the end of its
hint's key (see `indexes`). Both stand in the encoded data under a name that no field
can have, for it is a NUL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from jskv_saver.adapters.jetstream import codec, keys
from jskv_saver.adapters.jetstream.bucket import Entry
from jskv_saver.document.model import Document, Path, id_of
from jskv_saver.errors import CorruptDocumentError

_ORIGIN: Final = "\0"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document's hints are.

    Attributes:
        birth: Of the collection (see `catalog`) that the writer knew.
        hints: Index name → last token of the hint's key.
    """

    birth: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A stored document.

    Attributes:
        key: Its key.
        path: Its id's segments.
        document: The document.
        origin: Where its hints are.
    """

    key: str
    path: Path
    document: Document
    origin: Origin

    @property
    def version(self) -> int:
        """The document's version: the entry's revision."""
        return self.document.version


NOWHERE: Final = Origin()


def path_in(key: str) -> Path | None:
    """The path in a document's key; None where the key holds a part of it only."""
    path = keys.path_of_key(key)
    return path if keys.is_complete(path) else None


def encode_record(
    data: dict[str, Any],
    created: datetime,
    updated: datetime,
    path: Path,
    origin: Origin = NOWHERE,
) -> bytes:
    """The stored bytes of a document."""
    if origin.birth:
        data = {**data, _ORIGIN: [origin.birth, dict(origin.hints)]}
    kept = path if keys.needs_path(path) else None
    return codec.encode(data, created, updated, kept)


def decode_record(entry: Entry, path: Path | None = None) -> Record:
    """The document in an entry.

    Args:
        entry: The entry of a document's key.
        path: The id, where the caller knows it.

    Raises:
        CorruptDocumentError: Not what `encode_record` gave.
        UnsupportedFormatError: A newer release wrote it.
    """
    body = codec.decode(entry.key, entry.value)
    if path is None:
        path = body.path or path_in(entry.key)
        if path is None:
            raise CorruptDocumentError(f"{entry.key} lacks its id", key=entry.key)
    origin = NOWHERE
    stored = body.data.pop(_ORIGIN, None)
    if stored is not None:
        origin = Origin(stored[0], stored[1])
    document = Document(
        id_of(path), body.data, entry.revision, body.created, body.updated
    )
    return Record(entry.key, path, document, origin)
