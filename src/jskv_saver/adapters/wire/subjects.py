"""Names on the wire: subjects, primitives, inboxes. Pure.

A request goes to `jskv.v1.<namespace>.<primitive>`, with the namespace as one encoded
token (see `_nats.tokens`) and once more, as text, in the request. The two must agree:
whoever may only publish to `jskv.v1.<namespace>.>` reaches no other namespace, and the
server needs no second check. Who is trusted with all of them gets `jskv.v1.>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from jskv_saver._nats.tokens import encode_token
from jskv_saver.errors import InvalidRequestError

ROOT: Final = "jskv.v1"
QUEUE: Final = "jskv"
"""The queue group that the servers share."""

ALL: Final = f"{ROOT}.*.*"
"""What a server listens on."""

DEFAULT_INBOXES: Final = ("_INBOX.", "_R_.")
"""Where answers may go: inboxes, and what a server puts there for another account."""

_TOKEN: Final = r"[!-)+\-/-=?-~]+"
# Without wildcards, which a server would take as any other text.
_LEGAL_INBOX: Final = re.compile(rf"{_TOKEN}(?:\.{_TOKEN})+").fullmatch


def subject_of(namespace: str, primitive: str) -> str:
    """Where a request goes."""
    return f"{ROOT}.{encode_token(namespace)}.{primitive}"


def parse_subject(subject: str) -> tuple[str, str]:
    """The token of the namespace, and the primitive."""
    _, _, token, primitive = subject.split(".", 3)
    return token, primitive


def endpoint_subject(primitive: str) -> str:
    """What `nats service info` shows."""
    return f"{ROOT}.*.{primitive}"


def is_inbox(reply: str, prefixes: tuple[str, ...]) -> bool:
    """Whether an answer may go there.

    Elsewhere a server would write where the caller may not.
    """
    return reply.startswith(prefixes) and _LEGAL_INBOX(reply) is not None


def check_inboxes(prefixes: Iterable[str]) -> tuple[str, ...]:
    """The prefixes of inboxes, each with the dot that ends it.

    Raises:
        InvalidRequestError: One is none; an empty one would be every subject.
    """
    checked = []
    for prefix in prefixes:
        whole = prefix if prefix.endswith(".") else f"{prefix}."
        if not is_inbox(f"{whole}x", (whole,)) or whole.startswith("$"):
            raise InvalidRequestError(f"{prefix!r} is no prefix of inboxes")
        checked.append(whole)
    return tuple(checked)
