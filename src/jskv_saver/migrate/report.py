"""What a migration did, or would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pending", "copied", "same", "diverged", "failed"]


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """One thread.

    Attributes:
        thread: Its id.
        outcome: "pending": to be copied, in a dry run. "copied": and read back. "same":
            it is there already. "diverged": the target has something that the source
            has not, and nothing of it was written. "failed": it cannot be moved whole.
        checkpoints: How many it has in the source, in all namespaces.
        missing: How many of them the target had not, or not with all writes.
        healed: How many values it had changed under a version that they had before,
            as a saver does that serialises after the graph went on; the version's
            own are copied.
        why: What is wrong with one that diverged or failed; else empty.
    """

    thread: str
    outcome: Outcome
    checkpoints: int
    missing: int
    healed: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All threads, in the order in which they were looked at.

    Attributes:
        applied: Whether anything was written; False for a dry run.
        threads: One each.
    """

    applied: bool
    threads: Sequence[ThreadReport]

    @property
    def counts(self) -> Counter[Outcome]:
        """How many threads there are of each outcome."""
        return Counter(each.outcome for each in self.threads)

    @property
    def complete(self) -> bool:
        """Whether every thread is, or would be, whole in the target."""
        return not self.counts["diverged"] and not self.counts["failed"]
