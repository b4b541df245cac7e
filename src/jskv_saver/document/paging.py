"""`iterate` in terms of `find`, for every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from typing import Protocol

from jskv_saver.document.model import (
    Document,
    Order,
    Page,
    Pattern,
    Predicate,
)
from jskv_saver.document.query import Query, check_limit


class Find(Protocol):
    """The shape of `DocumentStore.find`."""

    def __call__(
        self,
        namespace: str,
        collection: str,
        where: Iterable[Predicate] = (),
        *,
        order_by: Order | None = None,
        limit: int = 100,
        cursor: str | None = None,
        within: Pattern | Sequence[Pattern] | None = None,
    ) -> Awaitable[Page]:
        """Read a page."""
        ...


def iterate(
    find: Find,
    namespace: str,
    collection: str,
    where: Iterable[Predicate] = (),
    *,
    order_by: Order | None = None,
    within: Pattern | Sequence[Pattern] | None = None,
    page_size: int = 100,
) -> AsyncIterator[Document]:
    """All matching documents, page by page.

    The arguments are checked, and iterables used up, by the call itself; `find` is
    first awaited when the first document is asked for.

    Raises:
        InvalidRequestError: An argument breaks a rule.
    """
    check_limit(page_size, "page_size")
    query = Query.parse(namespace, collection, where, order_by, page_size, None, within)
    return _iterate(find, query)


async def _iterate(find: Find, query: Query) -> AsyncIterator[Document]:
    cursor: str | None = None
    while True:
        page = await find(
            query.namespace,
            query.collection,
            query.predicates,
            order_by=query.order_by,
            limit=query.limit,
            cursor=cursor,
            within=query.prefixes,
        )
        for document in page.items:
            yield document
        if page.cursor is None:
            return
        cursor = page.cursor
