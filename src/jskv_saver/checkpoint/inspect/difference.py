"""What changed between two checkpoints; nothing of the user's is deserialised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.inspect.detail import PREVIEW
from jskv_saver.checkpoint.inspect.preview import Opaque, decoded, preview, rendered
from jskv_saver.checkpoint.inspect.reading import record_paths
from jskv_saver.checkpoint.inspect.threads import ThreadRef
from jskv_saver.checkpoint.layout import RECORDS, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.document.model import Path
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import DocumentNotFoundError, InvalidRequestError

How: TypeAlias = Literal["added", "removed", "changed"]
_OPENED: Final = 8 * 1024 * 1024
"""Bytes above which a value is not opened: that it changed is all that is said."""
_MOST: Final = 1000
"""Changes inside one value that are listed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change inside a value.

    Attributes:
        how: What happened.
        path: Where: `[2].content`; empty: the whole value.
        before: What was there, as text; None: nothing.
        after: What is there, as text; None: nothing.
    """

    how: How
    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value that differs.

    Attributes:
        name: Of the channel, of the pending write, or `metadata`.
        how: What happened to it.
        size_before: Its bytes before; 0: it was not there.
        size_after: Its bytes after.
        steps: What changed inside it.
        more: How many further changes inside are not listed.
    """

    name: str
    how: How
    size_before: int
    size_after: int
    steps: tuple[Step, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointDifference:
    """What changed from one checkpoint to another.

    Attributes:
        ref: Their thread.
        ns: Their checkpoint namespace.
        before: The id of the one.
        after: The id of the other.
        channels: Channels whose value differs.
        same: How many channels have the same value.
        metadata: The metadata, if it differs.
        writes: Pending writes that only one of them has.
    """

    ref: ThreadRef
    ns: str
    before: str
    after: str
    channels: tuple[ValueChange, ...]
    same: int
    metadata: ValueChange | None
    writes: tuple[ValueChange, ...]


async def checkpoint_difference(
    store: DocumentStore,
    ref: ThreadRef,
    before: str | None = None,
    after: str | None = None,
    *,
    ns: str | None = None,
    limit: int = PREVIEW,
) -> CheckpointDifference:
    """What changed between two checkpoints of a thread.

    Args:
        store: Where they are.
        ref: The thread.
        before: The id of the one; None: the parent of the other.
        after: The id of the other; None: the latest.
        ns: Their checkpoint namespace; None: the one that has the id, or the root.
        limit: Characters of each value that are shown.

    Raises:
        DocumentNotFoundError: One of them does not exist, or has no parent.
        InvalidRequestError: Several checkpoint namespaces have the id.
    """
    reader = Reader(Partition(store, ref.namespace, ref.agent))
    paths = await record_paths(
        store, ref.namespace, ref.prefix if ns is None else (*ref.prefix, ns)
    )
    known = after if after is not None else before
    scope = _scope(ref, paths, known, ns)
    if after is None:
        after = next((path[-1] for path in paths if path[:3] == scope), "")
    new = await _read(reader, ref, scope, after)
    if before is None:
        if new.record.parent is None:
            raise DocumentNotFoundError(
                f"checkpoint {after!r} has no parent to compare it with; name another "
                "one",
                collection=RECORDS,
                id=after,
            )
        before = new.record.parent
    old = await _read(reader, ref, scope, before)
    names = sorted({*old.values, *new.values})
    changed = [
        change
        for name in names
        if (change := _value(name, old.values.get(name), new.values.get(name), limit))
    ]
    return CheckpointDifference(
        ref=ref,
        ns=scope[2],
        before=before,
        after=after,
        channels=tuple(changed),
        same=len(names) - len(changed),
        metadata=_value("metadata", old.metadata, new.metadata, limit),
        writes=tuple(_writes(old.writes, new.writes, limit)),
    )


def _scope(
    ref: ThreadRef, paths: Sequence[Path], id: str | None, ns: str | None
) -> Path:
    if ns is not None:
        return (*ref.prefix, ns)
    if id is None:
        found = {path[:3] for path in paths}
        root = (*ref.prefix, "")
        return root if root in found or not found else min(found)
    scopes = sorted({path[:3] for path in paths if path[-1] == id})
    if len(scopes) > 1:
        places = ", ".join(repr(scope[2]) for scope in scopes)
        raise InvalidRequestError(
            f"checkpoint {id!r} is in several checkpoint namespaces: {places}; "
            "say which one is meant with ns (--ns)"
        )
    return scopes[0] if scopes else (*ref.prefix, "")


async def _read(reader: Reader, ref: ThreadRef, scope: Path, id: str) -> Loaded:
    loaded = await reader.by_id(Scope(*scope), id) if id else None
    if loaded is None:
        raise DocumentNotFoundError(
            f"thread {ref.thread!r} has no checkpoint {id!r}"
            if id
            else f"thread {ref.thread!r} has no checkpoint",
            collection=RECORDS,
            id=id,
        )
    return loaded


def _value(
    name: str, old: Typed | None, new: Typed | None, limit: int
) -> ValueChange | None:
    """How a value differs; None: it does not."""
    if old == new:
        return None
    if old is None or new is None:
        there = old or new
        assert there is not None
        text = preview(*there, limit)
        step = Step("added", "", None, text) if new else Step("removed", "", text, None)
        return _change(name, old, new, (step,))
    if max(len(old.content), len(new.content)) <= _OPENED:
        try:
            left, right = decoded(*old), decoded(*new)
        except ValueError:
            pass
        else:
            steps = list(_steps(left, right, "", limit))
            # The same to look at, in other bytes: a set in another order, for one.
            return _change(name, old, new, steps[:_MOST], len(steps) - _MOST)
    whole = Step("changed", "", preview(*old, limit), preview(*new, limit))
    return _change(name, old, new, (whole,))


def _change(
    name: str,
    old: Typed | None,
    new: Typed | None,
    steps: Sequence[Step],
    more: int = 0,
) -> ValueChange:
    how: How = "added" if old is None else "removed" if new is None else "changed"
    return ValueChange(
        name,
        how,
        len(old.content) if old else 0,
        len(new.content) if new else 0,
        tuple(steps),
        max(more, 0),
    )


def _steps(old: Any, new: Any, path: str, limit: int) -> Iterator[Step]:
    if _same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            at = f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]"
            if key not in new:
                yield Step("removed", at, rendered(old[key], limit), None)
            elif key not in old:
                yield Step("added", at, None, rendered(new[key], limit))
            else:
                yield from _steps(old[key], new[key], at, limit)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path, limit)
    elif _is_alike(old, new):
        yield from _steps(old.content, new.content, path, limit)
    else:
        yield Step("changed", path, rendered(old, limit), rendered(new, limit))


def _items(old: list[Any], new: list[Any], path: str, limit: int) -> Iterator[Step]:
    """What lies between what two lists have in common at both ends."""
    first = 0
    shorter = min(len(old), len(new))
    while first < shorter and _same(old[first], new[first]):
        first += 1
    last = 0
    while last < shorter - first and _same(old[-1 - last], new[-1 - last]):
        last += 1
    left, right = old[first : len(old) - last], new[first : len(new) - last]
    for at in range(max(len(left), len(right))):
        where = f"{path}[{first + at}]"
        if at >= len(right):
            yield Step("removed", where, rendered(left[at], limit), None)
        elif at >= len(left):
            yield Step("added", where, None, rendered(right[at], limit))
        else:
            yield from _steps(left[at], right[at], where, limit)


def _is_alike(old: Any, new: Any) -> bool:
    """Whether both are of one class, so that what is in them can be compared."""
    return (
        isinstance(old, Opaque)
        and isinstance(new, Opaque)
        and (old.code, old.name) == (new.code, new.name)
        and type(old.content) is type(new.content)
        and isinstance(old.content, dict | list)
    )


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, Opaque) and isinstance(new, Opaque):
        return (old.code, old.name) == (new.code, new.name) and _same(
            old.content, new.content
        )
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(_same(old[k], new[k]) for k in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return bool(old == new)


def _writes(
    old: Sequence[PendingWrite], new: Sequence[PendingWrite], limit: int
) -> Iterator[ValueChange]:
    before, after = _by_place(old), _by_place(new)
    for place in [*before, *(place for place in after if place not in before)]:
        change = _value(
            f"{place[0]}: {place[2]}", before.get(place), after.get(place), limit
        )
        if change is not None:
            yield change


def _by_place(
    writes: Sequence[PendingWrite],
) -> Mapping[tuple[str, int, str], Typed]:
    return {(write.task, write.idx, write.channel): write.value for write in writes}
