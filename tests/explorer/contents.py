"""What a document, or an answer, says, with its versions apart."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from jskv_saver.checkpoint.epochs import Epoch, decode_epoch, encode_epoch
from jskv_saver.checkpoint.layout import EPOCH, RECORDS
from jskv_saver.document.model import Document, Path

_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def digest(content: Any) -> bytes:
    """A short name of a structure of plain values."""
    return blake2b(marshal.dumps(content, 1), digest_size=16).digest()


def is_epoch_at(collection: str, path: Path) -> bool:
    """Whether an epoch is kept there."""
    return collection == RECORDS and path[-1] == EPOCH


def content_of(
    collection: str, path: Path, data: Mapping[str, Any]
) -> tuple[bytes, tuple[int, ...]]:
    """A short name of what a document says, and the versions that it mentions."""
    content: object = sorted(data.items())
    mentioned: tuple[int, ...] = ()
    if is_epoch_at(collection, path):
        epoch = _epoch(data)
        content = epoch.known, sorted(epoch.dead), sorted(epoch.since)
        mentioned = tuple(
            named[id] for named in (epoch.dead, epoch.since) for id in sorted(named)
        )
    return blake2b(repr(content).encode(), digest_size=8).digest(), mentioned


def with_mentions(data: Any, versions: tuple[int, ...]) -> dict[str, Any]:
    """The data of an epoch that mentions other versions."""
    epoch = _epoch(data)
    if encode_epoch(epoch.known, epoch.dead, epoch.since) != data:
        raise AssertionError("an epoch says more than is known here")
    at = len(epoch.dead)
    return encode_epoch(
        epoch.known,
        dict(zip(sorted(epoch.dead), versions[:at], strict=True)),
        dict(zip(sorted(epoch.since), versions[at:], strict=True)),
    )


def _epoch(data: Mapping[str, Any]) -> Epoch:
    return decode_epoch(Document((EPOCH,), dict(data), 0, _NO_TIME, _NO_TIME))
