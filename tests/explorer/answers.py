"""What an answer tells an actor, with its versions apart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.explorer.contents import content_of
from tests.explorer.messages import Message

from jskv_saver.document.model import Document, Page, Path, path_of
from jskv_saver.errors import JskvError

Named = tuple[str, Path, bytes]
"""A document without its version: its collection, its path, its content's digest."""
Told = tuple[Named, tuple[int, ...]]
"""A document without its version; and this, and the versions that it mentions."""


def told(collection: str, document: Document) -> Told:
    """A document without its version; and this, and those that it mentions."""
    path = path_of(document.id)
    name, mentioned = content_of(collection, path, document.data)
    return (collection, path, name), (document.version, *mentioned)


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
    answer: Any,
    error: BaseException | None,
    message: Message,
    tell: Callable[[str, Document], Told] = told,
) -> tuple[Any, tuple[int, ...]]:
    """What an actor learns from an answer, without its versions; and these.

    Args:
        answer: The answer.
        error: Or what it got instead.
        message: To which.
        tell: Says what a document says.
    """
    if error is not None:
        return type(error).__name__, ()
    found = documents_of(answer, message)
    if found or isinstance(answer, Page | Mapping):
        each = [tell(*one) for one in found]
        return tuple(name for name, _ in each), tuple(v for _, vs in each for v in vs)
    return tuple(path_of(id) for id in answer or ()), ()


def run_now(call: Callable[[], Awaitable[Any]]) -> tuple[Any, JskvError | None]:
    """The result, or the failure, of a coroutine that never waits."""
    steps = call().__await__()
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value, None
    except JskvError as exc:
        return None, exc
    raise AssertionError("a message of the memory store waits for nobody")
