"""What a look at everything that is stored finds wrong. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from jskv_saver.errors import InvalidRequestError

Severity: TypeAlias = Literal["error", "warning"]
Kind: TypeAlias = Literal[
    "corrupt",
    "unsupported-format",
    "missing-part",
    "wrong-part",
    "broken-history",
    "missing-index",
    "duplicate",
    "stale-index",
    "unreachable",
    "unfinished",
    "empty",
    "foreign",
]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_WARNINGS: Final = frozenset(
    ("stale-index", "unreachable", "unfinished", "empty", "foreign")
)
_LONGEST: Final = 3600.0
_PAUSES: Final = (0.2, 0.8)
"""Of the time in which things may settle: the pauses before each further look."""

SETTLE: Final = 0.5
"""Seconds for which something must be wrong to be found."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        namespace: The owner.
        key: What it is about, as errors name it: collection and segments of its id, or
            the KV key.
        kind: What is wrong, one of `KINDS`.
        text: The same in words.
    """

    namespace: str
    key: str
    kind: Kind
    text: str

    @property
    def severity(self) -> Severity:
        """`error`: something cannot be given, or not found; `warning`: it is litter.

        A repair removes what is a warning (but not what is foreign), and mends a
        missing index. What else is an error needs a backup.
        """
        return "warning" if self.kind in _WARNINGS else "error"


def check_settle(settle: float) -> float:
    """The seconds, which are a number from 0."""
    if isinstance(settle, bool) or not isinstance(settle, int | float):
        raise InvalidRequestError(f"settle must be a number of seconds: {settle!r:.80}")
    if not 0 <= settle <= _LONGEST:
        raise InvalidRequestError(f"settle must be 0 to {_LONGEST:.0f} s: {settle!r}")
    return float(settle)


async def settled(
    look: Callable[[], Awaitable[Iterable[Finding]]],
    settle: float,
    sleep: Callable[[float], Awaitable[None]],
) -> list[Finding]:
    """What is found, and is still found a while later: no write that is under way.

    Args:
        look: Looks for findings.
        settle: For how many seconds; 0: what is found once is found.
        sleep: Waits.
    """
    found = set(await look())
    for pause in _PAUSES if settle else ():
        if not found:
            break
        await sleep(pause * settle)
        again = {(each.key, each.kind) for each in await look()}
        found = {each for each in found if (each.key, each.kind) in again}
    return sorted(found)
