"""Whether two savers give the same: bytes where there are bytes, else values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_SINGLE_ARG,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from jskv_saver.migrate.source import Item, Write
from jskv_saver.migrate.verbatim import OPTION

_SERDE: Final = JsonPlusSerializer()
_SETS: Final = (["builtins", "set"], ["builtins", "frozenset"])


def difference(
    source: Item, target: Item, snapshots: Mapping[tuple[str, str, Any], str]
) -> str | None:
    """What is not the same in two checkpoints, pending writes aside; None: nothing.

    Args:
        source: One of them.
        target: The other.
        snapshots: Of delta channels, their fingerprints by namespace, channel and
            version: savers that keep values by version give them with each checkpoint
            of that version, others with the first one only.
    """
    if source.row.parent != target.row.parent:
        return f"its parent is {target.row.parent!r}, not {source.row.parent!r}"
    one: dict[str, Any] = {**source.checkpoint}
    other: dict[str, Any] = {**target.checkpoint}
    versions = one.get("channel_versions") or {}
    other["channel_values"] = {
        name: value
        for name, value in (other.get("channel_values") or {}).items()
        if name in one["channel_values"]
        or not isinstance(value, _DeltaSnapshot)
        or snapshots.get((source.row.ns, name, versions.get(name)))
        != fingerprint(value)
    }
    for name in sorted(one.keys() | other.keys()):
        # Savers leave out, or write as nothing, what is empty.
        if not same(one.get(name) or None, other.get(name) or None):
            return f"its {name.replace('_', ' ')} are not the same"
    if not same(dict(source.metadata), dict(target.metadata)):
        return "its metadata are not the same"
    return None


def fingerprint(value: Any) -> str:
    """A digest that two values share if they are the same."""
    text = repr(_canonical(_packed(value)))
    return blake2b(text.encode("utf-8", "surrogatepass")).hexdigest()


def contains(source: Sequence[Write], target: Sequence[Write]) -> bool:
    """Whether all writes of the target are the source's as well."""
    return not Counter(map(_key, target)) - Counter(map(_key, source))


def same_writes(source: Item, target: Item) -> bool:
    """Whether they have the same pending writes.

    The order of tasks counts where delta channels are rebuilt from it; else LangGraph
    orders them anew. Not every saver can keep it.
    """
    one, other = (list(map(_key, item.writes)) for item in (source, target))
    if source.deltas:
        return one == other
    # Sorting is stable: those of one task stay in their order.
    return sorted(one, key=_task) == sorted(other, key=_task)


def _task(key: tuple[str, str, str]) -> str:
    return key[0]


def _key(write: Write) -> tuple[str, str, str]:
    return write.task, write.channel, fingerprint(write.value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same; lists and tuples are, as JSON has but one."""
    if isinstance(one, _DeltaSnapshot) is not isinstance(other, _DeltaSnapshot):
        return False
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is not type(other):
        return False
    return _packed(one) == _packed(other) or fingerprint(one) == fingerprint(other)


def _packed(value: Any) -> tuple[str, bytes]:
    return _SERDE.dumps_typed(value)


def _canonical(packed: tuple[str, bytes]) -> Any:
    """What is packed, down into each extension type; none of them is made.

    A set has no order, and is packed in another one each time that it is made.
    """
    kind, body = packed
    return (kind, _opened(body)) if kind == "msgpack" else packed


def _opened(body: bytes) -> Any:
    return ormsgpack.unpackb(body, ext_hook=_extension, option=OPTION)


def _extension(code: int, body: bytes) -> Any:
    try:
        inner = _opened(bytes(body))
    except ormsgpack.MsgpackDecodeError:
        return _Extension(code, bytes(body))
    if code == EXT_CONSTRUCTOR_SINGLE_ARG and inner[:2] in _SETS:
        inner = [*inner[:2], sorted(map(repr, inner[2]))]
    return _Extension(code, inner)


class _Extension(NamedTuple):
    """An extension type, opened."""

    code: int
    inner: Any
