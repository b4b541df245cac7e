"""The document service: any document store, for callers that have NATS only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Final, Self

import nats.errors
from google.protobuf.message import DecodeError
from nats.aio.client import Client

from jskv_saver._nats.connection import Connection, loop_of
from jskv_saver._nats.listener import Listener, settle
from jskv_saver._nats.settings import package_version
from jskv_saver._nats.tap import Answer
from jskv_saver._nats.tokens import encode_token
from jskv_saver._nats.waiting import PART_HEADER
from jskv_saver.adapters.wire import subjects
from jskv_saver.adapters.wire.discovery import Counted, Identity
from jskv_saver.adapters.wire.endpoints import ENDPOINTS, Endpoint
from jskv_saver.adapters.wire.faults import encode_fault, told
from jskv_saver.adapters.wire.turns import Turns
from jskv_saver.document.names import shown
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreClosedError,
    StoreUnavailableError,
    WrongThreadError,
)

DEFAULT_NAME: Final = "jskv-documents"
_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of one answer, in several messages: what a client surely takes at a time."""
_HEAD: Final = 256
"""Bytes kept free in each message for its headers."""
_LONGEST: Final = 600.0
"""Seconds that a call may take, whatever its caller says."""
_DEFAULT_CALL: Final = 30.0
_CONNECT: Final = 5.0

_log: Final = logging.getLogger(__name__)


class DocumentService:
    """Serves a document store on NATS, to be asked by `RemoteDocumentStore`.

    It shows in `nats service ls`. Several with the same store share the load. What is
    no legal request is answered with an error before the store is touched.

    Args:
        store: Any document store. It stays open when the service ends.
        nc: A connected nats-py client, which stays open; or addresses, or None for
            those of the environment.
        name: Of the service; letters, digits, `-` and `_`.
        description: For people.
        metadata: Whatever else it should show.
        queue_group: Servers with the same one share the requests.
        inbox_prefixes: Where answers may go besides `_INBOX.`, for callers with an
            inbox prefix of their own.
        max_concurrent: Calls at a time.
        max_waiting: Calls that may wait for a place; more are refused.
        drain_timeout: Seconds that calls may take to their end when it stops.
        **options: Of `nats.connect`, where no client is given.

    Raises:
        InvalidRequestError: An argument has no legal value.
    """

    def __init__(
        self,
        store: DocumentStore,
        nc: Client | str | Sequence[str] | None,
        *,
        name: str = DEFAULT_NAME,
        description: str = "Documents over NATS (jskv_saver)",
        metadata: Mapping[str, str] | None = None,
        queue_group: str = subjects.QUEUE,
        inbox_prefixes: Iterable[str] = (),
        max_concurrent: int = 64,
        max_waiting: int = 4096,
        drain_timeout: float = 30.0,
        **options: Any,
    ) -> None:
        if not isinstance(store, DocumentStore):
            raise InvalidRequestError(
                f"store must be a document store, not {type(store).__name__}"
            )
        for what, number in (
            ("max_concurrent", max_concurrent),
            ("max_waiting", max_waiting),
        ):
            if type(number) is not int or number < 1:
                raise InvalidRequestError(f"{what} must be a number above 0")
        self._store: Final = store
        self._connection: Final = Connection(nc, options, role="service")
        self._inboxes: Final = (
            *subjects.DEFAULT_INBOXES,
            *subjects.check_inboxes(inbox_prefixes),
        )
        self._queue: Final = queue_group
        self._drain_timeout: Final = drain_timeout
        self._turns: Final = Turns(max_concurrent, max_waiting)
        self._stats: Final = {primitive: Counted() for primitive in ENDPOINTS}
        self._what: Final = (name, description, dict(metadata or {}))
        self._identity: Identity | None = None
        self._listener: Listener | None = None
        self._stopping = False
        self._control: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        # Its form is checked now, not when it starts.
        self._identify("new")

    @property
    def store(self) -> Any:
        """What it serves."""
        return self._store

    @property
    def where(self) -> str:
        """The NATS servers, without logins."""
        return self._connection.where

    @property
    def id(self) -> str | None:
        """Which one it is among those of the same name; None before it starts."""
        return None if self._identity is None else self._identity.id

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect and serve. Requests reach it when this returns.

        Raises:
            StoreUnavailableError: No NATS server answers.
            StoreClosedError: It was stopped before.
            WrongThreadError: The client is of another event loop.
        """
        if self._stopping:
            raise StoreClosedError("the service was stopped: make a new one")
        if self._listener is not None:
            return
        loop = asyncio.get_running_loop()
        client = await self._connection.client(loop.time() + _CONNECT)
        if loop_of(client) is not loop:
            raise WrongThreadError(
                "the service lives on the event loop of its client: start it there"
            )
        self._identity = self._identify(client._nuid.next().decode())
        setup = getattr(self._store, "setup", None)
        if setup is not None:
            await setup()
        self._listener = Listener(client, subjects.ALL, self._queue, self._deliver)
        await self._listener.start()
        for subject in self._identity.subjects():
            self._control.append(await client.subscribe(subject, cb=self._describe))
        await settle(client)

    async def stop(self) -> None:
        """Take no new requests, answer those that were accepted, and leave. Idempotent.

        What takes longer than `drain_timeout` is given up.
        """
        listener = self._listener
        if listener is None or self._stopping:
            return
        # Requests that are on their way still come in, up to the end of the drain.
        self._stopping = True
        try:
            for subscription in self._control:
                await subscription.unsubscribe()
            await listener.drain()
        except nats.errors.Error as exc:
            _log.warning("leaving without saying so: %r", exc)
        self._control.clear()
        if not self._turns.idle:
            self._idle.clear()
            try:
                async with asyncio.timeout(self._drain_timeout):
                    await self._idle.wait()
            except TimeoutError:
                _log.warning("given up at the end: %d calls", len(self._tasks))
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        try:
            await listener.close()
        except nats.errors.Error as exc:
            _log.warning("leaving without saying so: %r", exc)
        await self._connection.close()

    def _identify(self, id: str) -> Identity:
        name, description, metadata = self._what
        return Identity(
            id,
            name,
            package_version(),
            description,
            metadata,
            self._queue,
            self._stats,
        )

    async def _describe(self, msg: Any) -> None:
        identity, client = self._identity, self._connection.current
        if identity is None or client is None:
            return
        if not subjects.is_inbox(msg.reply, self._inboxes):
            _log.warning("not answered: %s is no inbox", shown(msg.reply))
            return
        await client.publish(msg.reply, identity.answer(msg.subject))

    # -- a request ---------------------------------------------------------------------

    def _deliver(self, msg: Answer) -> None:
        listener = self._listener
        reply = msg.reply
        if listener is None:
            return
        if not subjects.is_inbox(reply, self._inboxes):
            # Answered there, we would write where the caller may not.
            _log.warning(
                "not served, %s is no inbox: %s", shown(reply), shown(msg.subject)
            )
            return
        call = _Call(self, listener, msg)
        if not self._turns.enter(call.caller, call.start, len(msg.data)):
            call.refuse()

    def _ended(self, call: _Call, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Only what answering itself raises.
            _log.warning("not answered: %s: %r", shown(call.subject), error)
        self._turns.leave(call.caller)
        if self._turns.idle:
            self._idle.set()


class _Call:
    """One request on its way."""

    __slots__ = (
        "_listener",
        "_msg",
        "_service",
        "arrived",
        "caller",
        "subject",
    )

    def __init__(
        self, service: DocumentService, listener: Listener, msg: Answer
    ) -> None:
        self._service = service
        self._listener = listener
        self._msg = msg
        self.subject = msg.subject
        self.caller = msg.reply.rpartition(".")[0]
        self.arrived = perf_counter_ns()

    def start(self) -> None:
        """Serve it in a task of its own."""
        self._run(self._serve())

    def refuse(self) -> None:
        """Answer that there is no place; that takes none."""
        busy = StoreUnavailableError(
            "the document service has too many calls waiting: nothing was done"
        )
        task = asyncio.get_running_loop().create_task(self._fail("", busy))
        self._service._tasks.add(task)
        task.add_done_callback(self._service._tasks.discard)

    def _run(self, work: Any) -> None:
        service = self._service
        task = asyncio.get_running_loop().create_task(work)
        service._tasks.add(task)
        task.add_done_callback(lambda done: service._ended(self, done))

    async def _serve(self) -> None:
        token, primitive = subjects.parse_subject(self.subject)
        endpoint = ENDPOINTS.get(primitive)
        stats = self._service._stats.get(primitive)
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
        if encode_token(request.namespace) != token:
            raise PermissionDeniedError(
                f"the request is about {shown(request.namespace)}, its subject is "
                "about another namespace",
                subject=self.subject,
            )
        patience = min(request.timeout_ms / 1000 or _DEFAULT_CALL, _LONGEST)
        left = patience - (perf_counter_ns() - self.arrived) / 1e9
        if left <= 0:
            _log.info("not begun, its caller has gone: %s", shown(self.subject))
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
            reply = await endpoint.serve(self._service._store, request, _ANSWER)
        except asyncio.CancelledError:
            if not given_up:
                raise
            task.uncancel()
            _log.info("given up, its caller has gone: %s", shown(self.subject))
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
        if (stats := self._service._stats.get(primitive)) is not None:
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
        )
