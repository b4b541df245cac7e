"""Rules for namespaces, collection names, ids, patterns and prefixes. Pure.

A path is one to 32 segments; a segment is any Unicode text without NUL and unpaired
surrogates, the empty text included, of at most 4096 UTF-8 bytes. Everything here
raises `InvalidRequestError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, TypeGuard

from jskv_saver.document.model import ANY, Path, _Any
from jskv_saver.errors import InvalidRequestError

RESERVED_COLLECTIONS: Final = ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn")
"""The saver's: in every namespace, never declared, listed or dropped."""

INTERNAL_COLLECTIONS: Final = ("ix",)
"""Names that adapters keep for themselves; no call may name them."""

MAX_NAME_CHARACTERS: Final = 128
MAX_SEGMENTS: Final = 32
MAX_SEGMENT_BYTES: Final = 4096

PatternPath: TypeAlias = tuple[str | Literal[_Any.ANY], ...]
"""A parsed pattern or prefix: segments, each of them a text or `ANY`."""

Prefixes: TypeAlias = tuple[PatternPath, ...]
"""Parsed `within`: none of them empty, none of them below another."""

_SURELY_SHORT: Final = MAX_SEGMENT_BYTES // 4
_RESERVED: Final = frozenset(RESERVED_COLLECTIONS)
_INTERNAL: Final = frozenset(INTERNAL_COLLECTIONS)


def is_text(value: str) -> bool:
    """Whether it has neither NUL nor an unpaired surrogate."""
    if "\0" in value:
        return False
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return True


def shown(value: object) -> str:
    """The value for an error message: escaped, and not longer than a line.

    Of what is not a string only the type: a foreign `repr` may do anything, and that
    of a very long int raises.
    """
    if type(value) is not str:
        return f"a {type(value).__name__}"
    return ascii(value) if len(value) <= 80 else f"{value[:76]!a}..."


def check_namespace(namespace: str) -> str:
    """Return the namespace, which is a text of 1 to 128 characters."""
    return _check_name("namespace", namespace)


def check_collection(name: str) -> str:
    """Return the name of a collection to read or write; the saver's are allowed."""
    _check_name("collection", name)
    if name in _INTERNAL:
        raise InvalidRequestError(f"the collection name {name!r} is internal")
    return name


def check_declarable(name: str) -> str:
    """Return the name of a collection to declare or drop; reserved ones are not."""
    check_collection(name)
    if name in _RESERVED:
        raise InvalidRequestError(
            f"the collection name {name!r} is reserved for the checkpoint saver"
        )
    return name


def is_reserved(name: str) -> bool:
    """Whether the collection is one of the saver's."""
    return name in _RESERVED


def parse_id(id: str | Path) -> Path:
    """The id as a path of one or more segments, all of them texts."""
    path = _segments("id", id)
    if not path:
        raise InvalidRequestError("an id needs at least one segment")
    if not is_exact(path):
        raise InvalidRequestError("ANY stands in patterns and prefixes, not in an id")
    return path


def parse_pattern(pattern: str | PatternPath) -> PatternPath:
    """The pattern as a path of one or more segments, any of which may be `ANY`."""
    path = _segments("pattern", pattern)
    if not path:
        raise InvalidRequestError("a pattern needs at least one segment")
    return path


def parse_prefix(prefix: str | PatternPath) -> PatternPath:
    """The prefix of a subtree to delete; an empty one is refused."""
    path = _segments("prefix", prefix)
    if not path:
        raise InvalidRequestError(
            "an empty prefix would be the whole collection: drop it instead"
        )
    return path


def parse_prefixes(
    within: str | PatternPath | Sequence[str | PatternPath] | None,
) -> Prefixes | None:
    """Parse `within`: a string or tuple is one prefix, a list several.

    Returns:
        None where everything is within (None, or a prefix that is empty); else the
        prefixes, sorted, without those that another one covers. An empty tuple, from
        an empty list, has nothing within. Two that remain may still overlap, by
        `ANY` in different places.
    """
    if within is None:
        return None
    if type(within) is list:
        paths = {_segments("within", prefix) for prefix in within}
    else:
        paths = {_segments("within", within)}
    if () in paths:
        return None
    wild = [path for path in paths if not is_exact(path)]
    kept = [path for path in paths if not _is_covered(path, paths, wild)]
    return tuple(sorted(kept, key=_prefix_order))


def is_exact(path: PatternPath) -> TypeGuard[Path]:
    """Whether no segment is `ANY`."""
    return ANY not in path


def matches(path: Path, pattern: PatternPath) -> bool:
    """Whether the path has exactly the pattern's segments."""
    if len(path) != len(pattern):
        return False
    return path == pattern or _fits(path, pattern)


def is_below(path: Path, prefix: PatternPath) -> bool:
    """Whether the path is strictly below the prefix, at any depth."""
    return len(path) > len(prefix) and _fits(path, prefix)


def is_within(path: Path, prefixes: Prefixes | None) -> bool:
    """Whether the path is strictly below one of the prefixes; None: always."""
    return prefixes is None or any(is_below(path, prefix) for prefix in prefixes)


def _fits(path: PatternPath, pattern: PatternPath) -> bool:
    for have, want in zip(path, pattern, strict=False):
        if want is not ANY and have != want:
            return False
    return True


def _is_covered(
    path: PatternPath, paths: set[PatternPath], wild: list[PatternPath]
) -> bool:
    """Whether another one has all that is below the path."""
    if any(path[:length] in paths for length in range(1, len(path))):
        return True
    return any(
        len(other) <= len(path) and other != path and _fits(path, other)
        for other in wild
    )


def _prefix_order(path: PatternPath) -> tuple[tuple[bool, str], ...]:
    return tuple((True, "") if segment is ANY else (False, segment) for segment in path)


def _check_name(what: str, name: str) -> str:
    if (
        type(name) is str
        and 0 < len(name) <= MAX_NAME_CHARACTERS
        and name.isascii()
        and "\0" not in name
    ):
        return name
    if type(name) is not str:
        raise InvalidRequestError(f"the {what} is a {type(name).__name__}, not a str")
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidRequestError(
            f"the {what} has {len(name)} characters, not 1 to {MAX_NAME_CHARACTERS}"
        )
    if not is_text(name):
        raise InvalidRequestError(
            f"the {what} {shown(name)} has a NUL or an unpaired surrogate"
        )
    return name


def _segments(what: str, value: Any) -> PatternPath:
    path: PatternPath
    if type(value) is str:
        path = (value,)
    elif type(value) is tuple:
        path = value
    else:
        raise InvalidRequestError(
            f"the {what} is a {type(value).__name__}, not a str or a tuple of str"
        )
    if len(path) > MAX_SEGMENTS:
        raise InvalidRequestError(
            f"the {what} has {len(path)} segments, more than {MAX_SEGMENTS}"
        )
    for position, segment in enumerate(path):
        # Inlined for usual ids: this runs several times for each put.
        if (
            type(segment) is str
            and len(segment) <= _SURELY_SHORT
            and segment.isascii()
            and "\0" not in segment
        ):
            continue
        if segment is not ANY:
            _check_segment(what, position, segment)
    return path


def _check_segment(what: str, position: int, segment: str) -> None:
    where = f"segment {position} of the {what}"
    if type(segment) is not str:
        raise InvalidRequestError(f"{where} is a {type(segment).__name__}, not a str")
    if not is_text(segment):
        raise InvalidRequestError(
            f"{where}, {shown(segment)}, has a NUL or an unpaired surrogate"
        )
    if len(segment) * 4 > MAX_SEGMENT_BYTES:
        size = len(segment.encode())
        if size > MAX_SEGMENT_BYTES:
            raise InvalidRequestError(
                f"{where} has {size} UTF-8 bytes, more than {MAX_SEGMENT_BYTES}"
            )
