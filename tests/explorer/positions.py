"""A state of a scenario that many schedules can go on from: nothing in it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.explorer.answers import noted
from tests.explorer.ledger import Ledger, Operation
from tests.explorer.messages import Message
from tests.explorer.plays import LATE, LOST, Key, Play, key_of, note_stored, readable_of
from tests.explorer.puppets import Answer, Puppet, Stand
from tests.explorer.stored import Board, Shelf, present, store_with
from tests.explorer.table import Table

from jskv_saver import MemoryDocumentStore
from jskv_saver.errors import JskvError, UnknownOutcomeError

Trace = tuple["Trace | None", str, str]
"""What was before, the choice, and what it did."""


class Cast:
    """Those who play in the positions of a scenario."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.board = Board(table.stamps)
        self.puppets = {name: Puppet(table, name) for name in table.scenario.actors}

    def beginning(self) -> Position:
        """Before the first message."""
        ledger = self.table.ledger.copy()
        for puppet in self.puppets.values():
            for event in puppet.events:
                assert isinstance(event, Operation), "a call without a message"
                ledger.add(event)
        return Position(
            self,
            Shelf.of(dict(self.table.store._collections)),
            ledger,
            {name: puppet.beginning for name, puppet in self.puppets.items()},
            (),
            self.table.scenario.losses,
            self.table.count,
            None,
        )

    def close(self) -> None:
        for puppet in self.puppets.values():
            puppet.close()


class Position(Play):
    """A state."""

    __slots__ = (
        "_readable",
        "cast",
        "count",
        "last",
        "late",
        "ledger",
        "losses",
        "shelf",
        "stands",
    )

    def __init__(
        self,
        cast: Cast,
        shelf: Shelf,
        ledger: Ledger,
        stands: dict[str, Stand],
        late: tuple[Message, ...],
        losses: int,
        count: int,
        last: Trace | None,
        readable: Key | None = None,
    ) -> None:
        self.cast = cast
        self.shelf = shelf
        self.ledger = ledger
        self.stands = stands
        self.late: tuple[Message, ...] = late
        self.losses = losses
        self.count = count
        self.last = last
        self._readable = readable

    @property
    def letters(self) -> Sequence[str]:
        return list(self.stands)

    def messages(self, name: str) -> Sequence[Message]:
        return self.stands[name].messages

    def current(self, name: str) -> str | None:
        return self.stands[name].current

    def after(self, choice: str) -> Position:
        """The state after a choice."""
        name, at, message = self.message(choice)
        shelf, ledger, late, losses = self.shelf, self.ledger, self.late, self.losses
        answer: Any = None
        count = self.count
        outcome: Any = "lost"
        versions: tuple[int, ...] = ()
        error: JskvError | None
        if choice.endswith(LOST):
            losses -= 1
            late = (*late, message, *message.rest)
            error = UnknownOutcomeError("the answer got lost")
        else:
            count += len(message.puts)
            answer, error, shelf = self.cast.board.send(shelf, message, count)
            outcome, versions = noted(answer, error, message, shelf.tell)
        stands = self.stands
        if choice == LATE:
            # Of a batch nothing follows what was refused.
            late = () if error else late[1:]
        else:
            ledger, stands = self._told(
                name,
                message,
                shelf,
                Answer(at, answer, error, (message.text, outcome), versions),
            )
        same = shelf is self.shelf and ledger is self.ledger
        return Position(
            self.cast,
            shelf,
            ledger,
            stands,
            late,
            losses,
            count,
            (self.last, choice, f"{choice}: {message.text}{_failure(error)}"),
            self._readable if same else None,
        )

    def _told(
        self, name: str, message: Message, shelf: Shelf, answer: Answer
    ) -> tuple[Ledger, dict[str, Stand]]:
        """What is asked for and where the actors are after an answer."""

        def there() -> set[tuple[str, ...]]:
            return present(shelf.collections)

        stand = self.stands[name]
        came, events = self.cast.puppets[name].advance(stand, answer)
        stands = {**self.stands, name: came}
        ledger, current = self.ledger, stand.current
        begins = current is not None and not ledger.operations[current].begun
        stores = answer.error is None and message.puts
        if not (begins or stores or events):
            return ledger, stands
        ledger = ledger.copy()
        if begins:
            assert current is not None
            ledger.start(current, shelf.versions)
        if stores:
            note_stored(ledger, current, message, there)
        for event in events:
            if isinstance(event, Operation):
                ledger.add(event)
            else:
                ledger.end(*event, there)
        return ledger, stands

    # -- what it is --------------------------------------------------------------------

    @property
    def trace(self) -> list[str]:
        """The choices that led here."""
        found: list[str] = []
        last = self.last
        while last is not None:
            last, choice, _ = last
            found.append(choice)
        return found[::-1]

    @property
    def log(self) -> list[str]:
        """What they did."""
        found: list[str] = []
        last = self.last
        while last is not None:
            last, _, did = last
            found.append(did)
        return found[::-1]

    @property
    def store(self) -> MemoryDocumentStore:
        """What is stored, in a store of its own."""
        stamps = self.cast.table.stamps
        version = stamps.version(self.count + 1, "", ())
        return store_with(self.shelf.collections, version)

    @property
    def failures(self) -> dict[str, BaseException]:
        """Who failed, and with what."""
        return {
            name: stand.failure for name, stand in self.stands.items() if stand.failure
        }

    def readable_key(self) -> Key:
        """What names all that a reader, or a check, may see."""
        if self._readable is None:
            self._readable = readable_of(
                self.shelf, self.ledger, self.cast.table.stamps
            )
        return self._readable

    def key(self, readable: Key) -> Key:
        """What names this state, with what the actors still hold."""
        return key_of(
            readable,
            self.shelf,
            [(stand.name, stand.versions) for stand in self.stands.values()],
            self.late,
            self.losses,
            self.cast.table.stamps,
        )


def _failure(error: BaseException | None) -> str:
    return "" if error is None else f" -> {type(error).__name__}"
