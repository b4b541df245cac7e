"""The one meaning of `find` and `count`: what matches, in which order, from where.

Pure. An adapter parses a `Query` before any I/O, gathers candidates by whatever index
it has, and lets the query decide:

    query = Query.parse(namespace, collection, where, order_by, limit, cursor, within)
    page = query.page(query.sort(d for d in candidates if query.matches(d)))

In the order of ids, `paths_after_cursor` slices sorted paths before anything is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, TypeAlias, cast

from jskv_saver.document import cursor as cursors
from jskv_saver.document.model import (
    Document,
    Order,
    Page,
    Path,
    Pattern,
    Predicate,
    path_of,
)
from jskv_saver.document.names import (
    PatternPath,
    Prefixes,
    check_collection,
    check_namespace,
    is_within,
    parse_prefixes,
    shown,
)
from jskv_saver.document.ordering import canonical_bytes, order_key
from jskv_saver.document.predicates import Filter, check_field, parse_where
from jskv_saver.errors import InvalidRequestError

MAX_LIMIT: Final = 1000
VERSION_ORDER: Final = "@version"

SortKey: TypeAlias = tuple[Any, ...]
"""Sorts documents of one query; ascending, whatever the direction."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    Attributes:
        namespace: The owner.
        collection: The collection's name.
        filters: The parsed predicates; all must hold.
        order_by: A field or `@version`, and a direction; None: by id, ascending.
        limit: 1 to 1000.
        within: Parsed prefixes; None: everything.
        cursor_anchor: The sort key of the last document of the page before; in the
            order of ids the path itself. None: the first page.
    """

    namespace: str
    collection: str
    filters: tuple[Filter, ...] = ()
    order_by: Order | None = None
    limit: int = 100
    within: Prefixes | None = None
    cursor_anchor: SortKey | None = None

    @classmethod
    def parse(
        cls,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        order_by: Order | None = None,
        limit: int = 100,
        cursor: str | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Query:
        """Check the arguments of `find` or `count`; iterables are used up here.

        Raises:
            InvalidRequestError: One of them breaks a rule, or the cursor is not of
                this query.
        """
        query = cls(
            check_namespace(namespace),
            check_collection(collection),
            parse_where(where),
            _parse_order(order_by),
            check_limit(limit),
            parse_prefixes(within),
        )
        if cursor is None:
            return query
        return query._with_anchor(query._decode(cursor))

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The predicates again, checked and materialised."""
        return tuple((f.field, f.operator, f.value) for f in self.filters)

    @property
    def prefixes(self) -> list[PatternPath] | None:
        """`within` again, as `find` takes it."""
        return None if self.within is None else list(self.within)

    @property
    def by_id(self) -> bool:
        """Whether the order is that of ids, so that ids suffice to sort."""
        return self.order_by is None

    @property
    def by_version(self) -> bool:
        """Whether the order is that of versions."""
        return self.order_by is not None and self.order_by[0] == VERSION_ORDER

    @property
    def descending(self) -> bool:
        """Whether the greatest key comes first."""
        return self.order_by is not None and self.order_by[1] == "desc"

    def matches(self, document: Document) -> bool:
        """Whether the document is within and all predicates hold."""
        return self.matches_path(path_of(document.id)) and self.matches_data(
            document.data
        )

    def matches_path(self, path: Path) -> bool:
        """Whether the path is within."""
        return is_within(path, self.within)

    def matches_data(self, data: dict[str, Any]) -> bool:
        """Whether all predicates hold."""
        for each in self.filters:
            if not each.matches(data):
                return False
        return True

    def key(self, document: Document) -> SortKey:
        """What the document sorts by, before the direction."""
        path = path_of(document.id)
        if self.order_by is None:
            return path
        if self.by_version:
            return (document.version,)
        return order_key(document.data.get(self.order_by[0])), path

    def sort(self, documents: Iterable[Document]) -> list[Document]:
        """The documents in the query's order."""
        return sorted(documents, key=self.key, reverse=self.descending)

    def after_cursor(self, document: Document) -> bool:
        """Whether the document comes after the page before."""
        if self.cursor_anchor is None:
            return True
        if self.descending:
            return self.key(document) < self.cursor_anchor
        return self.key(document) > self.cursor_anchor

    def paths_after_cursor(self, paths: Sequence[Path]) -> Sequence[Path]:
        """Of sorted paths those after the page before; in the order of ids only."""
        if not self.by_id:
            raise ValueError("only in the order of ids do paths have a place")
        if self.cursor_anchor is None:
            return paths
        return paths[bisect_right(paths, self.cursor_anchor) :]

    def page(self, documents: Iterable[Document]) -> Page:
        """The page of documents that match and are in order.

        What is before the cursor is left out, so that all may be given, or only
        those from the cursor on; at least `limit` + 1 where there are as many, for
        only what is given counts as following.
        """
        items: list[Document] = []
        for document in documents:
            if not self.after_cursor(document):
                continue
            if len(items) == self.limit:
                return Page(tuple(items), self.cursor_after(items[-1]))
            items.append(document)
        return Page(tuple(items))

    def cursor_after(self, document: Document) -> str:
        """The cursor of a page that ends with this document."""
        path = path_of(document.id)
        if self.order_by is None:
            return cursors.encode_path(self._binding(), path)
        if self.by_version:
            return cursors.encode_version(self._binding(), document.version)
        key = order_key(document.data.get(self.order_by[0]))
        return cursors.encode_field(self._binding(), key, path)

    def _decode(self, cursor: str) -> SortKey:
        if self.order_by is None:
            return cursors.decode_path(self._binding(), cursor)
        if self.by_version:
            return (cursors.decode_version(self._binding(), cursor),)
        return cursors.decode_field(self._binding(), cursor)

    def _with_anchor(self, anchor: SortKey) -> Query:
        return Query(
            self.namespace,
            self.collection,
            self.filters,
            self.order_by,
            self.limit,
            self.within,
            anchor,
        )

    def _binding(self) -> bytes:
        """A digest of all that a cursor is bound to."""
        filters = tuple(sorted({each.canonical() for each in self.filters}))
        return _digest(
            self.namespace, self.collection, filters, self.order_by, self.within
        )


@lru_cache(maxsize=1024)
def _digest(
    namespace: str,
    collection: str,
    filters: tuple[bytes, ...],
    order_by: Order | None,
    within: Prefixes | None,
) -> bytes:
    """Of a query; the same ones are asked again and again."""
    prefixes: list[list[Any]] | None = None
    if within is not None:
        # ANY becomes null, which no segment is.
        prefixes = [
            [segment if isinstance(segment, str) else None for segment in prefix]
            for prefix in within
        ]
    order = None if order_by is None else list(order_by)
    bound = [namespace, collection, list(filters), order, prefixes]
    return sha256(canonical_bytes(bound)).digest()


def check_limit(limit: int, name: str = "limit") -> int:
    """Return a limit or page size, which is an int from 1 to 1000."""
    if type(limit) is not int:
        raise InvalidRequestError(f"{name} is a {type(limit).__name__}, not an int")
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequestError(f"{name} is not between 1 and {MAX_LIMIT}")
    return limit


def _parse_order(order_by: Any) -> Order | None:
    if order_by is None:
        return None
    if type(order_by) not in (tuple, list) or len(order_by) != 2:
        raise InvalidRequestError('order_by is not a pair (field, "asc" or "desc")')
    field, direction = order_by
    check_field(field, "the field of order_by")
    if type(direction) is not str or direction not in ("asc", "desc"):
        raise InvalidRequestError(
            f'the direction of order_by is {shown(direction)}, not "asc" or "desc"'
        )
    return cast(Order, (field, direction))
