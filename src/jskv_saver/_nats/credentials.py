"""Key and credentials files, looked at before nats-py does.

It would search for ever, on the loop of everybody, for a token that a file has not,
and has no text for a file that is missing.
"""

from __future__ import annotations

from collections import UserString
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from jskv_saver.errors import InvalidRequestError

_TOKEN: Final = b"BEGIN NATS USER JWT"
_SEED: Final = b"BEGIN USER NKEY SEED"
_OPTIONS: Final = ("user_credentials", "nkeys_seed", "nkeys_seed_str")


def check_credentials(options: Mapping[str, Any]) -> None:
    """Check what the options of `nats.connect` name.

    Raises:
        InvalidRequestError: A file is not there or is none, or the package that signs
            is not installed.
    """
    credentials, path, seed = (options.get(name) for name in _OPTIONS)
    if credentials is None and path is None and seed is None:
        return
    if find_spec("nkeys") is None:
        raise InvalidRequestError(
            "nkeys and credentials files need a package that signs; install it with: "
            'pip install "jskv-saver[nkeys]"'
        )
    if credentials is not None:
        _check_credentials(credentials)
    elif seed or path is None:
        _check_seed(str(seed).strip().encode(), "nkeys_seed_str")
    else:
        _check_seed(_read(path).strip(), repr(str(path)))


def _check_credentials(given: Any) -> None:
    if isinstance(given, tuple):
        token, seed = given
        _read(token)
        _check_seed(_read(seed).strip(), repr(str(seed)))
        return
    as_text = isinstance(given, UserString)
    where = "the text of user_credentials" if as_text else repr(str(given))
    lines = (given.data.encode() if as_text else _read(given)).splitlines()
    _after(_TOKEN, lines, where)
    _check_seed(_after(_SEED, lines, where), where)


def _after(mark: bytes, lines: list[bytes], where: str) -> bytes:
    """The line that follows a mark."""
    for line, following in pairwise(lines):
        if mark in line and following:
            return following
    raise InvalidRequestError(
        f"{where} is no credentials file: nothing follows a line {mark.decode()!r}"
    )


def _read(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise InvalidRequestError(
            f"the login is in {str(path)!r}, which cannot be read: {exc.strerror}"
        ) from exc


def _check_seed(seed: bytes, where: str) -> None:
    import nkeys

    try:
        nkeys.from_seed(bytearray(seed)).wipe()
    except (nkeys.NkeysError, ValueError, IndexError):
        # Their texts may quote it.
        raise InvalidRequestError(f"{where} has no nkey seed") from None
