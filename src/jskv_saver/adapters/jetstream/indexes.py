"""Which hints a document has, and which index serves a query. Pure.

A *hint* is an index key: it says that the document at a path has, or had, or is about
to have a value. Whoever reads it looks at the document. What is promised is the
other direction: a document that is there has its hints.

    ix./<ns>.<collection>.<index>.<value token…>.<path…>.<token>

The last token makes each hint one writer's own. A writer that is refused removes its
hints, one that replaces a document removes those that the document names, and neither
can take away a hint that somebody else relies upon, as it could if two writers of the
same value shared a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from jskv_saver.adapters.jetstream import keys, values
from jskv_saver.adapters.jetstream.records import Origin, Record
from jskv_saver.document.declarations import unique_constraints
from jskv_saver.document.model import CollectionSpec, Path
from jskv_saver.document.predicates import Filter

HINT: Final = b"1"
"""The value of a hint; its key says all."""


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index.

    Attributes:
        fields: The fields, sorted; several only in a compound constraint.
        unique: Whether no two documents may have the same values.
    """

    fields: tuple[str, ...]
    unique: bool

    @property
    def name(self) -> str:
        """Its name in keys."""
        return "\0".join(self.fields)

    def tokens(self, data: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The value tokens of a document; None when it is not in the index."""
        if len(self.fields) == 1:
            name = self.fields[0]
            return (values.value_token(data[name]),) if name in data else None
        found = [data.get(name) for name in self.fields]
        return None if None in found else tuple(map(values.value_token, found))

    def unique_tokens(self, data: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The value tokens that no other document may have; None if exempt."""
        if not self.unique or any(data.get(name) is None for name in self.fields):
            return None
        return self.tokens(data)


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of one version of a document.

    Attributes:
        origin: What the document says about them.
        new: Keys that must be written before it.
        stale: Keys that may go after it.
    """

    origin: Origin
    new: tuple[str, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """How an index serves a query.

    Hints are listed at one moment, all that the query needs: in two listings, of two
    values, a document that changes from one to the other between them has no hint.

    Attributes:
        index: The index.
        exact: The value tokens to list; empty: list the whole index.
        keeps: Whether documents under a value token may match.
    """

    index: Index
    exact: tuple[str, ...]
    keeps: Callable[[str], bool]


def indexes_of(spec: CollectionSpec) -> tuple[Index, ...]:
    """The indexes that a declaration asks for; each unique constraint is one."""
    unique = unique_constraints(spec)
    plain = {(field.name,) for field in spec.fields if field.indexed}
    return tuple(
        Index(fields, fields in unique) for fields in sorted(plain.union(unique))
    )


def plan_hints(
    namespace: str,
    collection: str,
    path: Path,
    indexes: Iterable[Index],
    birth: str,
    data: Mapping[str, Any],
    replaced: Record | None,
    *,
    carry: bool,
) -> Hints:
    """What to write and what to remove when a document is put.

    Args:
        namespace: The owner.
        collection: The collection.
        path: The document's path.
        indexes: Those that the writer must keep.
        birth: Of the collection.
        data: The new version's fields.
        replaced: The version that it replaces.
        carry: Whether the put is refused unless it replaces exactly that version, so
            that a hint which stays right need not be written again.
    """
    token = token_hex(5)
    names: dict[str, str] = {}
    new: list[str] = []
    stale: list[str] = []
    kept: set[str] = set()
    if replaced is not None:
        stale = hints_of(namespace, collection, replaced, indexes, birth)
    for index in indexes:
        tokens = index.tokens(data)
        if tokens is None:
            continue
        had = _carried(index, tokens, birth, replaced) if carry else None
        key = keys.index_key(
            namespace, collection, index.name, tokens, (*path, had or token)
        )
        names[index.name] = had or token
        if had is None:
            new.append(key)
        else:
            kept.add(key)
    return Hints(
        Origin(birth, names),
        tuple(new),
        tuple(key for key in stale if key not in kept),
    )


def hints_of(
    namespace: str,
    collection: str,
    record: Record,
    indexes: Iterable[Index],
    birth: str,
) -> list[str]:
    """The hints that belong to a stored document and to nothing else.

    Those that it names, and for the other indexes those that `backfill` gave it.
    """
    data, named = record.document.data, record.origin.hints
    found = [
        (Index(tuple(name.split("\0")), False), token) for name, token in named.items()
    ]
    found += [
        (index, _unnamed(record))
        for index in indexes
        if record.origin.birth != birth or index.name not in named
    ]
    return [
        keys.index_key(namespace, collection, index.name, tokens, (*record.path, token))
        for index, token in found
        if (tokens := index.tokens(data)) is not None
    ]


def backfill(
    namespace: str,
    collection: str,
    record: Record,
    indexes: Iterable[Index],
    birth: str,
) -> list[str]:
    """The hints that a document must have.

    Where it names none, its writer did not know of the index: the last token is then
    the document's version, so that they too are one version's.
    """
    named = record.origin.hints if record.origin.birth == birth else {}
    return [
        keys.index_key(
            namespace,
            collection,
            index.name,
            tokens,
            (*record.path, named.get(index.name, _unnamed(record))),
        )
        for index in indexes
        if (tokens := index.tokens(record.document.data)) is not None
    ]


def says(index: Index, hint: str, data: Mapping[str, Any] | None) -> bool:
    """Whether a hint says what is so of a document; None: it is gone."""
    if data is None:
        return False
    tokens, _ = keys.split_index_key(hint, width=len(index.fields), tail=1)
    return index.tokens(data) == tuple(tokens)


def plan_lookup(indexes: Sequence[Index], filters: Sequence[Filter]) -> Lookup | None:
    """The index that leaves the fewest documents to look at, or None."""
    best: tuple[int, Lookup] | None = None
    for index in indexes:
        ranked = _lookup(index, filters)
        if ranked is not None and (best is None or ranked[0] < best[0]):
            best = ranked
    return None if best is None else best[1]


def _lookup(index: Index, filters: Sequence[Filter]) -> tuple[int, Lookup] | None:
    """A rank, the smaller the better, and how the index serves the filters."""
    asked = [
        next((f for f in filters if f.field == name and f.operator == "eq"), None)
        for name in index.fields
    ]
    equal = [f.value for f in asked if f is not None]
    if len(equal) == len(index.fields):
        if len(equal) > 1 and None in equal:
            return None
        tokens = tuple(map(values.value_token, equal))
        return (0 if index.unique else 1), Lookup(index, tokens, keep_all)
    if len(index.fields) > 1:
        return None
    mine = [f for f in filters if f.field == index.fields[0]]
    for each in mine:
        if each.operator == "in":
            wanted = {values.value_token(value) for value in each.value}
            exact = tuple(wanted) if len(wanted) == 1 else ()
            return 2, Lookup(index, exact, wanted.__contains__)
    ranges = [
        _in_range(each.operator, values.value_token(each.value))
        for each in mine
        if each.operator in ("lt", "lte", "gt", "gte")
    ]
    if not ranges:
        return None
    return 3, Lookup(index, (), lambda token: all(keeps(token) for keeps in ranges))


def _in_range(operator: str, bound: str) -> Callable[[str], bool]:
    kind = values.kind_of_token(bound)
    ordered = values.is_ordered(bound)
    below = operator in ("lt", "lte")

    def keeps(token: str) -> bool:
        # The bound itself is kept in any case: the document decides.
        if values.kind_of_token(token) != kind:
            return False
        if not ordered or not values.is_ordered(token):
            return True
        return token <= bound if below else token >= bound

    return keeps


def keep_all(token: str) -> bool:
    """Of a lookup whose values are exact."""
    return True


def _carried(
    index: Index, tokens: tuple[str, ...], birth: str, replaced: Record | None
) -> str | None:
    """The last token of the hint that the replaced version has for these values."""
    if replaced is None or replaced.origin.birth != birth:
        return None
    if index.tokens(replaced.document.data) != tokens:
        return None
    return replaced.origin.hints.get(index.name)


def _unnamed(record: Record) -> str:
    return str(record.version)
