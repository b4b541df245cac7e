from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import near_paths, near_patterns, paths

from jskv_saver import ANY
from jskv_saver.document import names
from jskv_saver.document.model import id_of, path_of
from jskv_saver.errors import InvalidRequestError


@pytest.mark.parametrize("name", ["a", "x" * 128, "😀" * 128, ".*>", "\r\n", " "])
def test_names_are_any_text_of_1_to_128_characters(name: str) -> None:
    assert names.check_namespace(name) == name
    assert names.check_collection(name) == name
    assert names.check_declarable(name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "\0", "a\0", "\ud800", None, 1, b"a", ("a",), ["a"]]
)
def test_anything_else_is_no_name(name: Any) -> None:
    for check in (
        names.check_namespace,
        names.check_collection,
        names.check_declarable,
    ):
        with pytest.raises(InvalidRequestError) as caught:
            check(name)
        str(caught.value).encode()


def test_a_subclass_of_str_is_no_name() -> None:
    class Name(str):
        __slots__ = ()

    with pytest.raises(InvalidRequestError):
        names.check_namespace(Name("a"))
    with pytest.raises(InvalidRequestError):
        names.parse_id(Name("a"))
    with pytest.raises(InvalidRequestError):
        names.parse_id(("a", Name("a")))


def test_reserved_collections_are_used_but_not_declared() -> None:
    reserved = ("cp", "wr", "bl", "th", "rn", "ls", "ad", "pn")
    assert reserved == names.RESERVED_COLLECTIONS
    for name in names.RESERVED_COLLECTIONS:
        assert names.is_reserved(name)
        assert names.check_collection(name) == name
        with pytest.raises(InvalidRequestError):
            names.check_declarable(name)
    assert not names.is_reserved("CP")
    assert names.check_declarable("CP") == "CP"


def test_internal_collections_are_neither() -> None:
    for name in names.INTERNAL_COLLECTIONS:
        with pytest.raises(InvalidRequestError):
            names.check_collection(name)
        with pytest.raises(InvalidRequestError):
            names.check_declarable(name)


@given(paths)
def test_ids_and_paths_are_two_forms_of_one(path: tuple[str, ...]) -> None:
    assert names.parse_id(path) == path
    assert names.parse_id(id_of(path)) == path
    assert path_of(id_of(path)) == path


def test_bounds_of_paths() -> None:
    assert names.parse_id("") == ("",)
    assert len(names.parse_id(("",) * 32)) == 32
    assert names.parse_id("x" * 4096) == ("x" * 4096,)
    assert names.parse_id("é" * 2048) == ("é" * 2048,)
    for bad in ((), ("",) * 33, "x" * 4097, "é" * 2049, ("a", "😀" * 1025)):
        with pytest.raises(InvalidRequestError):
            names.parse_id(bad)


def test_any_stands_in_patterns_only() -> None:
    assert names.parse_pattern(("a", ANY)) == ("a", ANY)
    assert names.parse_prefix((ANY,)) == (ANY,)
    assert names.is_exact(("a", "ANY"))
    assert not names.is_exact(("a", ANY))
    parsers: list[Any] = [names.parse_id, names.parse_pattern, names.parse_prefix]
    for parse in parsers:
        with pytest.raises(InvalidRequestError):
            parse(())
        with pytest.raises(InvalidRequestError):
            parse(ANY)
    with pytest.raises(InvalidRequestError):
        parsers[0](("a", ANY))


def test_within_everything_is_none() -> None:
    assert names.parse_prefixes(None) is None
    assert names.parse_prefixes(()) is None
    assert names.parse_prefixes([()]) is None
    assert names.parse_prefixes(["a", ()]) is None
    assert names.is_within(("a",), None)


def test_within_nothing_is_empty() -> None:
    assert names.parse_prefixes([]) == ()
    assert not names.is_within(("a",), ())


def test_a_tuple_is_one_prefix_and_a_list_several() -> None:
    assert names.parse_prefixes("a") == (("a",),)
    assert names.parse_prefixes(("a", "b")) == (("a", "b"),)
    assert names.parse_prefixes(["b", "a"]) == (("a",), ("b",))


def test_covered_prefixes_are_dropped() -> None:
    assert names.parse_prefixes(["a", ("a", "b"), "a", ("a", ANY)]) == (("a",),)
    assert names.parse_prefixes([(ANY, "b"), ("a", "b", "c")]) == ((ANY, "b"),)
    assert names.parse_prefixes([(ANY, "b"), ("a", ANY)]) == (("a", ANY), (ANY, "b"))


@given(st.lists(near_patterns, max_size=5), near_paths)
def test_dropping_covered_prefixes_changes_no_answer(
    given_: list[Any], path: tuple[str, ...]
) -> None:
    expected = any(names.is_below(path, prefix) for prefix in given_)
    assert names.is_within(path, names.parse_prefixes(given_)) == expected


@given(st.lists(near_patterns, max_size=5))
def test_the_normal_form_of_within_is_one(given_: list[Any]) -> None:
    parsed = names.parse_prefixes(given_)
    assert names.parse_prefixes(given_[::-1]) == parsed
    if parsed is not None:
        assert names.parse_prefixes(list(parsed)) == parsed


@given(near_paths, near_patterns)
def test_below_is_what_a_longer_pattern_matches(
    path: tuple[str, ...], prefix: Any
) -> None:
    longer = (*prefix, *[ANY] * (len(path) - len(prefix)))
    expected = len(path) > len(prefix) and names.matches(path, longer)
    assert names.is_below(path, prefix) == expected


def test_matching_wants_the_same_number_of_segments() -> None:
    assert names.matches(("a", "b"), ("a", ANY))
    assert names.matches(("a", ""), ("a", ANY))
    assert not names.matches(("a",), ("a", ANY))
    assert not names.matches(("a", "b", "c"), ("a", ANY))
    assert not names.matches(("a", "b"), ("a", "*"))


def test_a_thousand_prefixes_are_parsed_at_once() -> None:
    many: list[Any] = [("a", f"{n}") for n in range(5_000)]
    assert names.parse_prefixes([*many, ("b", ANY)]) is not None
