"""What an answer tells an actor, with its versions apart."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from tests.explorer.messages import Call, Message

from jskv_saver.checkpoint.layout import RECORDS, decode_epoch, is_epoch
from jskv_saver.document.model import Document, Page, Path, path_of
from jskv_saver.errors import JskvError

Named = tuple[str, Path, bytes]
"""A document without its version: its collection, its path, its content's digest."""


def digest(content: Any) -> bytes:
    """A short name of a structure of plain values."""
    return blake2b(marshal.dumps(content, 1), digest_size=16).digest()


def named(collection: str, document: Document) -> Named:
    """A document without its version."""
    content: object = sorted(document.data.items())
    if _is_epoch(collection, document):
        epoch = decode_epoch(document)
        content = epoch.known, sorted(epoch.dead)
    return collection, path_of(document.id), digest_of(content)


def mentioned(collection: str, document: Document) -> tuple[int, ...]:
    """The version of a document, and those that it mentions."""
    if not _is_epoch(collection, document):
        return (document.version,)
    dead = decode_epoch(document).dead
    return (document.version, *(dead[id] for id in sorted(dead)))


def digest_of(content: object) -> bytes:
    """A short name of some content."""
    return blake2b(repr(content).encode(), digest_size=8).digest()


def _is_epoch(collection: str, document: Document) -> bool:
    return collection == RECORDS and is_epoch(document)


def documents_of(answer: Any, message: Message) -> list[tuple[str, Document]]:
    """The documents in an answer, in order."""
    if isinstance(answer, Mapping):
        return [(key[0], answer[key]) for key in sorted(answer, key=str)]
    areas = message.puts or message.reads
    (collection,) = areas[0].collections if areas else ("",)
    if isinstance(answer, Document):
        return [(collection, answer)]
    if isinstance(answer, Page):
        return [(collection, document) for document in answer.items]
    if message.puts and answer:
        return [(collection, document) for document in answer]
    return []


def noted(
    answer: Any, error: BaseException | None, message: Message
) -> tuple[Any, tuple[int, ...]]:
    """What an actor learns from an answer, without its versions; and these."""
    if error is not None:
        return type(error).__name__, ()
    found = documents_of(answer, message)
    versions = tuple(v for each in found for v in mentioned(*each))
    if found or isinstance(answer, Page | Mapping):
        return [named(*each) for each in found], versions
    return [list(path_of(id)) for id in answer or ()], versions


def run_now(call: Call) -> tuple[Any, JskvError | None]:
    """The result, or the failure, of a coroutine that never waits."""
    steps = call().__await__()
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value, None
    except JskvError as exc:
        return None, exc
    raise AssertionError("a message of the memory store waits for nobody")
