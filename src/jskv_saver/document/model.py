"""The values that a document store takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, TypeAlias


class _Any(Enum):
    ANY = "ANY"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any.ANY
"""In a pattern or prefix: any one segment."""

Segment: TypeAlias = str
Path: TypeAlias = tuple[Segment, ...]
DocumentId: TypeAlias = str | Path
"""One or more segments. A plain string is a path of one segment."""

Pattern: TypeAlias = str | tuple[Segment | Literal[_Any.ANY], ...]
"""An id or id prefix in which a segment may be `ANY`."""

Data: TypeAlias = Mapping[str, Any]
"""A document's fields; see `DocumentStore` for the types that values may have."""

Fence: TypeAlias = tuple[DocumentId, int]
"""A prefix, and the greatest version that is present below it (0: nothing is)."""

Condition: TypeAlias = int | Fence | None
"""Of one write in `put_many`: `if_version`, `if_latest`, or none."""

FieldType: TypeAlias = Literal[
    "string", "int", "float", "bool", "datetime", "bytes", "json"
]

Operator: TypeAlias = Literal[
    "eq", "ne", "lt", "lte", "gt", "gte", "in", "nin", "contains", "exists"
]
Predicate: TypeAlias = tuple[str, Operator, Any]
Order: TypeAlias = tuple[str, Literal["asc", "desc"]]

Write: TypeAlias = tuple[str, DocumentId, Data, Condition]
"""Of `put_many`: collection, id, data, condition."""


def path_of(id: DocumentId) -> Path:
    """The id as a tuple of segments."""
    return (id,) if isinstance(id, str) else id


def id_of(path: Path) -> DocumentId:
    """The normal form of an id: a plain string where the path has one segment."""
    return path[0] if len(path) == 1 else path


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document.

    Attributes:
        id: Its id in normal form: a string for one segment, else a tuple.
        data: Its fields. The caller's own copy.
        version: Grows with every write in the store and is never used again; on
            JetStream it is the KV revision.
        created_at: When the id was first put (aware, UTC).
        updated_at: When this version was put (aware, UTC).
    """

    id: DocumentId
    data: dict[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A declared top-level field.

    Attributes:
        name: The field's name, literally: a dot is a character.
        type: What a value that is neither absent nor null must be.
        indexed: Keep a secondary index, for `eq`, `in` and ranges.
        unique: No two documents have the same value; null and absent are exempt.
    """

    name: str
    type: FieldType
    indexed: bool = False
    unique: bool = False


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """A declaration of a collection.

    Attributes:
        name: The collection's name.
        fields: The declared fields; others may be stored as well.
        unique_together: Groups of two or more declared fields whose values together
            are unique; the order inside a group has no meaning, and a document in
            which one of them is null or absent is exempt.
    """

    name: str
    fields: tuple[FieldSpec, ...] = ()
    unique_together: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Some documents in order, and where the next page begins.

    Attributes:
        items: At most `limit` documents.
        cursor: Give it to the next `find`; None when nothing follows.
    """

    items: tuple[Document, ...] = ()
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may measure.

    Attributes:
        data: Bytes of the encoded data that are accepted for certain.
    """

    data: int = 1_000_000


ReadKey: TypeAlias = tuple[str, DocumentId]
"""Of `get_many`'s answer: collection, and id in normal form."""

Reads: TypeAlias = Sequence[tuple[str, Pattern]]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was written or removed.

    Attributes:
        namespace: The owner.
        collection: The collection; empty where everything below an id was removed from
            all of the saver's.
        id: The document's id in normal form, or the prefix of what was removed.
        version: The change's own version: greater than that of all before it.
        at: When the store took it (aware, UTC).
        document: The document; None: it was removed.
    """

    namespace: str
    collection: str
    id: DocumentId
    version: int
    at: datetime
    document: Document | None
