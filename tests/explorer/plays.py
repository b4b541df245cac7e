"""What may happen next in a state of a scenario, however it is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Sequence
from typing import Any

from tests.explorer.contents import digest
from tests.explorer.frames import Local
from tests.explorer.ledger import Leasing, Ledger, Put, PutWrites
from tests.explorer.messages import Message
from tests.explorer.stored import Shelf
from tests.explorer.versions import Stamps

from jskv_saver.checkpoint.layout import RECORDS, WRITES

LOST, LATE = "!", "~"
Key = bytes
"""Names a state."""


class Play:
    """A state.

    Attributes:
        ledger: What was asked for.
        late: Messages whose answers were lost, which arrive later or never.
        losses: How many answers may still get lost.
    """

    ledger: Ledger
    late: Sequence[Message]
    losses: int

    @property
    @abstractmethod
    def letters(self) -> Sequence[str]:
        """The actors."""

    @abstractmethod
    def messages(self, name: str) -> Sequence[Message]:
        """The messages of an actor that wait."""

    @abstractmethod
    def current(self, name: str) -> str | None:
        """The call that an actor is in."""

    def choices(self) -> list[str]:
        """What may happen next: an actor's letter, with a number if it has several
        messages under way, with `!` if the answer gets lost; `~`: a late message."""
        found: list[str] = []
        for name in self.letters:
            for at, message in enumerate(self.messages(name)):
                choice = f"{name}{at}" if at else name
                found.append(choice)
                if self.losses and message.changes:
                    found.append(choice + LOST)
        if self.late:
            found.append(LATE)
        return found

    def message(self, choice: str) -> tuple[str, int, Message]:
        """The actor of a choice, the number of its message, and this."""
        if choice == LATE:
            return LATE, 0, self.late[0]
        number = choice[1:].rstrip(LOST)
        at = int(number) if number else 0
        return choice[0], at, self.messages(choice[0])[at]

    def _takes(self, name: str) -> bool:
        current = None if name == LATE else self.current(name)
        operation = self.ledger.operations.get(current) if current else None
        return isinstance(operation, Leasing) and operation.takes

    def independent(self, one: str, other: str) -> bool:
        """Whether the order of two choices makes no difference."""
        (mine, _, first), (theirs, _, second) = self.message(one), self.message(other)
        if mine == theirs or LOST in one + other:
            return False
        if LATE not in (mine, theirs):
            a, b = self.current(mine), self.current(theirs)
            if a is not None and b is not None:
                mine_now, theirs_now = (
                    self.ledger.operations[a],
                    self.ledger.operations[b],
                )
                if self.ledger.depends(
                    mine_now, theirs_now, _purges(second)
                ) or self.ledger.depends(theirs_now, mine_now, _purges(first)):
                    return False
        elif any(self._takes(name) for name in (mine, theirs)):
            # What arrives late may arrive before it is taken, or after.
            return False
        return first.commutes(second)


def _purges(message: Message) -> bool:
    return any(area.collections & {RECORDS, WRITES} for area in message.purges)


def note_stored(
    ledger: Ledger,
    current: str | None,
    message: Message,
    present: Callable[[], Container[tuple[str, ...]]],
) -> None:
    """A message was stored by an actor in that call."""
    for area in message.puts:
        (collection,) = area.collections
        operation = ledger.operations.get(current) if current else None
        if (
            isinstance(operation, Put)
            and collection == RECORDS
            and area.path[-1] == operation.id
        ) or (
            isinstance(operation, PutWrites)
            and collection == WRITES
            and len(area.path) == 5
        ):
            ledger.store(operation.name, present)
        else:
            ledger.settle(present)


def readable_of(shelf: Shelf, ledger: Ledger, stamps: Stamps) -> Key:
    """What names all that a reader, or a check, may see."""
    live, versions = shelf.live
    return digest((live, stamps.labels(versions), ledger.key(shelf.versions)))


def key_of(
    readable: Key,
    shelf: Shelf,
    held: Sequence[Local],
    late: Sequence[Message],
    losses: int,
    stamps: Stamps,
) -> Key:
    """What names a state, with what the actors still hold."""
    versions = [*shelf.live[1]]
    names: list[Any] = []
    for name, held_versions in held:
        names.append(name)
        versions += held_versions
    for message in late:
        # What follows it is late as well.
        names.append((message.text, message.content[0]))
        versions += message.conditions + message.content[1]
    return digest((readable, names, losses, stamps.labels(versions)))
