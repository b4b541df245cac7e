"""What docs/storage.md shows is what is stored."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from scripts.show_keys import documents, keys

from jskv_saver._nats.tokens import decode_token, encode_token
from jskv_saver.adapters.jetstream.values import value_token

STORAGE = (Path(__file__).parents[2] / "docs/storage.md").read_text()
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIGEST = re.compile(r"\b[0-9a-f]{32}\b")
TOKEN = re.compile(r"\.[0-9a-f]{10}$")
SLOT = re.compile(r"\.[0-9a-f]{12}$")


async def test_the_documented_keys_are_those_of_a_run() -> None:
    checkpoints, own = map(
        _entries, re.findall(r"```text\n(.*?)```", STORAGE, re.DOTALL)
    )
    assert list(map(_shape, checkpoints)) == list(map(_shape, await keys()))
    assert list(map(_shape, own)) == list(map(_shape, await documents()))


def _entries(block: str) -> list[tuple[str, str]]:
    lines = block.splitlines()
    return list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


def test_the_documented_value_tokens_are_those_of_the_encoding() -> None:
    for value, token in {
        None: "0",
        False: "1F",
        True: "1T",
        "open": "3open",
        b"\x01\xff": "501FF",
        7: "224346000000000000000",
        -2: "20BCCFFFFFFFFFFFFFFFF",
        0.5: "224310000000000000000",
        datetime(2026, 3, 1, tzinfo=UTC): "400E30BFE43C68000",
    }.items():
        assert value_token(value) == token
    values = [None, False, True, -2, -1.5, 0, 0.5, 7, "a", "b"]
    tokens = [value_token(value) for value in values]
    assert tokens == sorted(tokens)


def _shape(shown: tuple[str, str]) -> tuple[str, str]:
    name, kind = shown
    if name.startswith("ix."):
        name = TOKEN.sub(".<token>", SLOT.sub(".<slot>", name))
    return DIGEST.sub("<digest>", UUID.sub("<uuid>", name)), kind


def test_the_documented_tokens_are_those_of_the_encoding() -> None:
    section = STORAGE.partition("## Tokens")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \|$", section, re.MULTILINE)
    assert len(rows) == 9
    for text, token in rows:
        text = text.replace("\\|", "|")
        assert encode_token(text) == token
        assert decode_token(token) == text
    assert encode_token("") == "-"
