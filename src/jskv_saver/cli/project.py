"""A nats-server of a project's own: what is in its folder `.jskv`, and what runs.

.jskv/.gitignore     keeps it out of version control
.jskv/server.json    port and login, so that its address stays the same
.jskv/lock           held while a server is started or ended
.jskv/store          the streams; its `local-server` has configuration and log
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jskv_saver import LocalServer
from jskv_saver._server_process import free_port, holder
from jskv_saver.errors import InvalidRequestError, StoreUnavailableError

FOLDER: Final = ".jskv"
_HOST: Final = "127.0.0.1"
_ENDS: Final = 20.0
_LOOK: Final = 0.02
_MADE_HERE: Final = "made by jskv up"


@dataclass(frozen=True, slots=True)
class State:
    """A project's server.

    Attributes:
        folder: The project's folder `.jskv`.
        running: Whether it runs.
        pid: Its process id; 0: it does not run, or that is not known.
        port: Its port; 0: it never ran.
        url: Its address, with the login; empty: it never ran.
        log: Where it logs.
    """

    folder: str
    running: bool
    pid: int
    port: int
    url: str
    log: str


class Project:
    """The server of a project.

    Args:
        directory: The project's directory.
    """

    def __init__(self, directory: Path) -> None:
        self.folder: Final = directory / FOLDER
        self._store: Final = self.folder / "store"
        self._home: Final = self._store / "local-server"

    @classmethod
    def find(cls, directory: Path) -> Project:
        """The project that a directory is in; a new one there if it is in none."""
        for parent in (directory, *directory.parents):
            if (parent / FOLDER / "server.json").is_file():
                return cls(parent)
        return cls(directory)

    def state(self) -> State:
        """Whether it runs, and where."""
        settings = self._settings()
        pid = holder(self._store)
        port, token = int(settings.get("port", 0)), str(settings.get("token", ""))
        return State(
            folder=str(self.folder),
            running=pid is not None,
            pid=pid or 0,
            port=port,
            url=f"nats://{token}@{_HOST}:{port}" if port else "",
            log=str(self._home / "nats-server.log"),
        )

    def up(self, port: int | None = None) -> State:
        """Start it, if it does not run; its port and login stay those of before.

        Args:
            port: Its port; None: the one of before, else any.

        Raises:
            InvalidRequestError: It runs on another port; or there is no program.
            StoreUnavailableError: The port is in use, or it did not start.
        """
        self._make()
        with self._locked():
            state = self.state()
            if state.running:
                if not state.port:
                    raise InvalidRequestError(
                        f"a server runs on {str(self._store)!r}, and the file with its "
                        "address and login is gone: `jskv down` ends it, then start it "
                        "again"
                    )
                if port not in (None, 0, state.port):
                    raise InvalidRequestError(
                        f"it runs on port {state.port} already: `jskv down` ends it"
                    )
                return state
            settings = self._settings()
            chosen = port or int(settings.get("port", 0)) or free_port(_HOST)
            token = str(settings.get("token") or secrets.token_hex(16))
            # Before it runs: whoever finds it running must be able to find it.
            self._write({"port": chosen, "token": token})
            with LocalServer(self._store, chosen, token=token, detach=True):
                return self.state()

    def down(self) -> bool:
        """End it; False: it did not run. What it stored stays.

        Raises:
            StoreUnavailableError: It does not end, or who runs on the store is not
                the server that was started here.
        """
        if not self.folder.is_dir():
            return False
        with self._locked():
            state = self.state()
            if not state.running:
                return False
            if not state.pid or not self._is_ours(state.pid):
                raise StoreUnavailableError(
                    f"process {state.pid or 'unknown'} holds {self._store} and is not "
                    "the server that `jskv up` started: end it yourself"
                )
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGTERM)
            end = time.monotonic() + _ENDS
            while holder(self._store) is not None:
                if time.monotonic() > end:
                    raise StoreUnavailableError(
                        f"the server, process {state.pid}, does not end: "
                        f"`kill -9 {state.pid}` does it"
                    )
                time.sleep(_LOOK)
            return True

    def _is_ours(self, pid: int) -> bool:
        """Whether a process was started with the configuration in here."""
        return str(self._home / "nats-server.conf") in _command_of(pid)

    def _make(self) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
            (self.folder / ".gitignore").write_text("*\n")
        except OSError as exc:
            raise InvalidRequestError(
                f"{str(self.folder)!r} cannot be made: {exc.strerror}"
            ) from exc

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Another `up` or `down` ends soon; what it starts does not inherit this.
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _settings(self) -> dict[str, Any]:
        path = self.folder / "server.json"
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            raise InvalidRequestError(
                f"{str(path)!r} is damaged ({exc}): remove it; the server gets another "
                "port and login then"
            ) from exc
        return found if isinstance(found, dict) else {}

    def _write(self, settings: dict[str, Any]) -> None:
        path = self.folder / "server.json"
        fresh = path.with_suffix(f".{os.getpid()}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as stream:
            json.dump(settings, stream)
        os.replace(fresh, path)


def _command_of(pid: int) -> str:
    """The command line of a process; empty if there is none, or it is not told."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    with contextlib.suppress(OSError):
        return subprocess.run(
            ["ps", "-ww", "-o", "command=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    return ""


def write_context(name: str, url: str, *, select: bool) -> Path:
    """Write a context of the nats command (ADR-21).

    Args:
        name: Its name.
        url: The address, with the login.
        select: Make it the current one.

    Raises:
        InvalidRequestError: The name is none, or a context of that name was made by
            somebody else.
    """
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise InvalidRequestError(f"{name!r} is no name of a NATS context")
    home = os.environ.get("XDG_CONFIG_HOME")
    base = (Path(home) if home else Path("~/.config").expanduser()) / "nats"
    path = base / "context" / f"{name}.json"
    if path.exists() and _MADE_HERE not in path.read_text(errors="replace"):
        raise InvalidRequestError(
            f"there is a NATS context {name!r} already, not of ours: name another one"
        )
    login, _, address = url.removeprefix("nats://").rpartition("@")
    context = {"description": _MADE_HERE, "url": f"nats://{address}", "token": login}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as stream:
        json.dump(context, stream, indent=2)
        stream.write("\n")
    if select:
        (base / "context.txt").write_text(name)
    return path
