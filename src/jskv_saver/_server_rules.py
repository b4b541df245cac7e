"""What `LocalServer` takes: refused by name before a process is started."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import subprocess
from pathlib import Path

from jskv_saver.errors import InvalidRequestError, StoreUnavailableError

_LOGIN = re.compile(r"[A-Za-z0-9._~-]+")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_TIME = re.compile(r"(?=.*[1-9])(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")
_PORTS = 65535
_ANSWER_SECONDS = 5.0


def check_login(token: str | None, user: str | None, password: str | None) -> None:
    """One login that a URL can hold, or none."""
    if (user is None) != (password is None) or (user and token):
        raise InvalidRequestError("give user and password, or a token, or nothing")
    for value in (token, user, password):
        if value is not None and not (
            isinstance(value, str) and _LOGIN.fullmatch(value)
        ):
            raise InvalidRequestError(
                "token, user and password are made of letters, digits and ._~-"
            )


def check_address(host: str, port: int) -> None:
    """A host of IPv4, and a port."""
    if type(port) is not int or not 0 <= port <= _PORTS:
        raise InvalidRequestError(
            f"port has to be a number from 1 to {_PORTS}, or 0 for a free one, "
            f"not {port!r}"
        )
    if not isinstance(host, str) or not _is_host(host):
        raise InvalidRequestError(
            f"host {host!r} is neither an IPv4 address nor a name (IPv6 is not "
            "supported): give 127.0.0.1, 0.0.0.0, localhost or another"
        )


def _is_host(host: str) -> bool:
    if host.replace(".", "").isdigit():
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return False
        return True
    return _HOST.fullmatch(host) is not None


def check_storage(sync_interval: str, store_limit: int | None) -> None:
    """How streams are kept."""
    if not isinstance(sync_interval, str) or not (
        sync_interval == "always" or _TIME.fullmatch(sync_interval)
    ):
        raise InvalidRequestError(
            "sync_interval has to be 'always' or a time such as '2m', '10s' or "
            f"'500ms', not {sync_interval!r}"
        )
    if store_limit is not None and (type(store_limit) is not int or store_limit < 1):
        raise InvalidRequestError(
            f"store_limit has to be a number of bytes, or None, not {store_limit!r}"
        )


def store_path(given: str | os.PathLike[str]) -> Path:
    """The absolute path of a store; `~` is the home directory."""
    if not isinstance(given, str | os.PathLike) or not isinstance(
        os.fspath(given), str
    ):
        raise InvalidRequestError(f"store_dir must be a path, not {given!r:.80}")
    if not os.fspath(given):
        raise InvalidRequestError("store_dir is empty; None means a temporary one")
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as exc:
        raise InvalidRequestError(f"store_dir {os.fspath(given)!r}: {exc}") from exc


def make_directory(path: Path) -> None:
    """Make a directory of a store, for its owner only, if it is not there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise InvalidRequestError(
            f"store_dir {str(path)!r} is no directory: there is a file of that name, "
            "or above it"
        ) from exc
    except OSError as exc:
        raise StoreUnavailableError(
            f"store_dir {str(path)!r} cannot be made: {exc.strerror}"
        ) from exc
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnavailableError(
            f"store_dir {str(path)!r} cannot be written to by this user"
        )


def check_listening(host: str) -> None:
    """Whether one may listen on that host here, on any port."""
    try:
        socket.create_server((host, 0)).close()
    except OSError as exc:
        raise InvalidRequestError(
            f"host {host!r} is no address of this machine: {exc.strerror or exc}"
        ) from exc


def check_program(program: str) -> None:
    """Whether a program that did not start as it should is a nats-server at all."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        said = b""
    except OSError as exc:
        raise InvalidRequestError(
            f"{program!r} is no nats-server: it cannot be run ({exc.strerror})"
        ) from exc
    else:
        said = done.stdout
    if not said.startswith(b"nats-server"):
        raise InvalidRequestError(
            f"{program!r} is no nats-server: it does not say so when it is called with "
            "--version"
        )
