"""What changed inside a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from jskv_saver.checkpoint.inspect.difference import _same, _steps, _value
from jskv_saver.checkpoint.values import Typed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@dataclass
class Message:
    role: str
    content: Any


def stored(value: Any) -> Typed:
    return Typed(*JsonPlusSerializer().dumps_typed(value))


def steps(old: Any, new: Any) -> list[tuple[str, str, str | None, str | None]]:
    change = _value("x", stored(old), stored(new), 30)
    assert change is not None
    return [(s.how, s.path, s.before, s.after) for s in change.steps]


def test_only_what_changed_is_told() -> None:
    assert steps([1, 2, 3], [1, 2, 3, 4]) == [("added", "[3]", None, "4")]
    assert steps([1, 2, 3], [2, 3]) == [("removed", "[0]", "1", None)]
    assert steps([1, 2, 3], [1, 9, 3]) == [("changed", "[1]", "2", "9")]
    assert steps({"a": {"b": [1]}, "c": 1}, {"a": {"b": [2]}, "d": 1}) == [
        ("changed", ".a.b[0]", "1", "2"),
        ("removed", ".c", "1", None),
        ("added", ".d", None, "1"),
    ]
    assert steps(1, True) == [("changed", "", "1", "true")]
    assert steps("a", ["a"]) == [("changed", "", '"a"', '["a"]')]


def test_inside_of_a_users_type() -> None:
    old = [Message("user", "hi"), Message("ai", "hello")]
    new = [Message("user", "hi"), Message("ai", "hello, you")]
    assert steps(old, new) == [
        ("changed", "[1].content", '"hello"', '"hello, you"'),
    ]


def test_what_is_not_opened_is_told_as_a_whole() -> None:
    change = _value("x", Typed("msgpack+aes", b"1"), Typed("msgpack+aes", b"22"), 30)
    assert change is not None
    (step,) = change.steps
    assert (step.how, step.before) == ("changed", "<encrypted with aes, 1 bytes>")
    assert (change.size_before, change.size_after) == (1, 2)
    assert _value("x", Typed("null", b""), Typed("null", b""), 30) is None
    gone = _value("x", stored(1), None, 30)
    assert gone is not None
    assert (gone.how, gone.steps[0].before, gone.steps[0].after) == (
        "removed",
        "1",
        None,
    )


@given(VALUES, VALUES)
def test_there_is_no_step_exactly_where_nothing_differs(old: Any, new: Any) -> None:
    assert bool(list(_steps(old, new, "", 30))) == (not _same(old, new))


@given(VALUES, VALUES)
def test_the_way_back_undoes_each_step(old: Any, new: Any) -> None:
    there = [(s.how, s.path) for s in _steps(old, new, "", 30)]
    back = [(s.how, s.path) for s in _steps(new, old, "", 30)]
    mirrored = {"added": "removed", "removed": "added", "changed": "changed"}
    assert sorted((mirrored[how], path) for how, path in there) == sorted(back)


@pytest.mark.parametrize("many", [999, 1001])
def test_a_value_with_very_many_changes_is_cut(many: int) -> None:
    change = _value("x", stored([0] * many), stored([1] * many), 30)
    assert change is not None
    assert len(change.steps) == min(many, 1000)
    assert change.more == max(0, many - 1000)
