"""What a saver remembers of threads, in bounded memory.

All of it holds only while its fence holds: a put that rests on it is refused as soon
as anybody else wrote, pruned or deleted, and then it is forgotten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from typing import NamedTuple

from jskv_saver.checkpoint.drafts import Base
from jskv_saver.checkpoint.layout import Scope

MAX_SCOPES = 1024
"""Checkpoint namespaces that are remembered."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of values that are remembered."""
_NAME_BYTES = 96
MAX_SEEN = 4096
"""Checkpoints of which it is remembered what the head was when they were met."""


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
    """

    fence: int
    known: tuple[str, ...] = ()
    base: Base | None = None
    runs: frozenset[str] = frozenset()
    names: list[str] | None = None
    named: str = ""

    @property
    def greatest(self) -> str:
        """The greatest id that is there or may be; empty: there is none."""
        return max(self.known[0], self.named) if self.known else self.named

    @property
    def size(self) -> int:
        """Bytes that it holds in memory, about."""
        names = _NAME_BYTES * len(self.names) if self.names else 0
        return names + (self.base.size if self.base else 0)


class Heads:
    """The heads that were met last. Written on the home loop, read from anywhere."""

    def __init__(self) -> None:
        self._heads: OrderedDict[Scope, tuple[Head, int]] = OrderedDict()
        self._bytes = 0
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
        self.forget(scope)
        size = head.size
        if size > MAX_BYTES:
            head, size = head._replace(base=None, names=None), 0
        self._heads[scope] = head, size
        self._bytes += size
        while len(self._heads) > MAX_SCOPES or self._bytes > MAX_BYTES:
            _, dropped = self._heads.popitem(last=False)
            self._bytes -= dropped[1]

    def forget(self, scope: Scope) -> None:
        """Forget a head."""
        dropped = self._heads.pop(scope, None)
        if dropped:
            self._bytes -= dropped[1]

    def forget_thread(self, agent: str, thread: str) -> None:
        """Forget all heads of a thread."""
        for scope in [
            s for s in self._heads if s.thread == thread and s.agent == agent
        ]:
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


def with_name(names: list[str] | None, id: str) -> list[str] | None:
    """The names with one more, in the same list: they may be thousands."""
    if names is not None and (not names or id > names[-1]):
        names.append(id)
    elif names is not None:
        at = bisect_left(names, id)
        if names[at] != id:
            names.insert(at, id)
    return names
