"""(namespace, collection, path) ⇄ KV key: the only place that knows the key layout.

    <collection>.<ns>.<path…>                              the saver's documents
    <collection>./<ns>.d.<path…>                           other documents
    <collection>./<ns>.c                                   a collection's catalog entry
    <collection>./<ns>.t                                   its change tick
    <collection>./<ns>.b.<path…>                           bars a late creation
    ix./<ns>.<collection>.<index>.<value token…>.<path…>.<token>   index keys
    ix.//<ns>.<collection>.<slot>                          intents (`intents.py`)
    th./<ns>.<path…>                                       the removal of a thread

Each `<…>` is one encoded token (`tokens.py`). No encoded token begins with `/`, so
that the purge of a thread, `*.<ns>.<agent>.<thread>.>`, meets the saver's keys only.
Index keys stand apart, so that what is newest under `<collection>./<ns>.>` changes with
the documents, the declaration and the tick, but not with what is written ahead of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias, TypeGuard

from jskv_saver._nats.tokens import (
    TOKEN_LIMIT,
    Digested,
    decode_token,
    encode_token,
    is_digested,
    is_plain_token,
)
from jskv_saver.document.model import ANY, Path, Pattern
from jskv_saver.document.names import (
    RESERVED_COLLECTIONS,
    PatternPath,
    check_namespace,
)
from jskv_saver.errors import CorruptDocumentError, InvalidRequestError

RESERVED: Final = frozenset(RESERVED_COLLECTIONS)
"""The saver's collections."""

_DOCUMENT: Final = "d"
_BAR: Final = "b"
_CATALOG: Final = "c"
_TICK: Final = "t"
_INDEX: Final = "ix"
_THREADS: Final = "th"

KEY_LIMIT: Final = 3900
"""Bytes of a key that fit a control line of 4096 with any usual bucket and inbox."""

_SHORT: Final = TOKEN_LIMIT // 6 - 1

KeyPath: TypeAlias = tuple[str | Digested, ...]
"""A path read from a key: segments whose text is not in the key are `Digested`."""


def document_key(namespace: str, collection: str, path: Path) -> str:
    """The key of a document."""
    return _documents(namespace, collection) + ".".join(map(encode_token, path))


@lru_cache(maxsize=4096)
def document_filter(
    namespace: str, collection: str, prefix: Pattern, *, deep: bool = False
) -> str:
    """The filter that meets documents by id; `ANY` is one segment, whatever it is.

    Args:
        namespace: The owner.
        collection: The collection.
        prefix: The id, or the beginning of it; may be empty with `deep`.
        deep: Meet everything strictly below the prefix instead of the id itself.
    """
    segments = (prefix,) if isinstance(prefix, str) else prefix
    tokens = ["*" if s is ANY else encode_token(s) for s in segments]
    if deep:
        tokens.append(">")
    if not tokens:
        raise InvalidRequestError("an id has at least one segment")
    return _documents(namespace, collection) + ".".join(tokens)


def thread_filter(namespace: str, prefix: Pattern) -> str:
    """Everything strictly below a prefix in all of the saver's collections."""
    segments = (prefix,) if isinstance(prefix, str) else prefix
    if not segments:
        raise InvalidRequestError("an empty prefix would meet everything of an owner")
    tokens = ["*" if s is ANY else encode_token(s) for s in segments]
    return f"*.{encode_token(namespace)}.{'.'.join(tokens)}.>"


def removal_key(namespace: str, path: Path) -> str:
    """The key under which the removal of a thread is announced for a while.

    The purge of the thread, the listing of threads and the fences of its puts do not
    meet it.
    """
    return f"{_THREADS}./{encode_token(namespace)}.{'.'.join(map(encode_token, path))}"


def removal_filter(namespace: str | None, pattern: PatternPath) -> str:
    """The announced removals of ids; of all owners where there is no namespace."""
    tokens = ["*" if s is ANY else encode_token(s) for s in pattern]
    owner = "*" if namespace is None else f"/{encode_token(namespace)}"
    return ".".join((_THREADS, owner, *tokens))


def change_filter(namespace: str | None, collection: str, pattern: PatternPath) -> str:
    """Documents of the saver by id; of all owners where there is no namespace."""
    tokens = ["*" if s is ANY else encode_token(s) for s in pattern]
    owner = "*" if namespace is None else encode_token(namespace)
    return ".".join((collection, owner, *tokens))


def owner_and_removal(key: str) -> tuple[str | Digested, bool]:
    """The owner in a key of the saver's, and whether it announces a removal.

    Raises:
        CorruptDocumentError: The key is not of this package.
    """
    tokens = key.split(".")
    removal = tokens[0] == _THREADS and tokens[1:2] != [] and tokens[1][:1] == "/"
    try:
        if tokens[0] in RESERVED and len(tokens) > 2:
            return decode_token(tokens[1][removal:]), removal
    except ValueError:
        pass
    raise _not_a_document(key)


def owners_filter() -> str:
    """The index keys of all threads, of all owners."""
    return f"{_THREADS}.>"


def declarations_filter() -> str:
    """The declarations of all collections, of all owners."""
    return f"*.*.{_CATALOG}"


def owner_filters(namespace: str) -> tuple[str, str]:
    """All documents in an owner's collections, and all their index keys."""
    owner = encode_token(namespace)
    return f"*./{owner}.{_DOCUMENT}.>", f"{_INDEX}./{owner}.>"


def index_name(key: str) -> str:
    """The name of the index that an index key is of; empty where it is a digest.

    Raises:
        CorruptDocumentError: The key is none.
    """
    try:
        name = decode_token(_index_tokens(key, 1)[3])
    except ValueError:
        raise _not_an_index_key(key) from None
    return name if isinstance(name, str) else ""


def owners(names: Iterable[str]) -> set[str]:
    """The owners in keys of the saver's collections; digested names are left out.

    Those of other keys begin with `/`, which no owner's token does.
    """
    found: set[str] = set()
    for token in {name.split(".")[1] for name in names}:
        try:
            owner = decode_token(token)
            if isinstance(owner, str):
                found.add(check_namespace(owner))
        except ValueError:
            # A key that another program made.
            continue
    return found


def collection_filter(namespace: str, collection: str) -> str:
    """Everything of a collection but its index keys: documents, catalog entry, tick."""
    if collection in RESERVED:
        return f"{collection}.{encode_token(namespace)}.>"
    return f"{encode_token(collection)}./{encode_token(namespace)}.>"


def catalog_key(namespace: str, collection: str) -> str:
    """The key of a collection's declaration."""
    return f"{encode_token(collection)}./{encode_token(namespace)}.{_CATALOG}"


def catalog_filter(namespace: str) -> str:
    """The declarations of all collections of an owner."""
    return f"*./{encode_token(namespace)}.{_CATALOG}"


def tick_key(namespace: str, collection: str) -> str:
    """The key that changes with each change of a collection."""
    return f"{encode_token(collection)}./{encode_token(namespace)}.{_TICK}"


def bar_key(document: str) -> str:
    """The key that bars a late creation of the document with this key."""
    return _beside(document, _BAR)


def bar_filter(document: str) -> str:
    """The document with this key, and its bar."""
    return _beside(document, "*")


def intent_key(namespace: str, collection: str, slot: str) -> str:
    """The key of an intent; it stands apart from all index keys."""
    return f"{_intents(namespace, collection)}{slot}"


def intent_filter(namespace: str, collection: str) -> str:
    """All intents of a collection."""
    return f"{_intents(namespace, collection)}*"


def index_key(
    namespace: str, collection: str, index: str, values: Sequence[str], path: Path
) -> str:
    """The index key of one document under its value tokens."""
    tokens = ".".join((*values, *map(encode_token, path)))
    return f"{_indexes(namespace, collection)}{encode_token(index)}.{tokens}"


def index_filter(
    namespace: str,
    collection: str,
    index: str | None = None,
    values: Sequence[str] = (),
) -> str:
    """Index keys of a collection, of one index, or of one index's leading values."""
    front = _indexes(namespace, collection)
    if index is None:
        return front + ">"
    return front + ".".join((encode_token(index), *values, ">"))


def path_of_key(key: str) -> KeyPath:
    """The path of a document's key.

    Raises:
        CorruptDocumentError: The key is not of this package.
    """
    before, _, last = key.rpartition(".")
    try:
        above = _reserved_path(before)
        if above:
            return (*above, decode_token(last))
    except ValueError:
        raise _not_a_document(key) from None
    tokens = key.split(".")
    reserved = tokens[0] in RESERVED
    declared = tokens[0] != _INDEX and tokens[1:2] != [] and tokens[1][:1] == "/"
    if reserved or (declared and tokens[2:3] == [_DOCUMENT]):
        path = tokens[2:] if reserved else tokens[3:]
        if path:
            with suppress(ValueError):
                return _path(path)
    raise _not_a_document(key)


def _not_a_document(key: str) -> CorruptDocumentError:
    return CorruptDocumentError(f"{key!r} is not the key of a document", key=key)


@lru_cache(maxsize=16_384)
def _reserved_path(key: str) -> KeyPath:
    """The path in what precedes the last token of a reserved key; else none.

    Listings have thousands of keys that differ in the last token only.
    """
    tokens = key.split(".")
    return _path(tokens[2:]) if tokens[0] in RESERVED else ()


def paths_of_keys(names: Iterable[str]) -> Iterator[tuple[Path | None, str]]:
    """The path of each of many documents' keys, and the key.

    None where the key holds a part of the path only. Quick where neighbours differ in
    the last token only, and that is plain.

    Raises:
        CorruptDocumentError: A key is not of this package.
    """
    front = ""
    above: Path = ()
    for key in names:
        before, _, last = key.rpartition(".")
        if before != front:
            front, above = before, _above_in(before)
        if above and is_plain_token(last):
            yield (*above, last), key
        else:
            path = path_of_key(key)
            yield (path if is_complete(path) else None), key


def _above_in(before: str) -> Path:
    """The path in what precedes the last token of a reserved key, if it is all there.

    Else none: what is wrong with a key is told when its own path is looked for.
    """
    with suppress(ValueError):
        path = _reserved_path(before)
        if is_complete(path):
            return path
    return ()


def is_complete(path: KeyPath) -> TypeGuard[Path]:
    """Whether the key holds the whole path; else it is in the document's body."""
    return Digested not in map(type, path)


def needs_path(path: Path) -> bool:
    """Whether a segment is digested in the key, so that the body must hold the path."""
    # No character takes more than six bytes, so a short segment is never digested.
    if max(map(len, path), default=0) <= _SHORT:
        return False
    return any(is_digested(encode_token(segment)) for segment in path)


def split_index_key(key: str, *, width: int, tail: int = 0) -> tuple[list[str], str]:
    """The value tokens of an index key, and the key of the document it is about.

    Args:
        key: The index key.
        width: How many value tokens it has.
        tail: How many tokens follow the document's path.

    Raises:
        CorruptDocumentError: The key is not one of those.
    """
    tokens = _index_tokens(key, width + tail)
    path = ".".join(tokens[4 + width : len(tokens) - tail])
    return tokens[4 : 4 + width], f"{tokens[2]}.{tokens[1]}.{_DOCUMENT}.{path}"


def _beside(document: str, family: str) -> str:
    collection, owner, _, path = document.split(".", 3)
    return f"{collection}.{owner}.{family}.{path}"


def _index_tokens(key: str, least: int) -> list[str]:
    tokens = key.split(".")
    if len(tokens) > 4 + least and tokens[0] == _INDEX and tokens[1][:1] == "/":
        return tokens
    raise _not_an_index_key(key)


def _not_an_index_key(key: str) -> CorruptDocumentError:
    return CorruptDocumentError(f"{key!r} is not an index key", key=key)


def _documents(namespace: str, collection: str) -> str:
    if collection in RESERVED:
        return f"{collection}.{encode_token(namespace)}."
    return f"{encode_token(collection)}./{encode_token(namespace)}.{_DOCUMENT}."


def _indexes(namespace: str, collection: str) -> str:
    return f"{_INDEX}./{encode_token(namespace)}.{encode_token(collection)}."


def _intents(namespace: str, collection: str) -> str:
    return f"{_INDEX}.//{encode_token(namespace)}.{encode_token(collection)}."


def _path(tokens: list[str]) -> KeyPath:
    return tuple(map(decode_token, tokens))
