"""The calls that a service has accepted: started in turn, answered, given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from time import perf_counter_ns
from typing import Any, ClassVar, Final

from google.protobuf.message import DecodeError

from jskv_saver._nats.listener import Listener
from jskv_saver._nats.tap import Answer
from jskv_saver._nats.tokens import encode_token
from jskv_saver._nats.waiting import PART_HEADER
from jskv_saver.adapters.wire import subjects
from jskv_saver.adapters.wire.discovery import Counted
from jskv_saver.adapters.wire.endpoints import ENDPOINTS, Endpoint
from jskv_saver.adapters.wire.faults import encode_fault, told
from jskv_saver.adapters.wire.turns import Caller, Turns
from jskv_saver.document.names import check_namespace, shown
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreUnavailableError,
)

_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of one answer, in several messages: what a client surely takes at a time."""
_HEAD: Final = 256
"""Bytes kept free in each message for its headers."""
_LONGEST: Final = 600.0
"""Seconds that a call may take, whatever its caller says."""
_DEFAULT_CALL: Final = 30.0

_log: Final = logging.getLogger(__name__)
_GONE: Final = {"event": "jskv.service.caller_gone"}


class Serving:
    """Takes requests and sees them to their end.

    Args:
        store: What is asked.
        turns: Who is served next.

    Attributes:
        kind: What a request becomes.
        stats: What happened at each endpoint.
    """

    kind: ClassVar[type[Call]]

    def __init__(self, store: DocumentStore, turns: Turns) -> None:
        self.store: Final = store
        self.stats: Final = {primitive: Counted() for primitive in ENDPOINTS}
        self._turns: Final = turns
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._idle: Final = asyncio.Event()

    def take(self, listener: Listener, msg: Answer) -> None:
        """Accept a request, or answer that there is no place; that takes none."""
        call = self.kind(self, listener, msg)
        if not self._turns.enter(call.caller, call.start, len(msg.data)):
            self.run(call.refuse()).add_done_callback(self._forget)

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let something run, and keep it from being forgotten."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        return task

    async def finish(self, patience: float) -> None:
        """Return when all that was accepted is answered, or given up in the end."""
        if not self._turns.idle:
            self._idle.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._idle.wait()
            except TimeoutError:
                _log.warning(
                    "given up at the end: %d calls",
                    len(self._tasks),
                    extra={"event": "jskv.service.gave_up"},
                )
        self._turns.drop()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def ended(self, caller: Caller, task: asyncio.Task[None]) -> None:
        """A call has ended: the next may begin."""
        self._forget(task)
        self._turns.leave(caller)
        if self._turns.idle:
            self._idle.set()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Only what answering itself raises.
            _log.warning(
                "not answered: %r", error, extra={"event": "jskv.service.not_answered"}
            )


class Call:
    """One request on its way."""

    __slots__ = (
        "_listener",
        "_msg",
        "_serving",
        "arrived",
        "caller",
        "primitive",
        "subject",
    )

    def __init__(self, serving: Serving, listener: Listener, msg: Answer) -> None:
        self._serving = serving
        self._listener = listener
        self._msg = msg
        self.subject = msg.subject
        token, self.primitive = subjects.parse_subject(msg.subject)
        self.caller = Caller(token, msg.reply.rpartition(".")[0])
        self.arrived = perf_counter_ns()

    def start(self) -> None:
        """Serve it in a task of its own."""
        serving = self._serving
        task = serving.run(self._serve())
        task.add_done_callback(lambda done: serving.ended(self.caller, done))

    async def refuse(self) -> None:
        """Answer that there is no place."""
        busy = StoreUnavailableError(
            "the document service has too many calls waiting: nothing was done"
        )
        await self._fail(self.primitive, busy)

    async def _serve(self) -> None:
        token, primitive = self.caller.owner, self.primitive
        endpoint = ENDPOINTS.get(primitive)
        stats = self._serving.stats.get(primitive)
        if stats is not None:
            stats.requests += 1
        try:
            try:
                reply = await self._answer(token, primitive, endpoint)
            except Exception as exc:
                await self._fail(primitive, exc)
                return
            if reply is not None:
                await self._send(reply)
        finally:
            if stats is not None:
                stats.nanoseconds += perf_counter_ns() - self.arrived

    async def _answer(
        self, token: str, primitive: str, endpoint: Endpoint | None
    ) -> bytes | None:
        """The body of the answer; None where nobody waits for it any more."""
        if endpoint is None:
            raise InvalidRequestError(f"there is no primitive {shown(primitive)}")
        try:
            request = endpoint.request.FromString(self._msg.data)
        except DecodeError as exc:
            raise InvalidRequestError(f"the request is no {primitive}") from exc
        # A long one must not reach the token's cache.
        if encode_token(check_namespace(request.namespace)) != token:
            raise PermissionDeniedError(
                f"the request is about {shown(request.namespace)}, its subject is "
                "about another namespace",
                subject=self.subject,
            )
        patience = min(request.timeout_ms / 1000 or _DEFAULT_CALL, _LONGEST)
        left = patience - (perf_counter_ns() - self.arrived) / 1e9
        if left <= 0:
            _log.info(
                "not begun, its caller has gone: %s", shown(self.subject), extra=_GONE
            )
            return None
        task = asyncio.current_task()
        assert task is not None
        given_up = False

        def give_up() -> None:
            nonlocal given_up
            given_up = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(left, give_up)
        try:
            reply = await endpoint.serve(self._serving.store, request, _ANSWER)
        except asyncio.CancelledError:
            if not given_up:
                raise
            task.uncancel()
            _log.info(
                "given up, its caller has gone: %s", shown(self.subject), extra=_GONE
            )
            return None
        finally:
            timer.cancel()
        body: bytes = reply.SerializeToString()
        return body

    async def _send(self, body: bytes) -> None:
        listener, reply = self._listener, self._msg.reply
        room = listener.max_payload - _HEAD
        if len(body) <= room:
            await listener.send(reply, body)
            return
        count = -(-len(body) // room)
        for number in range(count):
            part = body[number * room : (number + 1) * room]
            headers = {PART_HEADER: f"{number + 1}/{count}"}
            await listener.send(reply, part, headers)

    async def _fail(self, primitive: str, exc: Exception) -> None:
        error = told(exc)
        self._report(error, exc)
        if (stats := self._serving.stats.get(primitive)) is not None:
            stats.errors += 1
            stats.last_error = f"{error.code}: {type(error).__name__}"
        body, headers = encode_fault(error)
        if len(body) > self._listener.max_payload - 4 * _HEAD:
            body, headers = encode_fault(type(error)(shown(str(error))))
        await self._listener.send(self._msg.reply, body, headers)

    def _report(self, error: JskvError, exc: Exception) -> None:
        """One line for a fault of ours, for one of the caller's only who wants it."""
        level = logging.DEBUG
        if error.code >= 500:
            level = logging.WARNING
        elif isinstance(error, InvalidRequestError | PermissionDeniedError):
            level = logging.INFO
        _log.log(
            level,
            "%s: %s: %s",
            shown(self.subject),
            type(exc).__name__,
            ascii(str(exc))[1:-1],
            extra={"event": "jskv.service.fault"},
        )


Serving.kind = Call
