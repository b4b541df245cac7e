"""RunnableConfig → CheckpointRef, parsed once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from jskv_saver.errors import InvalidRequestError

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_BYTES = 4096
"""Of a segment of a document's id."""


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """Which checkpoint of which thread a config names.

    Attributes:
        thread: The thread id as text.
        ns: The checkpoint namespace; None where the config has none.
        id: The checkpoint id; None where the config has none: the latest.
    """

    thread: str
    ns: str | None
    id: str | None

    @property
    def namespace(self) -> str:
        """The checkpoint namespace; the root's where none is given."""
        return self.ns or ""


def parse_ref(config: RunnableConfig) -> CheckpointRef:
    """Read `thread_id`, `checkpoint_ns` and `checkpoint_id` of a config.

    Raises:
        InvalidRequestError: There is no thread id, or one of them is not text.
    """
    configurable = _configurable(config)
    if "thread_id" not in configurable or configurable["thread_id"] is None:
        raise InvalidRequestError(
            "config['configurable'] has no 'thread_id': name the thread to use, e.g. "
            "{'configurable': {'thread_id': '1'}}"
        )
    ns = configurable.get("checkpoint_ns")
    id = configurable.get("checkpoint_id")
    return CheckpointRef(
        parse_thread_id(configurable["thread_id"]),
        None if ns is None else parse_text("checkpoint_ns", ns),
        parse_text("checkpoint_id", id) if id else None,
    )


def parse_before(config: RunnableConfig | None) -> str | None:
    """The checkpoint id that bounds a listing, or None."""
    if not config:
        return None
    id = _configurable(config).get("checkpoint_id")
    return parse_text("before: checkpoint_id", id) if id else None


def parse_thread_id(thread_id: object) -> str:
    """A thread id as text; an int is its decimal text, a UUID its usual one.

    Raises:
        InvalidRequestError: It is none of these, or cannot be stored.
    """
    return parse_id("thread_id", thread_id)


def parse_id(name: str, value: object) -> str:
    """An id as text; an int is its decimal text, a UUID its usual one.

    Raises:
        InvalidRequestError: It is none of these, or cannot be stored.
    """
    if isinstance(value, int | UUID) and not isinstance(value, bool):
        return str(value)
    return parse_text(name, value)


def parse_ids(name: str, values: Sequence[str]) -> list[str]:
    """A sequence of thread or run ids as text.

    Raises:
        InvalidRequestError: It is a single one, or no sequence.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidRequestError(
            f"{name} must be a sequence of ids, such as [{values!r:.40}], not a single "
            f"{type(values).__name__}"
        )
    return [parse_id(name, value) for value in values]


def config_of(thread: str, ns: str, id: str) -> RunnableConfig:
    """The config that names one checkpoint."""
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": ns,
            "checkpoint_id": id,
        }
    }


def _configurable(config: RunnableConfig) -> Mapping[str, Any]:
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(configurable, Mapping):
        raise InvalidRequestError(
            "the config has no 'configurable' mapping; it must hold at least "
            "{'configurable': {'thread_id': ...}}"
        )
    return configurable


def parse_text(name: str, value: object) -> str:
    """A text that can be stored as an id, refused under the name it was given by.

    Raises:
        InvalidRequestError: It is no text, or none that can be stored.
    """
    if (
        type(value) is str
        and value.isascii()
        and "\0" not in value
        and len(value) <= _MAX_BYTES
    ):
        # The usual ids: this runs several times for each call.
        return value
    if not isinstance(value, str):
        raise InvalidRequestError(
            f"{name} must be text, not {type(value).__name__}: {value!r:.80}"
        )
    if "\0" in value or _SURROGATE.search(value):
        raise InvalidRequestError(
            f"{name} {value!r:.80} has a NUL or an unpaired surrogate, which cannot be "
            "stored"
        )
    if len(value) * 4 > _MAX_BYTES and (size := len(value.encode())) > _MAX_BYTES:
        raise InvalidRequestError(
            f"{name} {value!r:.40}… has {size} UTF-8 bytes; at most {_MAX_BYTES} can "
            "be stored"
        )
    return str(value)
