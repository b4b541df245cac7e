"""Texts that have broken savers, stores, query languages and brokers."""

from __future__ import annotations

from tests.checkpoint.saving import HOSTILE

TEXTS = [
    *HOSTILE,
    # What other stores read as a pattern, an operator, a path or a statement.
    "?",
    "[a-z]",
    "a?",
    "{a}",
    "(a)",
    "a:b",
    "a::b",
    "%",
    "_",
    "a%",
    "a_",
    "'; DROP TABLE checkpoints; --",
    "x' OR '1'='1",
    '"',
    "`",
    "$gt",
    "$.a",
    "a[0]",
    "@a:{b}",
    "-a",
    "a|",
    "|a",
    "~a",
    "a=b&c",
    "../a",
    "a/../b",
    # What is another value elsewhere.
    "null",
    "true",
    "0",
    "-0",
    "00",
    "1.0",
    "1e3",
    "nan",
    "latest",
    "default",
    # What looks alike.
    "\ufeffa",
    "a\u200b",
    "a\u00a0",
    "\u212b",
    "\u00c5",
    "ß",
    "SS",
    "İ",
    "i",
    "ａ",
    # The ends of Unicode, and of what a terminal bears.
    "\x01",
    "\x7f",
    "\x1b[2J",
    "\u2028",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U0010ffff",
    "1ef4f797-8335-6428-8001-8a1503f9b875",
    "1EF4F797-8335-6428-8001-8A1503F9B875",
]
"""All different: a place that takes any text keeps them apart."""

NOT_TEXTS = ["a\x00b", "\x00", "half \ud83d", "\udc00a", "\ud800"]
"""Texts that no id can be: they have a NUL or half a surrogate pair."""

SEPARATORS = [*".:|/\\-_=*>$ ~%,;", "\x1f", "::", "--", "\r\n", "é"]
"""What others join names with."""
