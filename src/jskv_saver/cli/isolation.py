"""What each user of a nats-server may do, as its configuration. Pure.

Three ways to keep namespaces apart: see docs/isolation.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jskv_saver._nats.tokens import encode_token
from jskv_saver.adapters.jetstream.stream import stream_name
from jskv_saver.adapters.wire.subjects import ALL, ROOT
from jskv_saver.errors import InvalidRequestError

ACCOUNT: Final = "JSKV"
"""The account that users share, where they share one."""
OWNER: Final = "jskv-owner"
"""Makes the buckets of others, and reads and writes none of them."""
SERVICE: Final = "jskv-service"
"""The process of the document service."""
DEFAULT_BUCKET: Final = "jskv"
DEFAULT_SIZE: Final = "1GB"

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_SIZE: Final = re.compile(r"[1-9][0-9]*[KMGT]B").fullmatch
_INBOX: Final = "_INBOX"
_API: Final = "$JS.API"


class Mode(StrEnum):
    """How namespaces are kept apart."""

    SERVICE = "service"
    ACCOUNT = "account"
    BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whoever uses one namespace.

    Attributes:
        namespace: Any text.
        user: Its login.
        bucket: Where its documents are.
    """

    namespace: str
    user: str
    bucket: str

    @property
    def inbox(self) -> str:
        """The prefix of its own inboxes, for `inbox_prefix=`."""
        return f"{_INBOX}_{self.user}"

    @property
    def subjects(self) -> str:
        """Its requests to the document service."""
        return f"{ROOT}.{encode_token(self.namespace)}.>"


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    publish: Sequence[str]
    subscribe: Sequence[str]


def tenants_of(
    mode: Mode, namespaces: Sequence[str], users: Sequence[str], buckets: Sequence[str]
) -> list[Tenant]:
    """Put together what was given in order; what is not given follows from the rest.

    Raises:
        InvalidRequestError: A name is missing, illegal, or there twice.
    """
    if not namespaces:
        raise InvalidRequestError("name at least one namespace")
    _check_once("namespace", namespaces)
    if users and len(users) != len(namespaces):
        raise InvalidRequestError("name a user for each namespace, or for none")
    users = users or namespaces
    if mode is Mode.BUCKET:
        buckets = buckets or [f"{DEFAULT_BUCKET}-{user}" for user in users]
        if len(buckets) != len(namespaces):
            raise InvalidRequestError("name a bucket for each namespace, or for none")
    elif len(buckets) > 1:
        raise InvalidRequestError(f"mode {mode} has one name for buckets")
    else:
        buckets = [*(buckets or [DEFAULT_BUCKET])] * len(namespaces)
    for user in users:
        if not _NAME(user):
            raise InvalidRequestError(
                f"{user!r} is no name of a user: give one of letters, digits, - and _ "
                "for each namespace"
            )
    for bucket in buckets:
        if not _NAME(bucket):
            raise InvalidRequestError(f"{bucket!r} is no name of a bucket")
    if mode is Mode.BUCKET:
        _check_once("bucket", buckets)
    _check_once("user", [*users, OWNER, SERVICE])
    _check_once("variable", [variable_of(user) for user in users])
    return [Tenant(*each) for each in zip(namespaces, users, buckets, strict=True)]


def _check_once(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidRequestError(f"{what} {name!r} is there twice")
        seen.add(name)


def variable_of(user: str) -> str:
    """The environment variable that holds a user's password."""
    name = user.upper().replace("-", "_")
    return f"{name}_PASSWORD" if name.startswith("JSKV_") else f"JSKV_{name}_PASSWORD"


def configuration(
    mode: Mode,
    tenants: Sequence[Tenant],
    *,
    passwords: Mapping[str, str] | None = None,
    size: str = DEFAULT_SIZE,
) -> str:
    """A part of a nats-server configuration: accounts, users, permissions.

    Args:
        mode: How they are kept apart.
        tenants: Those who use the namespaces.
        passwords: By user, also as bcrypt hashes. Others are left to the environment.
        size: In mode account: how much each account may store.

    Raises:
        InvalidRequestError: The size is none, or a password has no user.
    """
    if not _SIZE(size):
        raise InvalidRequestError(f"{size!r} is no size: write it as 500MB or 2GB")
    accounts: dict[str, tuple[str, list[_User]]] = {}
    match mode:
        case Mode.SERVICE:
            users = [_server(tenants), *map(_caller, tenants)]
            accounts[ACCOUNT] = ("enabled", users)
        case Mode.BUCKET:
            accounts[ACCOUNT] = ("enabled", [_owner(tenants), *map(_member, tenants)])
        case Mode.ACCOUNT:
            # One stream, so that there is nothing beside it to read from.
            limits = f"{{ max_mem: 0, max_file: {size}, max_streams: 1 }}"
            accounts = {each.user: (limits, [_alone(each)]) for each in tenants}
    every = [user.name for _, users in accounts.values() for user in users]
    given = dict(passwords or {})
    if unknown := sorted(given.keys() - set(every)):
        raise InvalidRequestError(f"a password for {unknown[0]!r}, who is no user here")
    lines = [f"# Mode {mode}: accounts, users and permissions."]
    if unset := [variable_of(user) for user in every if user not in given]:
        lines.append(f"# From the environment of nats-server: {', '.join(unset)}.")
    lines.append("accounts {")
    for name, (jetstream, users) in accounts.items():
        lines += [
            f"  {_quoted(name)}: {{",
            f"    jetstream: {jetstream}",
            "    users: [",
        ]
        for user in users:
            lines += _lines_of(user, given.get(user.name))
        lines += ["    ]", "  }"]
    return "\n".join([*lines, "}", ""])


def _caller(tenant: Tenant) -> _User:
    return _User(tenant.user, [tenant.subjects], [f"{tenant.inbox}.>"])


def _server(tenants: Sequence[Tenant]) -> _User:
    """It answers its callers' inboxes; its own are those that nobody else may hear."""
    bucket = tenants[0].bucket
    return _User(
        SERVICE,
        [*_contents(bucket), *_making(bucket), *(f"{t.inbox}.>" for t in tenants)],
        [ALL, "$SRV.>", f"{_INBOX}.>"],
    )


def _alone(tenant: Tenant) -> _User:
    """Whoever makes a stream may name others as its sources: here are no others."""
    bucket = tenant.bucket
    publish = [*_contents(bucket), *_following(bucket), *_making(bucket)]
    return _User(tenant.user, publish, [f"{_INBOX}.>"])


def _member(tenant: Tenant) -> _User:
    publish = [*_contents(tenant.bucket), *_following(tenant.bucket)]
    return _User(tenant.user, publish, [f"{tenant.inbox}.>"])


def _owner(tenants: Sequence[Tenant]) -> _User:
    publish = [f"{_API}.INFO"]
    for tenant in tenants:
        stream = stream_name(tenant.bucket)
        publish += [f"{_API}.STREAM.{verb}.{stream}" for verb in ("INFO", "CREATE")]
    return _User(OWNER, publish, [f"{_INBOX}_{OWNER}.>"])


def _contents(bucket: str) -> list[str]:
    """To read, write, list and remove what a bucket holds, and no more.

    Where it is replicated the leader is asked for the newest, by MSG.GET.
    """
    stream = stream_name(bucket)
    return [
        f"$KV.{bucket}.>",
        f"{_API}.DIRECT.GET.{stream}",
        f"{_API}.DIRECT.GET.{stream}.>",
        f"{_API}.STREAM.MSG.GET.{stream}",
        f"{_API}.STREAM.INFO.{stream}",
        f"{_API}.STREAM.PURGE.{stream}",
    ]


def _following(bucket: str) -> list[str]:
    """To watch it: consumers of its own making."""
    stream = stream_name(bucket)
    verbs = ("CREATE", "MSG.NEXT", "DELETE")
    return [f"{_API}.CONSUMER.{verb}.{stream}.*" for verb in verbs]


def _making(bucket: str) -> list[str]:
    return [f"{_API}.INFO", f"{_API}.STREAM.CREATE.{stream_name(bucket)}"]


def _lines_of(user: _User, password: str | None) -> Iterable[str]:
    secret = f"${variable_of(user.name)}" if password is None else _quoted(password)
    yield "      {"
    yield f"        user: {_quoted(user.name)}, password: {secret}"
    yield "        permissions: {"
    for verb, subjects in (("publish", user.publish), ("subscribe", user.subscribe)):
        yield f"          {verb}: ["
        yield from (f"            {_quoted(subject)}" for subject in subjects)
        yield "          ]"
    yield "        }"
    yield "      }"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
