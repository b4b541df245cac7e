"""What is read from a bucket and written to it: keys, bytes, revisions."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from jskv_saver._nats.tap import Answer, Reply
from jskv_saver.errors import InvalidRequestError

_OPERATION: Final = "KV-Operation"
_DELETED: Final = frozenset({"DEL", "PURGE"})
_MARKER_REASON: Final = "Nats-Marker-Reason"
_SEQUENCE: Final = "Nats-Sequence"
_PENDING: Final = "Nats-Num-Pending"
_SUBJECT: Final = "Nats-Subject"
_SUBJECT_FIELD, _SEQUENCE_FIELD, _PENDING_FIELD = (
    f"\r\n{name}: ".encode() for name in (_SUBJECT, _SEQUENCE, _PENDING)
)
_PERHAPS_MARKER: Final = (_OPERATION.encode(), _MARKER_REASON.encode())
_KEY: Final = re.compile(r"[-/_=.a-zA-Z0-9]+").fullmatch
_FILTER: Final = re.compile(
    r"(?:[-/_=a-zA-Z0-9]+|\*)(?:\.(?:[-/_=a-zA-Z0-9]+|\*))*(?:\.>)?"
).fullmatch


class Entry(NamedTuple):
    """The newest message of a key.

    Attributes:
        key: The key.
        value: Its bytes; empty for a marker.
        revision: Its sequence in the stream.
        marker: It says that the key was deleted or has expired.
    """

    key: str
    value: bytes
    revision: int
    marker: bool = False


class Put(NamedTuple):
    """One write of `put_many`.

    Attributes:
        key: The key.
        value: The bytes.
        expected: Store only if this is the newest revision under `expected_filter`
            (0: nothing is there); None: in any case.
        expected_filter: The filter that `expected` is about; None: the key itself.
        ttl: Seconds after which the server removes it, 1 at least; None: never.
    """

    key: str
    value: bytes
    expected: int | None = None
    expected_filter: str | None = None
    ttl: float | None = None


def checked_key(key: str) -> str:
    """The key, if it is one.

    Raises:
        InvalidRequestError: Empty tokens, wildcards, or characters that KV has not.
    """
    if _KEY(key) is None or ".." in key or key[0] == "." or key[-1] == ".":
        raise InvalidRequestError(f"{key!r} is no legal key")
    return key


@lru_cache(maxsize=4096)
def checked_filter(filter: str) -> str:
    """The filter, if it is one and names at least one token.

    Raises:
        InvalidRequestError: It is not, or it would meet the whole bucket.
    """
    if _FILTER(filter) is None or not filter.strip("*.>"):
        raise InvalidRequestError(f"{filter!r} is no legal filter")
    return filter


def is_plain(filter: str) -> bool:
    """Whether the filter is a key."""
    return "*" not in filter and not filter.endswith(">")


def _first(value: str | list[str]) -> str:
    # With fast_mail_parser installed, nats-py gives lists.
    return value if isinstance(value, str) else value[0]


def is_marker(headers: Mapping[str, Any]) -> bool:
    """Whether the headers are those of a marker (ADR-8, ADR-43)."""
    operation = headers.get(_OPERATION)
    if operation is not None and _first(operation) in _DELETED:
        return True
    return _MARKER_REASON in headers


def entry_of(msg: Answer, cut: int) -> Entry:
    """The entry in the answer to a direct get (ADR-31).

    Args:
        msg: The answer.
        cut: How much of the stored subject stands before the key.
    """
    if isinstance(msg, Reply) and not any(map(msg.has, _PERHAPS_MARKER)):
        subject, revision = msg.field(_SUBJECT_FIELD), msg.field(_SEQUENCE_FIELD)
        if subject is not None and revision is not None:
            return Entry(subject[cut:].decode(), msg.data, int(revision))
    headers: Mapping[str, Any] = msg.headers or {}
    return Entry(
        _first(headers[_SUBJECT])[cut:],
        msg.data,
        int(_first(headers[_SEQUENCE])),
        is_marker(headers),
    )


def pending_after(msg: Answer) -> int:
    """How many messages of a batch read follow this one (ADR-31).

    The end of a page says it too, but on 2.11 one too few where the page was cut.
    """
    if isinstance(msg, Reply) and (left := msg.field(_PENDING_FIELD)) is not None:
        return int(left)
    return int(_first((msg.headers or {}).get(_PENDING, "0")))


def entry_of_stored(stored: Mapping[str, Any], cut: int) -> Entry:
    """The entry in the answer to a message get, which is JSON."""
    headers: dict[str, str] = {}
    for line in (
        b64decode(stored.get("hdrs", "")).decode("utf-8", "replace").split("\r\n")
    ):
        name, separator, value = line.partition(":")
        if separator:
            headers[name.strip()] = value.strip()
    return Entry(
        str(stored["subject"])[cut:],
        b64decode(stored.get("data", "")),
        int(stored["seq"]),
        is_marker(headers),
    )
