"""One client: the caller's, or a connection of our own that is kept alive."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error
from nats.protocol.parser import AUTHORIZATION_VIOLATION

from jskv_saver._nats.addresses import redacted
from jskv_saver._nats.credentials import check_credentials
from jskv_saver._nats.settings import Settings, resolve
from jskv_saver._portal import running_loop
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StoreClosedError,
    StoreUnavailableError,
)

_DEFAULTS: Final[Mapping[str, Any]] = {
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": 0.2,
    # A connection that died in silence is noticed in a minute instead of six.
    "ping_interval": 20,
    # Nothing is buffered while disconnected: a write whose caller was told that its
    # outcome is unknown must not happen minutes later.
    "pending_size": -1,
}
_POLL: Final = 0.02
_CLOSING: Final = 2.0
_START: Final = (
    "start one with `nats-server -js`, give another address, or use LocalServer "
    'of "jskv-saver[server]"'
)
_log: Final = logging.getLogger(__name__)
# nats-py's callbacks, and the names of their events.
_CALLBACKS: Final[Mapping[str, str]] = {
    "disconnected_cb": "jskv.connection.disconnected",
    "reconnected_cb": "jskv.connection.reconnected",
    "closed_cb": "jskv.connection.closed",
}


class _NoTlsError(Error):
    """The server has no TLS."""


class _SecureClient(Client):
    """A client that sends nothing, and so no login, to a server without TLS.

    nats-py takes TLS only where the server requires it, whatever the address says.
    """

    async def _process_info(
        self, info: dict[str, Any], initial_connection: bool = False
    ) -> None:
        server = self._current_server
        in_tcp = server is None or server.uri.scheme not in ("ws", "wss")
        # Before the CONNECT message, which has the login.
        if initial_connection and in_tcp and not self.options["tls_handshake_first"]:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise _NoTlsError("it offers no TLS")
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)


class Connection:
    """Where a client comes from; no I/O before `client`.

    Args:
        source: A connected client, addresses, or None for the environment's.
        options: Keyword arguments of `nats.connect`.
        role: Stands in the connection's name.
        on_change: Called whenever the own connection was lost, came back, was closed
            or reported an error, so that waiting requests can be looked at.
    """

    def __init__(
        self,
        source: Client | str | Sequence[str] | None,
        options: Mapping[str, Any] | None = None,
        *,
        role: str = "store",
        on_change: Callable[[], None] | None = None,
    ) -> None:
        if isinstance(source, Client) and options:
            raise InvalidRequestError(
                f"a client that is connected takes no options: {sorted(options)}"
            )
        self._client: Client | None = source if isinstance(source, Client) else None
        self.own: Final = self._client is None
        self.settings: Final = (
            resolve(None if isinstance(source, Client) else source, options, role=role)
            if self.own
            else Settings((), {})
        )
        self._on_change = on_change or (lambda: None)
        self._connecting: asyncio.Task[Client] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._closed = False

    @property
    def current(self) -> Client | None:
        """The client, if there is one."""
        return self._client

    @property
    def where(self) -> str:
        """The servers, without logins, for texts."""
        addresses: Sequence[str] = self.settings.servers
        if self._client is not None and not self.own:
            addresses = [uri.geturl() for uri in self._client.servers]
        return ", ".join(map(redacted, addresses))

    @property
    def last_error(self) -> str:
        """The last error of the connection, for the texts of ours."""
        error = self._error
        if error is None and self._client is not None:
            error = self._client.last_error
        return "" if error is None else f" (last error: {error!r})"

    async def client(self, deadline: float) -> Client:
        """The connected client, after waiting for it until `deadline` (loop time).

        Raises:
            StoreUnavailableError: No server answers.
            InvalidRequestError: TLS is asked for, and the server offers none; or the
                file that has the login is none.
            PermissionDeniedError: The server refuses the credentials.
            StoreClosedError: After `close`.
        """
        loop = asyncio.get_running_loop()
        while True:
            if self._closed:
                raise StoreClosedError("the connection was closed")
            client = self._client
            if client is not None and client.is_connected and not client.is_draining:
                return client
            if client is None or client.is_closed or client.is_draining:
                if not self.own:
                    raise StoreUnavailableError("the given NATS client was closed")
                return await self._connect(deadline)
            if loop.time() >= deadline:
                raise StoreUnavailableError(
                    f"no NATS server answers at {self.where}, nothing was sent"
                    + self.last_error
                )
            await asyncio.sleep(_POLL)

    async def close(self) -> None:
        """Close the own connection; a client that was given stays open. Idempotent."""
        self._closed = True
        if self._connecting is not None:
            connecting = self._connecting
            connecting.cancel()
            await asyncio.wait({connecting})
            # It may have been done before, and nobody told yet.
            self._opened(connecting)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self.own and self._client is not None:
            # The keeper may have had no time to begin.
            await _close(self._client)
            self._client = None

    async def _connect(self, deadline: float) -> Client:
        """Connect once for all that wait for it."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._open(deadline))
            self._connecting.add_done_callback(self._opened)
        # Shielded: a caller that gives up does not take the others' connection away.
        return await asyncio.shield(self._connecting)

    def _opened(self, task: asyncio.Task[Client]) -> None:
        if task is not self._connecting:
            return
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._client = task.result()
            if self._keeper is not None:
                self._keeper.cancel()
            self._keeper = task.get_loop().create_task(self._keep(self._client))

    async def _keep(self, client: Client) -> None:
        """Close the client when the tasks of its loop are ended, as `asyncio.run` does.

        Its own tasks are ended with them, so that it would be of no use any more.
        """
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if client is self._client:
                self._closed = True
            await _close(client)

    async def _open(self, deadline: float) -> Client:
        loop = asyncio.get_running_loop()
        check_credentials(self.settings.options)
        client = _SecureClient() if self.settings.secure else Client()
        _clients.add(client)
        refused: asyncio.Future[JskvError] = loop.create_future()
        options = {**_DEFAULTS, **self.settings.options}
        options.update(self._callbacks(client, options, refused))
        connecting = asyncio.create_task(
            client.connect(servers=list(self.settings.servers), **options)
        )
        opened = False
        try:
            waited: set[asyncio.Future[Any]] = {connecting, refused}
            await asyncio.wait(
                waited,
                timeout=max(0.0, deadline - loop.time()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if connecting.done():
                connecting.result()
                opened = True
                return client
        except (Error, OSError, TimeoutError) as exc:
            raise self._unreachable() from exc
        finally:
            # Given up in mid-wait it may be connected, and nobody else knows of it.
            if not opened:
                connecting.cancel()
                await asyncio.wait({connecting})
                await _close(client)
        raise refused.result() if refused.done() else self._unreachable()

    def _unreachable(self) -> JskvError:
        if isinstance(self._error, ssl.SSLError):
            return StoreUnavailableError(
                f"no TLS with the server at {self.where}{self.last_error}; the CA of "
                "its certificate can be given as NATS_CA, or a context as tls="
            )
        if isinstance(self._error, _NoTlsError):
            return self._without_tls()
        return StoreUnavailableError(
            f"no NATS server at {self.where}{self.last_error}; {_START}"
        )

    def _without_tls(self) -> InvalidRequestError:
        return InvalidRequestError(
            f"the server at {self.where} offers no TLS, which tls:// or tls= asks for: "
            "nothing was sent to it, no login either; turn on TLS there, or use nats://"
        )

    def _not_admitted(self, error: Exception) -> PermissionDeniedError:
        if self.settings.login:
            what = "refused the credentials: check the login that was given"
        else:
            what = (
                "asks for a login, and none was given: write it into the address, as "
                "in nats://TOKEN@HOST:PORT or nats://USER:PASSWORD@HOST:PORT, or set "
                "NATS_CREDS or NATS_USER and NATS_PASSWORD"
            )
        return PermissionDeniedError(f"the server at {self.where} {what} ({error})")

    def _callbacks(
        self,
        client: Client,
        options: Mapping[str, Any],
        refused: asyncio.Future[JskvError],
    ) -> dict[str, Any]:
        """Ours, each followed by the one in the options."""

        def chained(name: str) -> Callable[[], Awaitable[None]]:
            theirs = options.get(name)

            async def callback() -> None:
                what = name.removesuffix("_cb")
                _log.info(
                    "NATS connection: %s", what, extra={"event": _CALLBACKS[name]}
                )
                if name == "disconnected_cb":
                    _forget_unsent(client)
                    # Its reader has ended by now, maybe in mid-frame, and what it
                    # left would swallow the next connection's bytes.
                    client._ps.reset()
                self._on_change()
                if theirs is not None:
                    await theirs()

            return callback

        their_error_cb = options.get("error_cb")

        async def error_cb(error: Exception) -> None:
            self._error = error
            _log.debug(
                "NATS connection: %r",
                error,
                extra={"event": "jskv.connection.error"},
            )
            if not refused.done():
                # There is no class for it while connecting; the constant is nats-py's.
                if AUTHORIZATION_VIOLATION in str(error).lower():
                    refused.set_result(self._not_admitted(error))
                elif isinstance(error, _NoTlsError) and len(self.settings.servers) == 1:
                    refused.set_result(self._without_tls())
            self._on_change()
            if their_error_cb is not None:
                await their_error_cb(error)

        return {"error_cb": error_cb, **{name: chained(name) for name in _CALLBACKS}}


def _forget_unsent(client: Client) -> None:
    """Drop what was written to the client but not to the socket.

    nats-py would send it after reconnecting, although the callers have been told by
    then; subscriptions are sent again by themselves.
    """
    client._pending.clear()
    client._pending_data_size = 0


def loop_of(nc: Client) -> asyncio.AbstractEventLoop:
    """The loop that the client lives on, which is that of its reading task."""
    if not isinstance(nc, Client):
        raise InvalidRequestError(
            f"nc must be a connected nats client, not {type(nc).__name__}; for an "
            "address use from_conn_string(...)"
        )
    task = getattr(nc, "_reading_task", None)
    loop = task.get_loop() if isinstance(task, asyncio.Task) else running_loop()
    if loop is None:
        raise InvalidRequestError(
            "the nats client is not connected: give one that is, or use "
            "from_conn_string, which connects by itself"
        )
    return loop


async def _close(client: Client) -> None:
    try:
        # After a TLS handshake that failed nobody says that the socket is closed.
        async with asyncio.timeout(_CLOSING):
            await client.close()
    except OSError:
        # The socket was gone already: closed is what we wanted.
        return


_clients: Final[weakref.WeakSet[Client]] = weakref.WeakSet()
"""The clients that were made here."""


def _let_go() -> None:
    """In a forked child: leave the sockets to the parent.

    The child would keep its connections alive beyond its end, and whatever closes
    one in the child, be it the garbage collector, would take it off the parent's
    selector, which the two share.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for client in list(_clients):
        transport: Any = client._transport
        wire = getattr(transport, "_io_writer", None) or getattr(transport, "_ws", None)
        socket = None if wire is None else wire.get_extra_info("socket")
        if socket is not None and socket.fileno() >= 0:
            os.dup2(nothing, socket.fileno(), inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_let_go)
