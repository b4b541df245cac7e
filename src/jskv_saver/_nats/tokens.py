"""Any text ⇄ one token of a KV key: readable, reversible, in order.

ASCII letters, digits, `-` and `_` stand for themselves where that is unambiguous, so
that UUIDs, words and names stay as they are; other characters are escaped:

    ..0x2C        --XX           `:` … `@`     =A … =G
    `-`           -    or -/     `[` … `^`     _-B … _-E
    `.` and `/`   /-   and //    `_`           _    or _/
    (as first)    -zzz- -zzz/    `` ` ``       _zzz
    `z`           z, z/ or zz-   `{` … DEL     zz0 … zz4
    the empty     -              UTF-8 byte    zz and a letter; then one character each
    text

`-` and `_` take the longer form at the end and before bytes below `0`; `z` is `z/`
there, and `zz-` before bytes from `z` on. Each rule keeps the order of the bytes, which
is that of the code points. No token begins with `/` or `==`, none has a dot or a
wildcard. A text above `TOKEN_LIMIT` encoded bytes becomes `==` and its BLAKE2b digest.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from jskv_saver.errors import InvalidRequestError

TOKEN_LIMIT: Final = 512
"""Bytes of an encoded token, above which it is a digest."""

_DIGEST_MARK: Final = "=="
_DIGEST_BYTES: Final = 32
_EMPTY: Final = "-"
_LEADING: Final = {0x2E: "-zzz-", 0x2F: "-zzz/"}
_CONTINUATION: Final = (
    "0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
)
_LEAD: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"
_FIRST_LEAD: Final = 0xC2
_FIRST_CONTINUATION: Final = 0x80


def _table() -> list[str]:
    table = [chr(byte) for byte in range(0x80)]
    for byte in range(0x2D):
        table[byte] = f"--{byte:02X}"
    table[0x2E], table[0x2F] = "/-", "//"
    for byte in range(0x3A, 0x41):
        table[byte] = "=" + "ABCDEFG"[byte - 0x3A]
    for byte in range(0x5B, 0x5F):
        table[byte] = "_-" + "BCDE"[byte - 0x5B]
    table[0x60] = "_zzz"
    for byte in range(0x7B, 0x80):
        table[byte] = f"zz{byte - 0x7B}"
    table.extend(_CONTINUATION)
    table.extend("" for _ in range(0xC0, _FIRST_LEAD))
    table.extend("zz" + letter for letter in _LEAD)
    return table


_TABLE: Final = _table()
_CODES: Final = {
    code: bytes([byte])
    for byte, code in enumerate(_TABLE)
    if len(code) > 1 and byte < _FIRST_CONTINUATION
} | {"-/": b"-", "_/": b"_", "z/": b"z", "zz-": b"z", "-": b"-", "_": b"_", "z": b"z"}
# The inner quantifier is possessive, so that this ends soon. The outer one is not:
# before Python 3.11.5 one with a branch in it forgets where it was.
_PLAIN: Final = re.compile(
    r"(?:[0-9A-Za-y]++|[-_](?=[0-9A-Z_a-z])|z(?=[0-9A-Z_a-y]))+"
).fullmatch
_PIECE: Final = re.compile(
    r"(?P<lead>zz[A-Za-y])(?P<rest>[^-/]{0,3})"
    r"|(?P<code>--(?:[01][0-9A-F]|2[0-9A-C])|-/|/[-/]|=[A-G]|_-[B-E]|_/|_zzz|z/|zz[-0-4]|[-_z])"
    r"|(?P<plain>[0-9A-Za-y]+)"
)


@dataclass(frozen=True, slots=True)
class Digested:
    """A token that stands for a text too long for a key.

    Attributes:
        token: The token as it stands in the key.
    """

    token: str


@lru_cache(maxsize=8192)
def encode_token(text: str) -> str:
    """The token of a text; a digest of it above `TOKEN_LIMIT` encoded bytes.

    Raises:
        InvalidRequestError: The text has an unpaired surrogate.
    """
    if _PLAIN(text) and len(text) <= TOKEN_LIMIT:
        return text
    if not text:
        return _EMPTY
    try:
        data = text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidRequestError(
            f"unpaired surrogate at character {exc.start} of an id segment or name"
        ) from exc
    token = _escape(data) if len(data) <= TOKEN_LIMIT else ""
    if token and len(token) <= TOKEN_LIMIT:
        return token
    return digest_token(data)


def _escape(data: bytes) -> str:
    pieces = [_TABLE[byte] for byte in data]
    if data[0] in _LEADING:
        pieces[0] = _LEADING[data[0]]
    for index, byte in enumerate(data):
        if byte not in (0x2D, 0x5F, 0x7A):
            continue
        following = data[index + 1] if index + 1 < len(data) else 0
        if following < 0x30:
            pieces[index] += "/"
        elif byte == 0x7A and following >= 0x7A:
            pieces[index] = "zz-"
    return "".join(pieces)


def digest_token(data: bytes) -> str:
    """The token that stands for bytes which are too long."""
    digest = blake2b(data, digest_size=_DIGEST_BYTES).digest()
    return _DIGEST_MARK + urlsafe_b64encode(digest).decode().rstrip("=")


def is_digested(token: str) -> bool:
    """Whether the token is a digest."""
    return token.startswith(_DIGEST_MARK)


def is_plain_token(token: str) -> bool:
    """Whether the token is its text."""
    return len(token) <= TOKEN_LIMIT and _PLAIN(token) is not None


@lru_cache(maxsize=8192)
def decode_token(token: str) -> str | Digested:
    """The text of a token.

    Raises:
        ValueError: `encode_token` never gives this token.
    """
    if _PLAIN(token) and len(token) <= TOKEN_LIMIT:
        return token
    if is_digested(token):
        return Digested(token)
    if token == _EMPTY:
        return ""
    text = _unescape(token)
    # The encoding is canonical: what does not come back was not made here.
    if encode_token(text) != token:
        raise ValueError(f"not an encoded token: {token!r}")
    return text


def _unescape(token: str) -> str:
    data = bytearray()
    position = 0
    for byte, code in _LEADING.items():
        if token.startswith(code):
            data.append(byte)
            position = len(code)
    while position < len(token):
        piece = _PIECE.match(token, position)
        if piece is None:
            raise ValueError(f"not an encoded token: {token!r}")
        if (plain := piece["plain"]) is not None:
            data += plain.encode()
            position = piece.end()
        elif (code := piece["code"]) is not None:
            data += _CODES[code]
            position = piece.end()
        else:
            lead = _FIRST_LEAD + _LEAD.index(piece["lead"][2])
            count = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
            rest = piece["rest"][:count]
            data.append(lead)
            data += bytes(_FIRST_CONTINUATION + _CONTINUATION.index(c) for c in rest)
            position += len(piece["lead"]) + len(rest)
    return data.decode()
