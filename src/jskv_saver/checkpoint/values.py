"""Values in the documents of checkpoints: serialised, in runs, and packed. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import ormsgpack

from jskv_saver.checkpoint.increments import Run

KNOWN: Final = 12
"""How many of the greatest ids a record names: a short listing needs no names."""


USUAL: Final = "msgpack"
"""The serde type of nearly every value; 0 in a record."""


class Typed(NamedTuple):
    """A value as LangGraph's serde gives it."""

    kind: str
    content: bytes


class Entry:
    """Where a value of a record is: its serde type and its runs.

    One that was read makes its runs when they are asked for: a listing reads many, and
    joins them without.

    Args:
        kind: The serde type.
        runs: The runs.
        flat: In their place: part number, offset and length of each, in a row.
        table: The names of the parts, by number; the record itself is the last one.
    """

    __slots__ = ("_flat", "_runs", "_table", "kind")

    def __init__(
        self,
        kind: str,
        runs: tuple[Run, ...] | None = None,
        flat: Sequence[int] = (),
        table: Sequence[bytes] = (),
    ) -> None:
        self.kind = kind
        self._runs = runs
        self._flat = flat
        self._table = table

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return self.kind == other.kind and self.runs == other.runs

    def __hash__(self) -> int:
        return hash((self.kind, self.runs))

    def __repr__(self) -> str:
        return f"Entry({self.kind!r}, {self.runs!r})"

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, in order."""
        if self._runs is None:
            self._runs = tuple([Run(*piece) for piece in self.pieces()])
        return self._runs

    def pieces(self) -> Iterable[tuple[bytes, int, int]]:
        """The runs, in order, as plain tuples."""
        if self._runs is not None:
            return self._runs
        flat, table = self._flat, self._table
        names = [table[at] for at in flat[::3]]
        return zip(names, flat[1::3], flat[2::3], strict=True)

    @property
    def length(self) -> int:
        """The value's size in bytes."""
        if self._runs is None:
            return sum(self._flat[2::3])
        return sum([run.length for run in self._runs])

    @property
    def named(self) -> int:
        """How many of its runs name a part; the others are the record's own bytes."""
        return len([True for part, _, _ in self.pieces() if part])


class Entries(Mapping[str, Entry]):
    """The values of a record that was read, each made an entry when it is asked for.

    Args:
        flat: For each value its serde type, then part number, offset and length of each
            run, in a row.
        table: The names of the parts, by number; the record itself is the last one.
    """

    __slots__ = ("_flat", "_made", "_table")

    def __init__(self, flat: Mapping[str, Sequence[Any]], table: Sequence[bytes]):
        self._flat = flat
        self._table = table
        self._made: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        entry = self._made.get(name)
        if entry is None:
            entry = self._made[name] = read_entry(self._flat[name], self._table)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._flat

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat)

    def __len__(self) -> int:
        return len(self._flat)


def read_entry(flat: Sequence[Any], table: Sequence[bytes]) -> Entry:
    """The entry of a value, as `Entries` is given it.

    Raises:
        IndexError: It names a part that is not in the table.
        ValueError: It is no such row.
    """
    kind, *places = flat
    numbers = places[::3]
    if numbers and not -1 <= min(numbers) <= max(numbers) < len(table) - 1:
        raise IndexError("a value names a part that its record does not")
    if len(places) % 3:
        raise ValueError("a value is not where it should be")
    return Entry(USUAL if kind == 0 else kind, None, places, table)


def join(entry: Entry, inline: bytes, parts: Mapping[bytes, bytes]) -> bytes:
    """The bytes of a value, from the record's own and those of its parts.

    Raises:
        KeyError: A part is missing; its digest.
    """
    pieces = list(entry.pieces())
    if len(pieces) == 1:
        part, offset, length = pieces[0]
        source = parts[part] if part else inline
        if length == len(source):
            return source
        return source[offset : offset + length]
    return b"".join(
        [
            (parts[part] if part else inline)[offset : offset + length]
            for part, offset, length in pieces
        ]
    )


@lru_cache(maxsize=4096)
def bytes_of(id: str) -> bytes:
    """The 16 bytes of a UUID in its usual form; empty for any other id."""
    try:
        raw = bytes.fromhex(id.replace("-", "")) if len(id) == 36 else b""
    except ValueError:
        return b""
    return raw if len(raw) == 16 and uuid_of(raw) == id else b""


def uuid_of(raw: bytes) -> str:
    """The usual form of a UUID of 16 bytes."""
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def greatest(known: Sequence[str], id: str) -> tuple[str, ...]:
    """The `KNOWN` greatest ids, greatest first.

    Args:
        known: Those up to now, greatest first.
        id: One more, or one of them.
    """
    if not known or id > known[0]:
        return (id, *known[: KNOWN - 1])
    return tuple(sorted({*known, id}, reverse=True)[:KNOWN])


def pack(layout: object) -> bytes:
    """A layout as MessagePack; as JSON where it has what that cannot (surrogates)."""
    try:
        return ormsgpack.packb(layout)
    except TypeError:
        return json.dumps(layout, separators=(",", ":")).encode()


def unpack(packed: bytes) -> Any:
    """What `pack` was given, tuples as lists.

    Raises:
        ValueError: It is neither.
    """
    # No layout is the number that begins with this byte in MessagePack.
    if packed.startswith(b"["):
        return json.loads(packed)
    return ormsgpack.unpackb(packed)
