"""Epochs: what opens a namespace, and names those that a removal takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from jskv_saver.checkpoint.layout import (
    RECORDS,
    Record,
    unreadable,
)
from jskv_saver.checkpoint.values import pack, unpack
from jskv_saver.document.model import Document


@dataclass(frozen=True, slots=True)
class Epoch:
    """The last prune of a namespace, or its opening.

    Attributes:
        known: The greatest surviving ids, greatest first; None: look at the names.
        dead: Ids that are to be removed, with the versions of their records.
        version: The document's version.
        since: Of those that an earlier epoch had named already, its version.
        claimed: Where an expiry has named all, and may take that back: the dead
            without it, and since when. None: what is dead is so for good.
    """

    known: tuple[str, ...] | None
    dead: Mapping[str, int]
    version: int = 0
    since: Mapping[str, int] = field(default_factory=dict)
    claimed: tuple[Mapping[str, int], Mapping[str, int]] | None = None

    @property
    def decided(self) -> Epoch:
        """The same without an expiry's claim: what another removal goes by.

        It puts an epoch of its own in the place, and so ends the claim.
        """
        if self.claimed is None:
            return self
        dead, since = self.claimed
        return replace(self, dead=dead, since=since, claimed=None)

    def kills(self, record: Record) -> bool:
        """Whether a record was to be removed; one that was put again is not."""
        return record.version <= self.dead.get(record.id, -1)

    def named_at(self, id: str) -> int:
        """The version of the epoch that was the first to name one of the dead.

        Its writes up to there go with it; who removes it spares what came later, and
        whoever finishes that must spare the same.
        """
        return self.since.get(id, self.version)


def encode_epoch(
    known: Iterable[str] | None,
    dead: Mapping[str, int] = MappingProxyType({}),
    since: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """The document of an epoch."""
    known = None if known is None else list(known)
    return {"e": pack((known, sorted(dead.items()), sorted(since.items())))}


def encode_claim(
    dead: Mapping[str, int],
    since: Mapping[str, int],
    before: Mapping[str, int],
    named: Mapping[str, int],
) -> dict[str, Any]:
    """The document of an epoch that an expiry may take back.

    Args:
        dead: All records.
        since: As for an epoch.
        before: The dead without it.
        named: The versions of the epochs that were the first to name those.
    """
    claim = pack((sorted(before.items()), sorted(named.items())))
    return {**encode_epoch(None, dead, since), "c": claim}


def decode_epoch(document: Document) -> Epoch:
    """The epoch of a document.

    Raises:
        CorruptDocumentError: The document is not an epoch.
        EncryptionError: It is encrypted, and no key was given.
    """
    try:
        known, dead, since = unpack(document.data["e"])
        claimed = None
        if "c" in document.data:
            before, named = unpack(document.data["c"])
            claimed = dict(before), dict(named)
        return Epoch(
            None if known is None else tuple(known),
            dict(dead),
            document.version,
            dict(since),
            claimed,
        )
    except (KeyError, ValueError, TypeError) as exc:
        what = f"the epoch {document.id!r} is not readable: {exc!r}"
        raise unreadable(RECORDS, document, what) from exc
