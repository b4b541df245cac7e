"""What a request that was sent waits for: one answer, several, or a batch's end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nats.aio.client import Client

from jskv_saver._nats.faults import Status, lost
from jskv_saver._nats.tap import Answer, is_bare, status_of
from jskv_saver.errors import JskvError, PermissionDeniedError

PART_HEADER: Final = "Jskv-Part"
"""`2/3`: this message is the second one of three that are the answer together."""


class NobodyListensError(Exception):
    """Nobody listens on the subject: what was sent has reached no one (ADR-4)."""


class Message(NamedTuple):
    """A message to publish.

    Attributes:
        subject: Where to.
        payload: The body.
        headers: Its headers.
        head: The same, encoded, where the caller had to.
    """

    subject: str
    payload: bytes
    headers: Mapping[str, str] | None = None
    head: bytes = b""


class BatchAnswer(NamedTuple):
    """The end of a fast batch.

    Attributes:
        stored: How many messages are stored, from the first on.
        sequence: That of the last stored one.
        error: Why the next one was refused, as far as the server said.
    """

    stored: int
    sequence: int
    error: dict[str, Any] | None


class Waiting:
    """A request that was sent."""

    __slots__ = ("deadline", "future", "generation", "subjects", "write")

    def __init__(
        self,
        future: asyncio.Future[Any],
        subjects: Sequence[str],
        write: bool,
        deadline: float,
        generation: tuple[Client, int],
    ) -> None:
        self.future = future
        self.subjects = subjects
        self.write = write
        self.deadline = deadline
        self.generation = generation

    def feed(self, msg: Answer, look_at_errors: Callable[[], None]) -> None:
        """Take an answer; the future is not done yet."""
        if status_of(msg) == Status.NO_RESPONDERS:
            self.future.set_exception(NobodyListensError())
            return
        if len(self.subjects) > 1:
            # A part of it may have been refused, which was told before.
            look_at_errors()
        if not self.future.done():
            self.future.set_result(msg)

    def refuse(self, error: PermissionDeniedError) -> None:
        """End because a subject was refused."""
        self.fail(error)

    def fail(self, error: JskvError) -> None:
        """End without an answer."""
        if not self.future.done():
            self.future.set_exception(error)


class Collecting(Waiting):
    """Messages up to the one with a status, as direct gets answer (ADR-31)."""

    __slots__ = ("messages",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.messages: list[Answer] = []

    def feed(self, msg: Answer, look_at_errors: Callable[[], None]) -> None:
        """Take one message more."""
        status = status_of(msg)
        if status == Status.NO_RESPONDERS:
            self.future.set_exception(NobodyListensError())
            return
        self.messages.append(msg)
        if status is not None or is_bare(msg):
            self.future.set_result(self.messages)


class Numbered(Collecting):
    """One message, or several that say which of how many they are."""

    __slots__ = ()

    def feed(self, msg: Answer, look_at_errors: Callable[[], None]) -> None:
        """Take one message more."""
        if status_of(msg) == Status.NO_RESPONDERS:
            self.future.set_exception(NobodyListensError())
            return
        self.messages.append(msg)
        part = (msg.headers or {}).get(PART_HEADER, "1/1")
        number, _, last = part.partition("/")
        if int(number) != len(self.messages):
            self.fail(lost(write=self.write, why="a part of the answer is missing"))
        elif number == last:
            self.future.set_result(self.messages)


class Batch(Waiting):
    """The control channel of a fast batch (ADR-50)."""

    __slots__ = ("error", "refused")
    error: dict[str, Any] | None
    refused: PermissionDeniedError | None

    def refuse(self, error: PermissionDeniedError) -> None:
        """Wait for the end all the same, which tells that the others are stored.

        The refused message is a gap, unless it is the last: then no end comes.
        """
        if error.subject == self.subjects[-1]:
            self.fail(error)
        else:
            self.refused = error

    def feed(self, msg: Answer, look_at_errors: Callable[[], None]) -> None:
        """Take an acknowledgement on the way, an error, or the end."""
        if status_of(msg) == Status.NO_RESPONDERS:
            # What came before this message may be stored: <number>.<step>.$FI
            if msg.subject.split(".")[-3] == "1":
                self.future.set_exception(NobodyListensError())
            else:
                self.fail(lost(write=True, why="the stream went away"))
            return
        answer = json.loads(msg.data)
        if answer.get("type") == "err":
            self.error = self.error or answer["error"]
        elif "type" not in answer:
            count = int(answer.get("count", 0))
            if count < len(self.subjects):
                # A message that was not permitted is a gap, and its error came before.
                look_at_errors()
            if self.refused is not None:
                self.fail(self.refused)
            elif not self.future.done():
                error = self.error or answer.get("error")
                self.future.set_result(BatchAnswer(count, int(answer["seq"]), error))
