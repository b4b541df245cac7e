"""What a removal has chosen, and named in an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jskv_saver.checkpoint.layout import Record


@dataclass(frozen=True, slots=True)
class Claim:
    """What an epoch gives a prune to do.

    Attributes:
        version: The epoch's version; None: the namespace is empty.
        dead: The records to remove.
        bounds: The checkpoints whose writes go, and the version below which: younger
            ones are of a new life.
        kept: The parts that the dead bring and others refer to.
        rest: More is dead than one epoch can name.
        litter: Whether it is a repair, and something lies about.
        records: All records that were there.
    """

    version: int | None
    dead: Mapping[str, Record] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[bytes, bytes] = field(default_factory=dict)
    rest: bool = False
    litter: bool = False
    records: Mapping[str, Record] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.bounds and not self.litter
