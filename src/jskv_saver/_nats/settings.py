"""Where the server is and who we are: arguments, environment, NATS contexts."""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any, Final

from nats.aio.client import Client

from jskv_saver._nats.addresses import check_addresses, scheme_of
from jskv_saver.errors import InvalidRequestError

DEFAULT_ADDRESS: Final = "nats://localhost:4222"

CONNECT_OPTIONS: Final = frozenset(signature(Client.connect).parameters) - {
    "self",
    "servers",
}
"""Options of `nats.connect`."""
_IDENTITY: Final = frozenset(
    {
        "user",
        "password",
        "token",
        "user_credentials",
        "nkeys_seed",
        "nkeys_seed_str",
        "signature_cb",
        "user_jwt_cb",
    }
)
_ENVIRONMENT: Final = {
    "NATS_USER": "user",
    "NATS_PASSWORD": "password",
    "NATS_TOKEN": "token",
    "NATS_CREDS": "creds",
    "NATS_NKEY": "nkey",
    "NATS_CERT": "cert",
    "NATS_KEY": "key",
    "NATS_CA": "ca",
}
_CONTEXT_FIELDS: Final = (
    "user",
    "password",
    "token",
    "creds",
    "nkey",
    "cert",
    "key",
    "ca",
    "inbox_prefix",
    "tls_first",
)
# Fields of a context that we cannot honour: connecting without them would go elsewhere.
_UNSUPPORTED: Final = ("nsc", "socks_proxy")


@dataclass(frozen=True, slots=True)
class Settings:
    """What to connect to, and how.

    Attributes:
        servers: Addresses.
        options: Keyword arguments of `nats.connect`.
        domain: JetStream domain of the context, if one was used.
        api_prefix: JetStream API prefix of the context.
    """

    servers: tuple[str, ...]
    options: dict[str, Any]
    domain: str | None = None
    api_prefix: str | None = None

    @property
    def secure(self) -> bool:
        """Whether nothing may be sent to a server without TLS."""
        return self.options.get("tls") is not None or any(map(_is_tls, self.servers))

    @property
    def login(self) -> bool:
        """Whether there is one, in the options or in an address."""
        return bool(self.options.keys() & _IDENTITY) or _has_login(self.servers)


def resolve(
    servers: str | Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    role: str = "store",
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Argument before environment before NATS context before localhost:4222.

    The context named by `NATS_CONTEXT`, or else the selected one, counts where no
    address is given as argument; `NATS_URL` replaces the address of the former and
    keeps the latter out. An identity given as options, or in the address, replaces
    that of the environment, which replaces that of the context.

    Args:
        servers: One address, several, or several with commas.
        options: Keyword arguments of `nats.connect`.
        role: Stands in the connection's name.
        environment: In the place of `os.environ`.

    Raises:
        InvalidRequestError: An unknown option, an address that is none, or a context
            that is missing, damaged or needs what this package has not.
    """
    env = os.environ if environment is None else environment
    given = dict(options or {})
    if unknown := sorted(given.keys() - CONNECT_OPTIONS):
        raise InvalidRequestError(f"nats.connect has no option {unknown}")
    addresses = _split(servers) or _split(given.pop("servers", None))
    context: Mapping[str, Any] = {}
    if not addresses:
        addresses = _split(env.get("NATS_URL"))
        name = env.get("NATS_CONTEXT") or (None if addresses else _selected(env))
        context = _read_context(name, env) if name else {}
    addresses = addresses or _split(str(context.get("url") or "")) or (DEFAULT_ADDRESS,)
    check_addresses(addresses)

    fields = {key: context[key] for key in _CONTEXT_FIELDS if context.get(key)}
    from_env = {field: env[key] for key, field in _ENVIRONMENT.items() if env.get(key)}
    fields = _merge(fields, from_env)
    if given.keys() & _IDENTITY or _has_login(addresses):
        fields = {k: v for k, v in fields.items() if k not in _IDENTITY_FIELDS}
    result = {"name": _connection_name(role), **_options_of(fields), **given}
    if any(map(_is_tls, addresses)) and result.get("tls") is None:
        result["tls"] = ssl.create_default_context()
    return Settings(
        addresses,
        result,
        str(context["jetstream_domain"]) if context.get("jetstream_domain") else None,
        str(context["jetstream_api_prefix"])
        if context.get("jetstream_api_prefix")
        else None,
    )


_IDENTITY_FIELDS: Final = frozenset({"user", "password", "token", "creds", "nkey"})


def _is_tls(address: str) -> bool:
    return scheme_of(address) == "tls"


def _has_login(addresses: Sequence[str]) -> bool:
    return any("@" in address for address in addresses)


def _merge(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """One identity, not a mixture of two."""
    if upper.keys() & _IDENTITY_FIELDS:
        lower = {k: v for k, v in lower.items() if k not in _IDENTITY_FIELDS}
    return {**lower, **upper}


def _split(servers: str | Sequence[str] | None) -> tuple[str, ...]:
    if servers is None:
        return ()
    texts = [servers] if isinstance(servers, str) else servers
    if not isinstance(texts, Sequence) or not all(isinstance(t, str) for t in texts):
        raise InvalidRequestError(
            f"{servers!r} is no address of a NATS server: give text like "
            f"{DEFAULT_ADDRESS!r}, or a list of such"
        )
    parts = (part.strip() for text in texts for part in text.split(","))
    return tuple(part for part in parts if part)


def _options_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    simple: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "user": ("user", str),
        "password": ("password", str),
        "token": ("token", str),
        "creds": ("user_credentials", _path),
        "nkey": ("nkeys_seed", _path),
        "inbox_prefix": ("inbox_prefix", str),
        "tls_first": ("tls_handshake_first", bool),
    }
    options = {
        name: convert(fields[field])
        for field, (name, convert) in simple.items()
        if field in fields
    }
    if fields.keys() & {"cert", "key", "ca"}:
        options["tls"] = _tls(fields.get("ca"), fields.get("cert"), fields.get("key"))
    return options


def _path(text: str) -> str:
    return str(Path(text).expanduser())


def _tls(ca: str | None, cert: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=_path(ca) if ca else None)
        if cert:
            context.load_cert_chain(_path(cert), _path(key) if key else None)
    except OSError as exc:
        files = ", ".join(filter(None, (ca, cert, key)))
        raise InvalidRequestError(f"TLS files {files}: {exc}") from exc
    return context


def _contexts(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path("~/.config").expanduser()) / "nats"


def _selected(env: Mapping[str, str]) -> str | None:
    try:
        return (_contexts(env) / "context.txt").read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_context(name: str, env: Mapping[str, str]) -> Mapping[str, Any]:
    """Read a context (ADR-21)."""
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InvalidRequestError(f"{name!r} is no name of a NATS context")
    path = _contexts(env) / "context" / f"{name}.json"
    try:
        context = json.loads(path.read_text())
    except OSError as exc:
        raise InvalidRequestError(f"NATS context {name!r}: {exc}") from exc
    except ValueError as exc:
        raise InvalidRequestError(f"NATS context {path} is no JSON: {exc}") from exc
    if not isinstance(context, dict):
        raise InvalidRequestError(f"NATS context {path} is no object")
    for field in _UNSUPPORTED:
        if context.get(field):
            raise InvalidRequestError(f"NATS context {path}: {field} is not supported")
    return context


def package_version() -> str:
    """This package's version; 0.0.0 when it is not installed."""
    try:
        return version("jskv-saver")
    except PackageNotFoundError:
        return "0.0.0"


def _connection_name(role: str) -> str:
    return f"jskv_saver/{package_version()} {role}@{socket.gethostname()}"
