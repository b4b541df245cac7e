"""Drafts of checkpoints, and their records as they are read back."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.checkpoint.saving import at, checkpoint, meta

from jskv_saver.checkpoint.config import parse_ref
from jskv_saver.checkpoint.drafts import (
    Base,
    Draft,
    draft_of,
)
from jskv_saver.checkpoint.layout import (
    Record,
    decode_record,
    encode_record,
)
from jskv_saver.checkpoint.values import (
    uuid_of,
)
from jskv_saver.document.model import Document

SERDE = JsonPlusSerializer()
PART_SIZE = 20_000


def draft(
    id: str,
    values: Mapping[str, Any],
    versions: Mapping[str, Any],
    new: Mapping[str, Any],
    parent: str | None = None,
    **metadata: Any,
) -> Draft:
    config = at(parent)
    return draft_of(
        parse_ref(config),
        "agent",
        SERDE,
        lambda scope, id: None,
        config,
        checkpoint(id, values, versions),
        meta(**metadata),
        dict(new),
    )


def stored(record: Record) -> Record:
    """The record as it is read back from its document."""
    now = datetime.now(UTC)
    fields = encode_record(record)
    return decode_record(Document(("a", "t", "", record.id), fields, 7, now, now))


def uuid_at(n: int) -> str:
    """The id with this number among UUIDs."""
    return f"00000000-0000-0000-0000-{n:012x}"


def text(n: int) -> str:
    """Text of 600 bytes that has nothing in common with another number's."""
    return random.Random(n).randbytes(300).hex()


def growing(n: int, log: Sequence[str], base: Base | None = None) -> Draft:
    """A checkpoint with this number whose value grew since its parent."""
    parent = base.record.id if base else None
    return draft(uuid_at(n), {"log": log}, {"log": n}, {"log": n}, parent=parent)


def found_by(
    record: Record, bases: Mapping[str, Base], apart: Mapping[bytes, bytes]
) -> dict[bytes, bytes]:
    """The parts of a record, each from where the record says that it is."""
    parts: dict[bytes, bytes] = {}
    located = record.located
    for digest in record.digests():
        id = located.get(digest)
        if id is None:
            parts[digest] = apart[digest]
        else:
            # Nobody refers to a record with a greater id.
            assert uuid_of(id) <= record.id
            parts[digest] = bases[uuid_of(id)].record.brought[digest]
    return parts
