"""The document service: any document store, for callers that have NATS only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import nats.errors
from nats.aio.client import Client

from jskv_saver._nats.connection import Connection, loop_of
from jskv_saver._nats.faults import translate
from jskv_saver._nats.listener import Listener, settle
from jskv_saver._nats.settings import package_version
from jskv_saver._nats.tap import Answer
from jskv_saver.adapters.wire import subjects
from jskv_saver.adapters.wire.discovery import Identity
from jskv_saver.adapters.wire.serving import Serving
from jskv_saver.adapters.wire.turns import Turns
from jskv_saver.document.names import shown
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    InvalidRequestError,
    StoreClosedError,
    WrongThreadError,
)

DEFAULT_NAME: Final = "jskv-documents"
_CONNECT: Final = 5.0

_log: Final = logging.getLogger(__name__)
_UNHEARD: Final = {"event": "jskv.service.left_unheard"}
_NO_INBOX: Final = {"event": "jskv.service.no_inbox"}


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
        self._connection: Final = Connection(nc, options, role="service")
        self._inboxes: Final = (
            *subjects.DEFAULT_INBOXES,
            *subjects.check_inboxes(inbox_prefixes),
        )
        self._queue: Final = queue_group
        self._drain_timeout: Final = drain_timeout
        self._serving: Final = Serving(store, Turns(max_concurrent, max_waiting))
        self._what: Final = (name, description, dict(metadata or {}))
        self._identity: Identity | None = None
        self._listener: Listener | None = None
        self._stopping = False
        self._control: list[Any] = []
        # Its form is checked now, not when it starts.
        self._identify("new")

    @property
    def store(self) -> Any:
        """What it serves."""
        return self._serving.store

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
        try:
            await self._start()
        except BaseException:
            await self._connection.close()
            raise

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        client = await self._connection.client(loop.time() + _CONNECT)
        if loop_of(client) is not loop:
            raise WrongThreadError(
                "the service lives on the event loop of its client: start it there"
            )
        setup = getattr(self._serving.store, "setup", None)
        if setup is not None:
            await setup()
        self._identity = self._identify(client._nuid.next().decode())
        listener = Listener(client, subjects.ALL, self._queue, self._deliver)
        self._listener = listener
        with translate(write=False):
            await listener.start()
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
            _log.warning("leaving without saying so: %r", exc, extra=_UNHEARD)
        self._control.clear()
        await self._serving.finish(self._drain_timeout)
        try:
            await listener.close()
        except nats.errors.Error as exc:
            _log.warning("leaving without saying so: %r", exc, extra=_UNHEARD)
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
            self._serving.stats,
        )

    async def _describe(self, msg: Any) -> None:
        identity, client = self._identity, self._connection.current
        if identity is None or client is None:
            return
        if not subjects.is_inbox(msg.reply, self._inboxes):
            _log.warning(
                "not answered: %s is no inbox", shown(msg.reply), extra=_NO_INBOX
            )
            return
        await client.publish(msg.reply, identity.answer(msg.subject))

    def _deliver(self, msg: Answer) -> None:
        listener = self._listener
        if listener is None:
            return
        if not subjects.is_inbox(msg.reply, self._inboxes):
            # Answered there, we would write where the caller may not.
            _log.warning(
                "not served, %s is no inbox: %s",
                shown(msg.reply),
                shown(msg.subject),
                extra=_NO_INBOX,
            )
            return
        self._serving.take(listener, msg)
