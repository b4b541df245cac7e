"""What a saver remembers of threads, in bounded memory.

What is known of heads holds only while its fence holds: a put that rests on it is
refused as soon as anybody else wrote, pruned or deleted, and then it is forgotten. A
part never changes: it is what its digest says, as long as a record names it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from jskv_saver.checkpoint.drafts import Base
from jskv_saver.checkpoint.layout import Scope
from jskv_saver.checkpoint.past import Past
from jskv_saver.checkpoint.values import Typed

MAX_SCOPES = 8192
"""Checkpoint namespaces that are remembered."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of values that are remembered."""
_NAME_BYTES = 96
MAX_METADATA = 512
"""Bytes of a checkpoint's metadata above which it is not remembered."""
_METADATA_BYTES = MAX_METADATA + 320
"""Bytes that one takes in memory at most, with what holds it."""
MAX_SEEN = 4096
"""Checkpoints of which it is remembered what the head was when they were met."""
MAX_PART = 64 * 1024
"""Bytes of a part above which it is not remembered."""
MAX_PARTS = 32 * 1024 * 1024
"""Bytes of parts that are remembered."""
_PART_BYTES = 160
"""Bytes that remembering a part takes beside its content."""


class Head(NamedTuple):
    """The state of a checkpoint namespace at its last message.

    Attributes:
        fence: The version of its newest message; 0: there is none.
        known: The greatest ids, greatest first; empty: no checkpoint exists.
        base: The checkpoint that this process last wrote or read here, or None.
        runs: Runs whose index entry is known to be stored.
        names: All ids, ascending, and maybe some that were removed; None: not known.
            Whoever holds it must take what he needs before he awaits.
        named: The greatest id that an epoch names as dead, if that is the newest
            message; empty: none. A dead one may come back to life.
        metadata: By id, of those that were met since a listing asked for some; None:
            none did. As with `names`.
        past: Checkpoints that were read lately; None: none were. As with `names`.
    """

    fence: int
    known: tuple[str, ...] = ()
    base: Base | None = None
    runs: frozenset[str] = frozenset()
    names: list[str] | None = None
    named: str = ""
    metadata: dict[str, Typed] | None = None
    past: Past | None = None

    @property
    def greatest(self) -> str:
        """The greatest id that is there or may be; empty: there is none."""
        return max(self.known[0], self.named) if self.known else self.named

    @property
    def size(self) -> int:
        """Bytes that it holds in memory, about."""
        size = _NAME_BYTES * len(self.names) if self.names else 0
        if self.metadata:
            size += _METADATA_BYTES * len(self.metadata)
        if self.past:
            size += self.past.size
        return size + (self.base.size if self.base else 0)


class KnownParts:
    """The parts that were met last, by digest: read again, they need no request.

    Never taken for stored: a writer refers to what his parent's record names.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, digest: bytes) -> bytes | None:
        """The content of a part, if it is remembered."""
        content = self._parts.get(digest)
        if content is not None:
            self._parts.move_to_end(digest)
        return content

    def add(self, digest: bytes, content: bytes) -> None:
        """Remember a part."""
        if len(content) > MAX_PART or digest in self._parts:
            return
        self._parts[digest] = content
        self._bytes += len(content) + _PART_BYTES
        while self._bytes > MAX_PARTS:
            _, dropped = self._parts.popitem(last=False)
            self._bytes -= len(dropped) + _PART_BYTES


class Heads:
    """The heads that were met last. Written on the home loop, read from anywhere."""

    def __init__(self) -> None:
        self._heads: OrderedDict[Scope, tuple[Head, int]] = OrderedDict()
        self._threads: dict[tuple[str, str], set[Scope]] = {}
        self._bytes = 0
        self.parts = KnownParts()
        self._seen: OrderedDict[tuple[Scope, str], str | None] = OrderedDict()

    def get(self, scope: Scope) -> Head | None:
        """The head of a namespace, if it is remembered."""
        found = self._heads.get(scope)
        return found[0] if found else None

    def base(self, scope: Scope, id: str) -> Base | None:
        """A checkpoint and its bytes, if it was the last one met there."""
        head = self.get(scope)
        if head and head.base and head.base.record.id == id:
            return head.base
        return None

    def set(self, scope: Scope, head: Head) -> None:
        """Remember a head."""
        size = head.size
        if size > MAX_BYTES:
            head = head._replace(base=None, names=None, metadata=None, past=None)
            size = 0
        before = self._heads.get(scope)
        if before is None:
            self._threads.setdefault(scope[:2], set()).add(scope)
        else:
            self._bytes -= before[1]
            self._heads.move_to_end(scope)
        self._heads[scope] = head, size
        self._bytes += size
        while len(self._heads) > MAX_SCOPES or self._bytes > MAX_BYTES:
            self.forget(next(iter(self._heads)))

    def forget(self, scope: Scope) -> None:
        """Forget a head."""
        dropped = self._heads.pop(scope, None)
        if dropped:
            self._bytes -= dropped[1]
            of_thread = self._threads[scope[:2]]
            of_thread.discard(scope)
            if not of_thread:
                del self._threads[scope[:2]]

    def forget_thread(self, agent: str, thread: str) -> None:
        """Forget all heads of a thread."""
        for scope in list(self._threads.get((agent, thread), ())):
            self.forget(scope)

    def met(self, scope: Scope, id: str, head: str | None) -> None:
        """Remember which checkpoint was the head when `id` was read or written."""
        self._seen[scope, id] = head
        self._seen.move_to_end((scope, id))
        while len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)

    def head_when_met(self, scope: Scope, id: str) -> str | None:
        """The head when `id` was read or written; None if that is not remembered."""
        return self._seen.get((scope, id))


class KnownMetadata:
    """The metadata of a namespace's checkpoints, as far as it is remembered.

    Args:
        heads: Where it is remembered; None: nowhere.
        scope: The namespace. Its head is that of now.
    """

    def __init__(self, heads: Heads | None = None, scope: Scope | None = None) -> None:
        self._heads = heads
        self._scope = scope
        head = heads.get(scope) if heads and scope else None
        self._fence = head.fence if head else 0
        self._known = (head.metadata if head else None) or {}

    def get(self, id: str) -> Typed | None:
        """The metadata of a checkpoint; None: it is not remembered."""
        return self._known.get(id)

    def add(self, met: Mapping[str, Typed]) -> None:
        """Remember what was read, unless the head has moved since."""
        if self._heads is None or self._scope is None or not self._fence:
            return
        head = self._heads.get(self._scope)
        if head is None or head.fence != self._fence:
            return
        known = {} if head.metadata is None else head.metadata
        for id, metadata in met.items():
            with_metadata(known, id, metadata)
        self._heads.set(self._scope, head._replace(metadata=known))


def with_name(names: list[str] | None, id: str) -> list[str] | None:
    """The names with one more, in the same list: they may be thousands."""
    if names is not None and (not names or id > names[-1]):
        names.append(id)
    elif names is not None:
        at = bisect_left(names, id)
        if names[at] != id:
            names.insert(at, id)
    return names


def with_metadata(
    metadata: dict[str, Typed] | None, id: str, of_id: Typed
) -> dict[str, Typed] | None:
    """The metadata with one checkpoint's more, in the same dictionary."""
    if metadata is not None:
        if len(of_id.content) <= MAX_METADATA:
            metadata[id] = of_id
        else:
            metadata.pop(id, None)
    return metadata
