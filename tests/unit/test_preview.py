from __future__ import annotations

from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from jskv_saver.checkpoint.inspect.preview import (
    Opaque,
    decoded,
    escaped,
    preview,
    rendered,
)

HOSTILE = "\x1b[31mred\n[bold]\u202ex\\ \x07"
SERDE = JsonPlusSerializer()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain ä 日本", "plain ä 日本"),
        (HOSTILE, r"\x1b[31mred\n[bold]\u202ex\\ \x07"),
        ("\ud800", r"\ud800"),
        ("\N{ZERO WIDTH SPACE}", r"\u200b"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert escaped(text).isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.5, "1.5"),
        ('a"b', '"a\\"b"'),
        ([1, "x"], '[1, "x"]'),
        ({"a": {2: None}}, '{"a": {2: null}}'),
        (b"\x00\xff", "<bytes, 2 bytes: 00 ff>"),
        ({HOSTILE: HOSTILE}, None),
        (HumanMessage("hi", id="1"), None),
        (UUID(int=1), None),
        ({1, 2}, None),
    ],
)
def test_previews_of_values(value: Any, shown: str | None) -> None:
    text = preview(*SERDE.dumps_typed(value), 1000)
    assert text.isprintable()
    if shown is not None:
        assert text == shown


def test_classes_stay_text() -> None:
    text = preview(*SERDE.dumps_typed(HumanMessage("hi")), 1000)
    assert text.startswith("<ext 5: langchain_core.messages.human.HumanMessage {")
    assert '"content": "hi"' in text


def test_previews_are_cut() -> None:
    text = preview(*SERDE.dumps_typed(["x" * 50] * 1000), 120)
    assert 120 <= len(text) < 130
    assert text.endswith("…")


@pytest.mark.parametrize(
    "content",
    [
        b"\xc1",
        b"",
        b"\x93\x01",
        b"\xd4\x05\xc1",
        b"\xc7\xff\x05",
        bytes([0x91]) * 100_000 + b"\x01",
    ],
)
def test_damaged_msgpack_is_shown_as_bytes(content: bytes) -> None:
    assert preview("msgpack", content, 100).startswith("<")


def test_nesting_does_not_exhaust_the_stack() -> None:
    content = b"\x01"
    for _ in range(100):
        content = ormsgpack.packb(ormsgpack.Ext(5, content))
    assert "…" in preview("msgpack", content, 10_000) or preview(
        "msgpack", content, 10_000
    ).startswith("<ext 5")
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert "…" in rendered(deep, 10_000)
    assert preview("json", b"[" * 100_000, 100).startswith("<json, 100000 bytes")


@pytest.mark.parametrize("kind", ["pickle", "unknown\x1b", "msgpack2"])
def test_other_kinds_are_not_opened(kind: str) -> None:
    text = preview(kind, b"cos\nsystem\n(S'false'\ntR.", 100)
    assert text.startswith(f"<{escaped(kind)}, ")
    with pytest.raises(ValueError, match="not opened"):
        decoded(kind, b"")


def test_opaque_values_hold_their_arguments() -> None:
    value = decoded(*SERDE.dumps_typed(UUID(int=1)))
    assert isinstance(value, Opaque)
    assert value.name == "uuid.UUID"
    assert value.content == UUID(int=1).hex
