"""Servers of the peers: a Postgres and a Redis of one's own, on loopback."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

HOST = "127.0.0.1"
UTF8 = ("-E", "UTF8", "--locale=C")
_READY_SECONDS = 30.0


class Missing(Exception):
    """A server or a package of a peer is not installed; the text says which."""


def free_port() -> int:
    """A port that nobody listens on."""
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def postgres_program(name: str) -> str:
    """Where a program of Postgres is: on the path, or the newest of Debian's."""
    found = shutil.which(name)
    if found is None:
        versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
        newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
        if newest is None:
            raise Missing(f"no {name}: install Postgres")
        found = str(newest)
    return found


def version(program: str) -> str:
    """The name and version that a server tells, without what follows."""
    command = [program, "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)+", told)
    return f"{Path(program).name} {found[0] if found else told.strip()}"


def _account() -> str | None:
    """Whom Postgres runs as: it refuses root. None: whoever runs this."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def postgres() -> Iterator[str]:
    """A Postgres as `initdb` sets it up; its URL, without a database."""
    initdb, program = postgres_program("initdb"), postgres_program("postgres")
    user = _account()
    with _folder("bench-postgres-", user) as folder:
        data, port = folder / "data", free_port()
        _quietly(
            [initdb, "-D", str(data), "-A", "trust", "-U", "bench", *UTF8],
            user,
        )
        command = [program, "-D", str(data), "-h", HOST, "-p", str(port)]
        command += ["-c", "unix_socket_directories="]
        with _running(command, folder, user, lambda: _listens(port), signal.SIGINT):
            yield f"postgresql://bench@{HOST}:{port}"


@contextmanager
def redis(appendfsync: str) -> Iterator[str]:
    """A Redis with an append-only file and nothing else changed; its URL."""
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("no redis-server: install Redis")
    with _folder("bench-redis-", None) as folder:
        port = free_port()
        command = [program, "--bind", HOST, "--port", str(port), "--dir", str(folder)]
        command += ["--appendonly", "yes", "--appendfsync", appendfsync]
        with _running(command, folder, None, lambda: _listens(port), signal.SIGTERM):
            yield f"redis://{HOST}:{port}/0"


@contextmanager
def _folder(prefix: str, user: str | None) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        if user is not None:
            shutil.chown(path, user)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _quietly(command: list[str], user: str | None) -> None:
    done = subprocess.run(
        command,
        user=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()}")


@contextmanager
def _running(
    command: list[str],
    folder: Path,
    user: str | None,
    ready: Callable[[], bool],
    end: signal.Signals,
) -> Iterator[None]:
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            user=user,
            extra_groups=None if user is None else [],
            stdout=output,
            stderr=output,
            cwd="/",
        )
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{command[0]} did not start: {said}")
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(end)
        process.wait()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) == 0
