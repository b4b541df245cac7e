"""Addresses of servers: which ones are legal, and how they are shown. Pure."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from jskv_saver.errors import InvalidRequestError

SCHEMES: Final = ("nats", "tls", "ws", "wss")
"""What nats-py takes; without one it is nats."""
_WEB: Final = frozenset({"ws", "wss"})
_EXAMPLE: Final = "write it like nats://localhost:4222"
_GAP: Final = re.compile(r"[\s\x00-\x1f\x7f]").search


def scheme_of(address: str) -> str:
    """The scheme of an address."""
    before, separator, _ = address.partition("://")
    return before if separator else "nats"


def redacted(address: str) -> str:
    """The address without its login."""
    before, separator, rest = address.rpartition("://")
    return before + separator + rest.rpartition("@")[2]


def check_addresses(addresses: Sequence[str]) -> None:
    """Refuse what nats-py would fail on later, and less clearly.

    Raises:
        InvalidRequestError: One is malformed, has a scheme that does not exist, or
            needs a package that is not installed; or they cannot be used together.
    """
    for address in addresses:
        if reason := _fault_of(address):
            raise InvalidRequestError(
                f"{redacted(address)!r} is no address of a NATS server: {reason}"
            )
    schemes = {scheme_of(address) for address in addresses}
    if schemes & _WEB and not schemes <= _WEB:
        raise InvalidRequestError(
            "addresses with ws:// or wss:// cannot be mixed with others: "
            + ", ".join(map(redacted, addresses))
        )
    if schemes & _WEB and importlib.util.find_spec("aiohttp") is None:
        raise InvalidRequestError(
            f"{redacted(addresses[0])!r} is a WebSocket, for which nats-py needs "
            "another package: pip install aiohttp"
        )


def _fault_of(address: str) -> str | None:
    scheme = scheme_of(address)
    if scheme not in SCHEMES:
        return f"its scheme is {scheme!r}, not one of {', '.join(SCHEMES)}; {_EXAMPLE}"
    if _GAP(address):
        return f"there is a space or a control character in it; {_EXAMPLE}"
    try:
        parts = urlsplit(address if "://" in address else f"nats://{address}")
        if not parts.hostname:
            return f"it names no host; {_EXAMPLE}"
        port = parts.port
    except ValueError as exc:
        # Its text may quote a piece of a password.
        what = "port" if "port" in str(exc).lower() else "host"
        port_rule = ", a number from 1 to 65535" if what == "port" else ""
        return f"its {what} cannot be read{port_rule}; {_EXAMPLE}"
    if port == 0:
        return f"its port is 0, not a number from 1 to 65535; {_EXAMPLE}"
    if scheme not in _WEB and (parts.path.strip("/") or parts.query or parts.fragment):
        return f"a host and a port are all it has, no path; {_EXAMPLE}"
    return None
