"""The arguments of the port's methods, checked alike by every adapter. Pure.

Queries are parsed in `query`, declarations in `declarations`; this is the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from jskv_saver.document.model import Condition, Data, DocumentId, Fence, Path, Pattern
from jskv_saver.document.names import (
    PatternPath,
    check_collection,
    check_namespace,
    is_reserved,
    parse_id,
    parse_pattern,
    parse_prefix,
    shown,
)
from jskv_saver.document.values import MAX_INT, check_data
from jskv_saver.errors import InvalidRequestError

LEAST_TTL = 1.0
"""Seconds that a document lives at least: a server takes nothing shorter."""
MOST_TTL = 31_536_000.0
"""Seconds that it may live, where it is to expire at all: a year."""

ParsedFence: TypeAlias = tuple[Path, int]
"""A prefix of one or more exact segments, and a version."""


class PutRequest(NamedTuple):
    """A checked put. At most one of the two conditions is not None.

    Attributes:
        collection: The collection's name.
        path: The document's path.
        data: A private copy of its data.
        if_version: As of `put`.
        if_latest: As of `put`, the prefix parsed.
    """

    collection: str
    path: Path
    data: dict[str, Any]
    if_version: int | None = None
    if_latest: ParsedFence | None = None

    @property
    def keeps_creation(self) -> bool:
        """Whether `created_at` is that of the version replaced, by its condition."""
        return self.if_latest is None and self.if_version != 0


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """A checked delete.

    Attributes:
        collections: One, or with `subtree` one or more, each once.
        prefix: With `subtree` the prefix; else the document's path, without `ANY`.
        if_version: As of `delete`; only when neither of the others is given.
        subtree: Whether what is strictly below the prefix goes.
        below: Only versions smaller than this one.
    """

    collections: tuple[str, ...]
    prefix: PatternPath
    if_version: int | None = None
    subtree: bool = False
    below: int | None = None


def check_put(
    namespace: str,
    collection: str,
    id: DocumentId,
    data: Data,
    if_version: int | None = None,
    if_latest: Fence | None = None,
) -> PutRequest:
    """Check the arguments of `put`."""
    check_namespace(namespace)
    if if_version is not None and if_latest is not None:
        raise InvalidRequestError(
            "if_version and if_latest exclude each other: a write carries one condition"
        )
    return _put_request(collection, id, data, if_version, if_latest)


def check_put_expiring(
    namespace: str,
    collection: str,
    id: DocumentId,
    data: Data,
    ttl: float,
    if_version: int | None = None,
) -> PutRequest:
    """Check the arguments of `put_expiring`."""
    check_namespace(namespace)
    if not is_reserved(check_collection(collection)):
        raise InvalidRequestError(
            f"documents of {shown(collection)} do not expire: their index keys would "
            "be left behind; delete them when their time has come"
        )
    if type(ttl) not in (int, float) or not LEAST_TTL <= ttl <= MOST_TTL:
        raise InvalidRequestError(
            f"ttl must be a number of seconds from {LEAST_TTL:g} to {MOST_TTL:g}: "
            f"{ttl!r:.40}"
        )
    return _put_request(collection, id, data, if_version, None)


def _put_request(
    collection: str,
    id: DocumentId,
    data: Data,
    if_version: int | None,
    if_latest: Fence | None,
) -> PutRequest:
    return PutRequest(
        check_collection(collection),
        parse_id(id),
        check_data(data),
        None if if_version is None else check_version(if_version, "if_version"),
        None if if_latest is None else _parse_fence(if_latest),
    )


def check_put_many(
    namespace: str,
    writes: Iterable[tuple[str, DocumentId, Data, Condition]],
) -> tuple[PutRequest, ...]:
    """Check the arguments of `put_many`: all of them before the first is sent."""
    check_namespace(namespace)
    requests: list[PutRequest] = []
    for position, write in enumerate(_iterable(writes, "writes")):
        if type(write) not in (tuple, list) or len(write) != 4:
            raise InvalidRequestError(
                f"writes[{position}] is not (collection, id, data, condition)"
            )
        collection, id, data, condition = write
        try:
            requests.append(_check_write(collection, id, data, condition))
        except InvalidRequestError as exc:
            raise InvalidRequestError(f"writes[{position}]: {exc}") from exc
    return tuple(requests)


def check_get(namespace: str, collection: str, id: DocumentId) -> Path:
    """Check the arguments of `get`; returns the path."""
    check_namespace(namespace)
    check_collection(collection)
    return parse_id(id)


def check_get_many(
    namespace: str, reads: Iterable[tuple[str, Pattern]]
) -> tuple[tuple[str, PatternPath], ...]:
    """Check the arguments of `get_many`; returns collections and patterns."""
    check_namespace(namespace)
    parsed: list[tuple[str, PatternPath]] = []
    for position, read in enumerate(_iterable(reads, "reads")):
        if type(read) not in (tuple, list) or len(read) != 2:
            raise InvalidRequestError(f"reads[{position}] is not (collection, id)")
        collection, pattern = read
        parsed.append((check_collection(collection), parse_pattern(pattern)))
    return tuple(parsed)


def check_changes(
    namespace: str | None,
    reads: Iterable[tuple[str, Pattern]],
    removals: Iterable[Pattern],
    after: int | None,
) -> tuple[tuple[tuple[str, PatternPath], ...], tuple[PatternPath, ...]]:
    """Check the arguments of `changes`; returns the reads and the removals."""
    if after is not None:
        check_version(after, "after")
    parsed = check_get_many("any" if namespace is None else namespace, reads)
    for collection, _ in parsed:
        if not is_reserved(collection):
            raise InvalidRequestError(
                f"changes are told of the saver's collections, not of {collection!r}"
            )
    gone = tuple(map(parse_pattern, _iterable(removals, "removals")))
    if not parsed and not gone:
        raise InvalidRequestError("reads and removals are empty: nothing to follow")
    return parsed, gone


def check_newer(
    namespace: str, collection: str, within: Pattern, since: int
) -> PatternPath:
    """Check the arguments of `newer`; returns the prefix."""
    check_namespace(namespace)
    if not is_reserved(check_collection(collection)):
        raise InvalidRequestError(
            f"what is newer is told of the saver's collections, not of {collection!r}"
        )
    check_version(since, "since")
    return parse_prefix(within)


def check_delete(
    namespace: str,
    collection: str | Sequence[str],
    id: Pattern,
    if_version: int | None = None,
    subtree: bool = False,
    below: int | None = None,
) -> DeleteRequest:
    """Check the arguments of `delete`, and which of them go together."""
    check_namespace(namespace)
    if type(subtree) is not bool:
        raise InvalidRequestError(f"subtree is a {type(subtree).__name__}, not a bool")
    if if_version is not None:
        check_version(if_version, "if_version")
        if subtree or below is not None:
            raise InvalidRequestError("if_version goes neither with subtree nor below")
    if below is not None:
        check_version(below, "below")
    if not subtree:
        if not isinstance(collection, str):
            raise InvalidRequestError("without subtree, collection is one name")
        # Refuses `ANY`.
        prefix: PatternPath = parse_id(cast(DocumentId, id))
        names: tuple[str, ...] = (check_collection(collection),)
    else:
        prefix = parse_prefix(id)
        names = _collection_names(collection)
    return DeleteRequest(names, prefix, if_version, subtree, below)


def check_version(version: int, name: str) -> int:
    """Return a version, which is a non-negative int of signed 64 bits."""
    if type(version) is not int:
        raise InvalidRequestError(f"{name} is a {type(version).__name__}, not an int")
    if not 0 <= version <= MAX_INT:
        raise InvalidRequestError(f"{name} is not between 0 and 2**63 - 1")
    return version


def _check_write(
    collection: str, id: DocumentId, data: Data, condition: Any
) -> PutRequest:
    if condition is None or type(condition) is int:
        return _put_request(collection, id, data, condition, None)
    if type(condition) not in (tuple, list):
        raise InvalidRequestError(
            f"the condition is a {type(condition).__name__}, not an int, a pair "
            "(prefix, version), or None"
        )
    return _put_request(collection, id, data, None, condition)


def _parse_fence(fence: Fence) -> ParsedFence:
    if type(fence) not in (tuple, list) or len(fence) != 2:
        raise InvalidRequestError("if_latest is not a pair (prefix, version)")
    prefix, version = fence
    return parse_id(prefix), check_version(version, "the version of if_latest")


def _collection_names(collection: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(collection, str):
        return (check_collection(collection),)
    if type(collection) not in (tuple, list) or not collection:
        raise InvalidRequestError("collection is not a name or a list of names")
    return tuple(dict.fromkeys(map(check_collection, collection)))


def _iterable(values: Iterable[Any], name: str) -> Iterable[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidRequestError(f"{name} is a {type(values).__name__}, not a list")
    return values
