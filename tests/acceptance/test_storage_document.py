"""What docs/storage.md shows is what is stored."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.show_keys import keys

from jskv_saver.adapters.jetstream.tokens import decode_token, encode_token

STORAGE = (Path(__file__).parents[2] / "docs/storage.md").read_text()
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIGEST = re.compile(r"\b[0-9a-f]{32}\b")


async def test_the_documented_keys_are_those_of_a_run() -> None:
    block = re.search(r"```text\n(.*?)```", STORAGE, re.DOTALL)
    assert block
    lines = block[1].splitlines()
    documented = list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))
    assert list(map(_shape, documented)) == list(map(_shape, await keys()))


def _shape(shown: tuple[str, str]) -> tuple[str, str]:
    name, kind = shown
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
