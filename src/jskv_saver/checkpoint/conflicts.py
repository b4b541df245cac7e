"""When two puts are in each other's way, and when they are the same."""

from __future__ import annotations

import logging
from typing import Final

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.drafts import Draft
from jskv_saver.checkpoint.heads import Head
from jskv_saver.checkpoint.values import Typed
from jskv_saver.errors import WriterConflictError

_log: Final = logging.getLogger(__name__)


def writer_conflict(head: Head, draft: Draft) -> WriterConflictError:
    """The error of a step whose thread another run has moved on."""
    current = head.known[0] if head.known else None
    _log.warning(
        "two runs on thread %r: checkpoint %r was refused, the head is %r",
        draft.scope.thread,
        draft.id,
        current,
        extra={"event": "jskv.saver.conflict"},
    )
    return WriterConflictError(
        f"checkpoint {draft.id!r} of thread {draft.scope.thread!r} continues "
        f"{draft.parent!r}, but another run has moved the head to {current!r}; "
        "read the thread again and decide, or use on_conflict='fork'",
        mine=draft.id,
        theirs=current,
    )


def alike(old: Typed, new: Typed, serde: SerializerProtocol) -> bool:
    """Whether two values are the same, as bytes or as what they stand for."""
    if old == new:
        return True
    left, right = serde.loads_typed(old), serde.loads_typed(new)
    # Encrypted bytes always differ, and a nan is not equal to itself.
    inner = getattr(serde, "serde", serde)
    return bool(inner.dumps_typed(left) == inner.dumps_typed(right) or left == right)
