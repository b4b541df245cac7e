"""Every short text has a token of its own: the patterns mean the same on any Python."""

from __future__ import annotations

from itertools import product

import pytest

from jskv_saver._nats.tokens import decode_token, encode_token, is_plain_token


@pytest.mark.parametrize("length", range(1, 6))
def test_each_short_text_comes_back(length: int) -> None:
    for letters in product("aA-_z/.", repeat=length):
        text = "".join(letters)
        token = encode_token(text)
        assert decode_token(token) == text
        assert is_plain_token(token) <= (token == text)
        assert is_plain_token(text) <= (token == text)


@pytest.mark.parametrize("text", ["fitz", "run-", "user_"])
def test_what_would_change_the_order_is_escaped_at_the_end(text: str) -> None:
    assert encode_token(text) == f"{text}/"
    assert not is_plain_token(text)
