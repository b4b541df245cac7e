"""Versions that say what they are of, and what of them makes a difference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from zlib import crc32

from jskv_saver.checkpoint.holding import LEASES
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, WRITES
from jskv_saver.document.model import Path

FIRST_VERSION = 1 << 40
"""Versions begin here in a game, so that no other number is one."""
_OTHER, _RECORD, _EPOCH, _WRITE, _LEASE = range(5)
_GROUPS = 10
"""Bits of a version that say what it is of."""
Label = tuple[int, ...]


class Stamps:
    """Gives versions: an even number that grows, with what it is of in its low bits.

    An odd one is what code makes of a version to mean "up to and including".
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, Path], int] = {("", ()): 0}
        # For each group its kind, the checkpoint's id, and a name for the path.
        self._kinds: list[tuple[int, str, int]] = [(_OTHER, "", 0)]

    def version(self, count: int, collection: str, path: Path) -> int:
        """The version of what is stored as the `count`th."""
        return FIRST_VERSION + ((count << _GROUPS | self._group(collection, path)) << 1)

    def _group(self, collection: str, path: Path) -> int:
        if collection not in (RECORDS, WRITES, LEASES):
            return 0
        group = self._groups.setdefault((collection, path), len(self._kinds))
        if group == len(self._kinds):
            assert group < 1 << _GROUPS
            kind = _WRITE if collection == WRITES else _RECORD
            kind = _EPOCH if kind == _RECORD and path[-1] == EPOCH else kind
            kind = _LEASE if collection == LEASES else kind
            id = "" if kind == _LEASE else path[3]
            self._kinds.append((kind, id, crc32(repr(path).encode())))
        return group

    def labels(self, versions: Iterable[int]) -> list[Label]:
        """Versions as what they are compared by.

        A record keeps its place among all records, for it is fenced on the last one.
        Writes are held to versions of the same document, to epochs, and to their
        checkpoint's record, whose second life may be younger than they; a lease's
        documents only to versions of the same document. Of anything else only matters
        which epochs are younger.
        """
        versions = list(versions)
        records: list[int] = []
        epochs: list[int] = []
        lives: dict[str, list[int]] = {}
        same: dict[int, list[int]] = {}
        mask = (1 << _GROUPS) - 1
        kinds = self._kinds
        for version in sorted({each & ~1 for each in versions}):
            group = version >> 1 & mask
            kind, id, _ = kinds[group]
            if kind == _OTHER:
                continue
            if kind in (_WRITE, _LEASE):
                same.setdefault(group, []).append(version)
                continue
            records.append(version)
            if kind == _EPOCH:
                epochs.append(version)
            else:
                lives.setdefault(id, []).append(version)
        found: dict[int, Label] = {}
        for each in versions:
            if each in found:
                continue
            version = each & ~1
            group = version >> 1 & mask
            kind, id, name = kinds[group]
            if kind == _OTHER:
                label: Label = (bisect_left(epochs, version), each & 1)
            elif kind == _LEASE:
                label = (bisect_left(same[group], version), each & 1, name)
            elif kind == _WRITE:
                label = (
                    bisect_left(epochs, version),
                    each & 1,
                    bisect_left(same[group], version),
                    bisect_left(lives.get(id, ()), version),
                    name,
                )
            else:
                label = (bisect_left(records, version), each & 1, name)
            found[each] = label
        return [found[each] for each in versions]
