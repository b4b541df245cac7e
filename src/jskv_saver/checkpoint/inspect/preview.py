"""Stored values as text, for people: decoded generically, nothing constructed. Pure.

A value's bytes name classes of the program that wrote them. Here those names stay
text: no module is imported and no object is made, whatever the bytes say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import ormsgpack

_DEPTH: Final = 24
"""Levels of nesting that are opened."""
_SHOWN_BYTES: Final = 16
_WITH_CLASS: Final = range(6)
"""LangGraph's extension codes whose content is `[module, class, arguments, …]`."""
_QUOTES: Final = str.maketrans({'"': '\\"'})


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A value of a type that only the program which wrote it knows.

    Attributes:
        code: The msgpack extension code.
        name: Its class as text; empty where there is none.
        content: What follows the name, decoded in the same way, or bytes.
    """

    code: int
    name: str
    content: Any


def escaped(text: str) -> str:
    """The text with everything that does not print, and backslashes, escaped."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        char
        if char.isprintable() and char != "\\"
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )


def decoded(kind: str, content: bytes) -> Any:
    """A value as plain data; what has a class of its own is `Opaque`.

    Args:
        kind: The serialiser's name of its format.
        content: Its bytes.

    Raises:
        ValueError: It cannot be opened: encrypted, pickled, unknown or damaged.
    """
    try:
        if kind == "msgpack":
            return _unpacked(content, 0)
        if kind == "json":
            return json.loads(content)
        if kind == "null":
            return None
        if kind in ("bytes", "bytearray"):
            return content
    except (TypeError, RecursionError) as exc:
        raise ValueError(f"{kind} that cannot be read") from exc
    raise ValueError(f"{kind} is not opened")


def preview(kind: str, content: bytes, limit: int, size: int | None = None) -> str:
    """A line of at most about `limit` characters that shows a value.

    Args:
        kind: The serialiser's name of its format.
        content: Its bytes, or their beginning.
        limit: Characters to show.
        size: How many bytes it has, if `content` is their beginning.
    """
    whole = size is None or size == len(content)
    size = len(content) if size is None else size
    if is_encrypted(kind):
        return f"<encrypted with {escaped(kind.split('+', 1)[1])}, {size} bytes>"
    if whole:
        try:
            return rendered(decoded(kind, content), limit)
        except ValueError:
            pass
    return described(kind, content, size)


def questions(kind: str, content: bytes, limit: int) -> list[str]:
    """What the interrupts of a task ask, each as a line; else how the value looks."""
    try:
        opened = decoded(kind, content)
    except ValueError:
        opened = None
    asked = [
        rendered(each.content["value"], limit)
        for each in (opened if isinstance(opened, list) else ())
        if isinstance(each, Opaque)
        and isinstance(each.content, dict)
        and "value" in each.content
    ]
    return asked or [preview(kind, content, limit)]


def described(kind: str, content: bytes, size: int) -> str:
    """How a value is shown that is not opened: its size, and how it begins."""
    beginning = content[:_SHOWN_BYTES].hex(" ")
    more = " …" if size > _SHOWN_BYTES else ""
    return f"<{escaped(kind)}, {size} bytes: {beginning}{more}>"


def is_encrypted(kind: str) -> bool:
    """Whether the serialiser's name of a format says that it is encrypted."""
    return "+" in kind


def rendered(value: Any, limit: int) -> str:
    """Plain data and `Opaque` values as a line of at most about `limit` characters."""
    pieces: list[str] = []
    room = limit
    for piece in _pieces(value, 0, limit):
        if len(piece) > room:
            pieces.append(piece[:room] + "…")
            break
        pieces.append(piece)
        room -= len(piece)
    return "".join(pieces)


def _pieces(value: Any, depth: int, limit: int) -> Iterator[str]:
    if isinstance(value, str):
        # One more than fits, so that the cut shows.
        yield f'"{escaped(value[: limit + 1]).translate(_QUOTES)}"'
    elif isinstance(value, bytes):
        yield described("bytes", value, len(value))
    elif value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif depth >= _DEPTH and isinstance(value, dict | list | Opaque):
        yield "…"
    elif isinstance(value, dict):
        yield "{"
        for at, (key, item) in enumerate(value.items()):
            yield ", " if at else ""
            yield from _pieces(key, depth + 1, limit)
            yield ": "
            yield from _pieces(item, depth + 1, limit)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for at, item in enumerate(value):
            yield ", " if at else ""
            yield from _pieces(item, depth + 1, limit)
        yield "]"
    elif isinstance(value, Opaque):
        yield f"<ext {value.code}: {escaped(value.name)}{' ' if value.name else ''}"
        yield from _pieces(value.content, depth + 1, limit)
        yield ">"
    else:
        yield escaped(repr(value))


def _unpacked(content: bytes, depth: int) -> Any:
    return ormsgpack.unpackb(
        content, ext_hook=_opener(depth), option=ormsgpack.OPT_NON_STR_KEYS
    )


def _opener(depth: int) -> Callable[[int, bytes], Opaque]:
    def opened(code: int, content: bytes) -> Opaque:
        if depth >= _DEPTH:
            return Opaque(code, "", content)
        try:
            inner = _unpacked(content, depth + 1)
        except (ValueError, TypeError, RecursionError):
            return Opaque(code, "", content)
        if (
            code in _WITH_CLASS
            and isinstance(inner, list)
            and len(inner) > 1
            and all(isinstance(word, str) for word in inner[:2])
        ):
            # A trailing word may be the method that makes the object.
            rest = inner[2] if len(inner) > 2 else None
            return Opaque(code, f"{inner[0]}.{inner[1]}", rest)
        return Opaque(code, "", inner)

    return opened
