"""A collection's catalog entry: its declaration and how far it has been carried out.

The entry is rewritten by compare-and-set only. Its revision is a boundary: a writer
that read another one before its write, than it reads after it, has written under an
old declaration. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from secrets import token_hex
from typing import Any

from jskv_saver.adapters.jetstream import codec
from jskv_saver.adapters.jetstream.bucket import Entry
from jskv_saver.adapters.jetstream.indexes import Index, indexes_of
from jskv_saver.document.model import CollectionSpec, FieldSpec
from jskv_saver.errors import CorruptDocumentError


class State(Enum):
    """How far a declaration has been carried out."""

    READY = "ready"
    """Queries use the indexes."""

    BUILDING = "building"
    """Writers keep the indexes and constraints; present documents are not yet in."""

    DROPPED = "dropped"
    """The collection is gone; what is left of it is being removed."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """A decoded catalog entry.

    Attributes:
        spec: The declaration.
        birth: Differs between two collections of one name, one dropped before the
            other was created.
        state: How far it has been carried out.
        previous: While building: the declaration to go back to.
        revision: Of the entry.
        indexes: Those that writers keep.
    """

    spec: CollectionSpec
    birth: str
    state: State = State.READY
    previous: CollectionSpec | None = None
    revision: int = 0
    indexes: tuple[Index, ...] = ()

    @property
    def unique(self) -> bool:
        """Whether there is a unique constraint, so that all writes are fenced."""
        return any(index.unique for index in self.indexes)

    @property
    def usable(self) -> tuple[Index, ...]:
        """The indexes that queries may use."""
        return self.indexes if self.state is State.READY else ()

    def at(self, revision: int) -> Catalog:
        """The same, stored."""
        return replace(self, revision=revision)

    def building(self, spec: CollectionSpec) -> Catalog:
        """What begins to carry out an extended declaration."""
        previous = self.spec if self.state is State.READY else self.previous
        return Catalog(
            spec, self.birth, State.BUILDING, previous, indexes=indexes_of(spec)
        )

    def built(self) -> Catalog:
        """What ends it."""
        return replace(self, state=State.READY, previous=None)

    def restored(self) -> Catalog:
        """What takes it back."""
        spec = self.previous or self.spec
        return Catalog(spec, self.birth, indexes=indexes_of(spec))

    def dropped(self) -> Catalog:
        """What begins to remove the collection."""
        return replace(self, state=State.DROPPED, previous=None)


def born(spec: CollectionSpec) -> Catalog:
    """A new collection."""
    return Catalog(spec, token_hex(6), indexes=indexes_of(spec))


def encode_catalog(catalog: Catalog) -> bytes:
    """The stored bytes."""
    now = datetime.now(UTC)
    data: dict[str, Any] = {
        "spec": _encode_spec(catalog.spec),
        "birth": catalog.birth,
        "state": catalog.state.value,
    }
    if catalog.previous is not None:
        data["previous"] = _encode_spec(catalog.previous)
    return codec.encode(data, now, now)


def decode_catalog(entry: Entry) -> Catalog:
    """The catalog in an entry.

    Raises:
        CorruptDocumentError: Not what `encode_catalog` gave.
        UnsupportedFormatError: A newer release wrote it.
    """
    data = codec.decode(entry.key, entry.value).data
    try:
        spec = _decode_spec(data["spec"])
        previous = data.get("previous")
        return Catalog(
            spec,
            data["birth"],
            State(data["state"]),
            None if previous is None else _decode_spec(previous),
            entry.revision,
            indexes_of(spec),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise CorruptDocumentError(
            f"{entry.key} is not a catalog entry", key=entry.key
        ) from exc


def _encode_spec(spec: CollectionSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "fields": [[f.name, f.type, f.indexed, f.unique] for f in spec.fields],
        "unique_together": [list(group) for group in spec.unique_together],
    }


def _decode_spec(data: dict[str, Any]) -> CollectionSpec:
    return CollectionSpec(
        data["name"],
        tuple(
            FieldSpec(name, type_, indexed=indexed, unique=unique)
            for name, type_, indexed, unique in data["fields"]
        ),
        tuple(tuple(group) for group in data["unique_together"]),
    )
