"""Pending writes ⇄ the document of their task. Pure.

A document has `l`, its layout as MessagePack, and `b`, the serialised values one
after the other. Where they are too large for one document, `b` is empty and the layout
names the parts to join. A later call merges: regular writes first-wins per index,
special ones (errors, interrupts, …) last-wins.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.arguments import parse_path, parse_writes
from jskv_saver.checkpoint.layout import (
    WRITES,
    Scope,
    content_of,
    key_of,
    unreadable,
)
from jskv_saver.checkpoint.values import (
    Typed,
    pack,
    unpack,
)
from jskv_saver.document.model import Document, Path, path_of
from jskv_saver.errors import CorruptDocumentError, JskvError

SPILL = 262_144
"""Bytes of values above which a task's writes are kept in parts."""


class PendingWrite(NamedTuple):
    """One write of a task, serialised."""

    path: str
    task: str
    idx: int
    channel: str
    value: Typed

    @property
    def sort_key(self) -> tuple[str, str, int]:
        """LangGraph's order of the writes of a step."""
        return writes_sort_key(self.path, self.task, self.idx)


class TaskWrites(NamedTuple):
    """The document of a task's writes.

    Attributes:
        document: Its fields.
        parts: Parts to store before it, by name.
    """

    document: dict[str, Any]
    parts: dict[str, bytes]


def serialise_writes(
    writes: Sequence[tuple[str, Any]], task: str, path: str, serde: SerializerProtocol
) -> list[PendingWrite]:
    """The writes of one call; if one cannot be serialised, none are stored."""
    parse_path(path)
    by_index: dict[int, PendingWrite] = {}
    for at, (channel, value) in enumerate(parse_writes(writes)):
        index = WRITES_IDX_MAP.get(channel, at)
        write = PendingWrite(
            path, task, index, channel, Typed(*serde.dumps_typed(value))
        )
        by_index[index] = write
    return list(by_index.values())


def merge(
    stored: Iterable[PendingWrite], new: Iterable[PendingWrite]
) -> list[PendingWrite]:
    """Both calls' writes: a stored regular write stays, a special one is replaced."""
    merged = {write.idx: write for write in stored}
    for write in new:
        if write.idx < 0 or write.idx not in merged:
            merged[write.idx] = write
    return sorted(merged.values(), key=lambda write: write.idx)


def encode_writes(writes: Sequence[PendingWrite], part_size: int) -> TaskWrites:
    """The document of a task's writes, and its parts."""
    content = b"".join([write.value.content for write in writes])
    names: list[str] = []
    parts: dict[str, bytes] = {}
    if len(content) > min(SPILL, part_size):
        # Two calls for one task must not meet in a part: its name is random.
        nonce = secrets.token_hex(8)
        for at in range(0, len(content), part_size):
            names.append(f"{nonce}{len(names):04}")
            parts[names[-1]] = content[at : at + part_size]
        content = b""
    # Names that many writes have in common are stored once.
    channels: dict[str, int] = {}
    paths: dict[str, int] = {}
    rows = [
        (
            w.idx,
            channels.setdefault(w.channel, len(channels)),
            w.value.kind,
            paths.setdefault(w.path, len(paths)),
            len(w.value.content),
        )
        for w in writes
    ]
    layout = pack((rows, list(channels), list(paths), names))
    return TaskWrites({"l": layout, "b": content}, parts)


def part_names(document: Document) -> list[str]:
    """The names of the parts that a task's document refers to."""
    return list(_layout(document).parts)


def decode_writes(
    document: Document, parts: Mapping[str, Document]
) -> list[PendingWrite]:
    """The writes of a task's document.

    Args:
        document: The document.
        parts: The parts of this task, by name.

    Raises:
        CorruptDocumentError: The document is not one of writes, or a part is missing.
    """
    layout = _layout(document)
    task = document.id[-1]
    if layout.parts:
        try:
            found = [parts[name] for name in layout.parts]
        except KeyError as exc:
            key = key_of(WRITES, (*document.id, exc.args[0]))
            raise CorruptDocumentError(
                f"the writes of a task refer to {key!r}, which is not stored",
                key=key,
            ) from exc
        content = b"".join([content_of(WRITES, part) for part in found])
    else:
        content = document.data.get("b", b"")
    writes: list[PendingWrite] = []
    at = 0
    for index, channel, kind, path, length in layout.rows:
        value = Typed(kind, content[at : at + length])
        writes.append(
            PendingWrite(
                layout.paths[path], task, index, layout.channels[channel], value
            )
        )
        at += length
    if at != len(content):
        raise _unreadable(document)
    return writes


def incomplete(documents: Iterable[Document]) -> list[Path]:
    """The tasks whose document names parts that are not among the documents."""
    present: set[Path] = set()
    large: list[Document] = []
    for document in documents:
        path = path_of(document.id)
        if len(path) > _TASK_SEGMENTS:
            present.add(path)
        elif not document.data.get("b"):
            large.append(document)
    return [
        path_of(document.id)
        for document in large
        if any((*path_of(document.id), n) not in present for n in part_names(document))
    ]


def group_writes(
    documents: Iterable[Document],
) -> dict[tuple[Scope, str], list[PendingWrite]]:
    """The writes in documents of the writes' collection, by checkpoint, in order."""
    tasks: list[Document] = []
    parts: dict[tuple[str, ...], dict[str, Document]] = {}
    for document in documents:
        path = tuple(document.id)
        if len(path) == _TASK_SEGMENTS:
            tasks.append(document)
        else:
            parts.setdefault(path[:-1], {})[path[-1]] = document
    grouped: dict[tuple[Scope, str], list[PendingWrite]] = {}
    for document in tasks:
        path = tuple(document.id)
        writes = decode_writes(document, parts.get(path, {}))
        grouped.setdefault((Scope(*path[:3]), path[3]), []).extend(writes)
    for writes in grouped.values():
        writes.sort(key=lambda write: write.sort_key)
    return grouped


_TASK_SEGMENTS = 5


class _Layout(NamedTuple):
    """How a task's document is laid out.

    Attributes:
        rows: For each write its index, the number of its channel, its kind, the
            number of its path, and its size in bytes.
        channels: The channels.
        paths: The task paths.
        parts: The names of the parts that hold the values; empty: the document does.
    """

    rows: list[tuple[int, int, str, int, int]]
    channels: list[str]
    paths: list[str]
    parts: list[str]


def _layout(document: Document) -> _Layout:
    try:
        return _Layout(*unpack(document.data["l"]))
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        raise _unreadable(document) from exc


def _unreadable(document: Document) -> JskvError:
    what = f"the writes {document.id!r} are not readable"
    return unreadable(WRITES, document, what)


def sizes_of(document: Document) -> list[tuple[PendingWrite, int]]:
    """The writes of a task's document without their contents, each with its size.

    Raises:
        CorruptDocumentError: The document is not one of writes.
    """
    layout = _layout(document)
    task, channels, paths = document.id[-1], layout.channels, layout.paths
    return [
        (PendingWrite(paths[path], task, index, channels[at], Typed(kind, b"")), length)
        for index, at, kind, path, length in layout.rows
    ]
