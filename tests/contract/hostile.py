"""Names, ids and values that break naive adapters."""

from __future__ import annotations

from typing import Any

TEXTS: tuple[str, ...] = (
    " ",
    ".",
    "..",
    "*",
    ">",
    "a.>",
    "a.*",
    "a.b",
    "a b",
    "a\r\nb",
    "\r\nPUB x 0\r\n",
    "\t",
    "\x01\x7f",
    "$",
    "$KV.jskv.>",
    "_INBOX.x",
    "/",
    "\\",
    "a=b",
    "-",
    "_",
    "%2E",
    "~",
    ":|",
    "é",
    "e\u0301",
    "日本語",
    "😀",
    "\ufeff",
    "\u202e",
    "\uffff",
    "\U0010ffff",
    "İ",
    "A",
    "a",
    "0",
    "ANY",
    "None",
    "1ef4f797-8335-6428-8001-8a1503f9b875",
)

NAMES: tuple[str, ...] = (*TEXTS, "x" * 128, "é" * 128, "😀" * 128)
"""Legal names of namespaces and collections, all different."""

NOT_NAMES: tuple[Any, ...] = (
    "",
    "x" * 129,
    "a\0b",
    "\0",
    "\ud800",
    "a\udfff",
    None,
    1,
    b"a",
    ("a",),
)

SEGMENTS: tuple[str, ...] = (
    "",
    *TEXTS,
    "x" * 300,
    "x" * 600,
    "x" * 599 + "y",
    "x" * 4096,
    "x" * 4095 + "y",
    "é" * 2048,
    "😀" * 1024,
)
"""Legal segments of ids, all different."""

NOT_SEGMENTS: tuple[Any, ...] = (
    "a\0b",
    "\ud800",
    "x\udc00y",
    "x" * 4097,
    "é" * 2049,
    None,
    1,
    b"a",
)
