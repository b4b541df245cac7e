"""How a bucket is made and reached."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Final, Literal

from jskv_saver.errors import InvalidRequestError

DEFAULT_BUCKET: Final = "jskv"
DEFAULT_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Republish:
    """Publish each stored message again (ADR-8, ADR-28).

    Attributes:
        source: Subject filter of the messages to publish again.
        destination: Where to; may refer to the source's tokens.
        headers_only: Leave the values out.
    """

    source: str
    destination: str
    headers_only: bool = False

    def __post_init__(self) -> None:
        _check("source", self.source, "a subject filter", _is_text)
        _check("destination", self.destination, "a subject", _is_text)
        _check("headers_only", self.headers_only, "True or False", _is_bool)


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """What a bucket that has to be made is made with; an existing one stays as it is.

    Attributes:
        description: Free text, shown by `nats kv info`.
        storage: Where the server keeps it.
        replicas: 1 to 5 copies in a cluster.
        placement_cluster: Name of the cluster to place it in.
        placement_tags: Server tags to place it by.
        max_value_size: Bytes of one stored value, headers included; -1: no limit.
        max_bytes: Bytes of the whole bucket; -1: no limit.
        compression: Of the file store.
        metadata: The bucket's own metadata.
        republish: Publish stored messages again.
        domain: The JetStream domain that the bucket is in.
        api_prefix: A prefix in the place of `$JS.API`, where an account imports the
            API under another name. Excludes `domain`. Writes go to `$KV.<bucket>`.
        timeout: Seconds that one call may take.
        create: Make the bucket if there is none; False: that is an error.
        read_only: Only read, from a mirror of a bucket too, which may lag behind what
            it mirrors; nothing is made, and a call that would write is refused.
    """

    description: str = ""
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    placement_cluster: str | None = None
    placement_tags: tuple[str, ...] = ()
    max_value_size: int = -1
    max_bytes: int = -1
    compression: Literal["s2", "none"] = "none"
    metadata: Mapping[str, str] = field(default_factory=dict)
    republish: Republish | None = None
    domain: str | None = None
    api_prefix: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    create: bool = True
    read_only: bool = False

    def __post_init__(self) -> None:
        """Refuse what no bucket can have, before a server is asked.

        Raises:
            InvalidRequestError: An option has no legal value.
        """
        for name, (rule, holds) in _RULES.items():
            _check(name, getattr(self, name), rule, holds)
        if self.domain is not None and self.api_prefix is not None:
            raise InvalidRequestError("give domain or api_prefix, not both")


def parse_options(
    given: Mapping[str, Any], of_connection: Iterable[str] = ()
) -> tuple[BucketOptions, dict[str, Any]]:
    """Options of the bucket, and those of the connection.

    Args:
        given: Both, mixed.
        of_connection: The names of the latter; none where a client is connected.

    Raises:
        InvalidRequestError: One is unknown, or has no legal value.
    """
    bucket = {name: value for name, value in given.items() if name in _NAMES}
    rest = {name: value for name, value in given.items() if name not in _NAMES}
    connecting = frozenset(of_connection)
    for name in rest.keys() - connecting:
        raise InvalidRequestError(_unknown(name, connecting))
    return BucketOptions(**bucket), rest


def _unknown(name: str, of_connection: frozenset[str]) -> str:
    if name in _NOT_OFFERED:
        return f"there is no option {name!r}: {_NOT_OFFERED[name]}"
    near = get_close_matches(name, [*_NAMES, *of_connection], 1)
    text = f"there is no option {name!r}" + (
        f", did you mean {near[0]!r}?" if near else ""
    )
    text += f"; options of the bucket: {', '.join(_NAMES)}"
    if of_connection:
        return f"{text}; of nats.connect: {', '.join(sorted(of_connection))}"
    return f"{text}; a client that is connected takes no options of nats.connect"


# What `nats kv add` has, and a bucket of ours cannot be.
_NOT_OFFERED: Final[Mapping[str, str]] = {
    "mirror": "a mirror takes no writes, and a saver has to write; connect to the "
    "server that has the bucket, or set replicas (docs/adr/0009-no-mirrors.md); to "
    "read a mirror that exists, name it as bucket, with read_only=True",
    "ttl": "parts of a checkpoint would expire before it; use prune or delete_thread",
    "history": "one revision of each key is kept",
}
_NAMES: Final = tuple(option.name for option in fields(BucketOptions))
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
_TOKEN: Final = re.compile(r"[^\s.*>]+").fullmatch
_SUBJECT: Final = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*").fullmatch


def _check(name: str, value: Any, rule: str, holds: Callable[[Any], bool]) -> None:
    if not holds(value):
        raise InvalidRequestError(f"{name} has to be {rule}, not {value!r}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(least: int, most: int) -> Callable[[Any], bool]:
    # A bool is an int, and never meant as one.
    return lambda value: type(value) is int and least <= value <= most


def _is_limit(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and (value == -1 or 1 <= value <= most)


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value and math.isfinite(value)


def _maybe(holds: Callable[[Any], object]) -> Callable[[Any], bool]:
    return lambda value: (
        value is None or (isinstance(value, str) and bool(holds(value)))
    )


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


# Option → what it has to be, and whether a value is that.
_RULES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "description": ("text", lambda value: isinstance(value, str)),
    "storage": ("'file' or 'memory'", lambda value: value in ("file", "memory")),
    "replicas": ("a number from 1 to 5", _is_number(1, 5)),
    "placement_cluster": ("the name of a cluster, or None", _maybe(_is_text)),
    "placement_tags": (
        "a tuple or list of texts",
        lambda value: isinstance(value, tuple | list) and all(map(_is_text, value)),
    ),
    "max_value_size": ("a number of bytes, or -1 for no limit", _is_limit(_INT32)),
    "max_bytes": ("a number of bytes, or -1 for no limit", _is_limit(_INT64)),
    "compression": ("'s2' or 'none'", lambda value: value in ("s2", "none")),
    "metadata": (
        "a dict of texts",
        lambda value: (
            isinstance(value, Mapping)
            and _are_texts(value)
            and _are_texts(value.values())
        ),
    ),
    "republish": (
        "a Republish, or None",
        lambda value: value is None or isinstance(value, Republish),
    ),
    "domain": ("the name of a JetStream domain, or None", _maybe(_TOKEN)),
    "api_prefix": ("the beginning of subjects, such as 'JSD.API'", _maybe(_SUBJECT)),
    "timeout": ("a number of seconds above 0", _is_time),
    "create": ("True or False", _is_bool),
    "read_only": ("True or False", _is_bool),
}
