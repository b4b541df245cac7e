from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests import strategies

from jskv_saver.document import cursor as cursors
from jskv_saver.document.model import Document, Order, id_of, path_of
from jskv_saver.document.ordering import (
    Kind,
    canonical_bytes,
    equality_key,
    kind_of,
    order_key,
)
from jskv_saver.document.query import Query
from jskv_saver.document.values import check_value
from jskv_saver.errors import InvalidRequestError

NOW = datetime(2024, 6, 1, tzinfo=UTC)
ORDERS: list[Order | None] = [
    None,
    ("v", "asc"),
    ("v", "desc"),
    ("@version", "asc"),
    ("@version", "desc"),
]


def _documents(entries: dict[tuple[str, ...], Any]) -> list[Document]:
    return [
        Document(id_of(path), {} if v is None else {"v": v}, version, NOW, NOW)
        for version, (path, v) in enumerate(entries.items(), 1)
    ]


checked = strategies.values.map(lambda value: check_value(value, "v"))
entries = st.dictionaries(strategies.near_paths | strategies.paths, checked)


def _equal(left: Any, right: Any) -> bool:
    """Structural equality, spelt out."""
    if kind_of(left) != kind_of(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _equal(left[key], right[key]) for key in left
        )
    return bool(left == right)


similar = (
    st.sampled_from(
        [
            0,
            -0.0,
            False,
            1,
            1.0,
            True,
            "1",
            b"1",
            [1],
            [1.0],
            [True],
            {"a": 1},
            {"a": True},
        ]
    )
    | checked
)


@given(similar, similar)
@example(2**53 + 1, float(2**53))
@example(2**63 - 1, float(2**63))
@example(0.1, 0.10000000000000002)
@example({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0})
@example(["a", "b"], ["ab"])
@example({"a": {}}, {"a": []})
@example(None, False)
def test_both_equality_keys_are_structural_equality(left: Any, right: Any) -> None:
    same = _equal(left, right)
    assert (equality_key(left) == equality_key(right)) is same
    assert (canonical_bytes(left) == canonical_bytes(right)) is same
    if same:
        assert hash(equality_key(left)) == hash(equality_key(right))


@given(similar, similar)
def test_the_order_agrees_with_equality(left: Any, right: Any) -> None:
    less, more = order_key(left) < order_key(right), order_key(left) > order_key(right)
    assert not (less and more)
    if kind_of(left) not in (Kind.LIST, Kind.DICT):
        assert _equal(left, right) is (order_key(left) == order_key(right))


@given(entries, st.sampled_from(ORDERS), st.integers(1, 4))
def test_pages_put_together_are_the_whole(
    entries: dict[tuple[str, ...], Any], order_by: Order | None, limit: int
) -> None:
    documents = _documents(entries)
    whole = Query.parse("ns", "c", (), order_by, 1000)
    expected = whole.sort(documents)
    seen: list[Document] = []
    cursor = None
    while True:
        query = Query.parse("ns", "c", (), order_by, limit, cursor)
        page = query.page(query.sort(documents))
        assert page == query.page(filter(query.after_cursor, query.sort(documents)))
        seen += page.items
        cursor = page.cursor
        if cursor is None:
            break
        assert len(page.items) == limit
    assert seen == expected


@given(entries, st.sampled_from(ORDERS), st.data())
def test_a_cursor_needs_no_anchor(
    entries: dict[tuple[str, ...], Any], order_by: Order | None, data: st.DataObject
) -> None:
    first = Query.parse("ns", "c", (), order_by)
    documents = first.sort(_documents(entries))
    if not documents:
        return
    place = data.draw(st.integers(0, len(documents) - 1))
    cursor = first.cursor_after(documents[place])
    query = Query.parse("ns", "c", (), order_by, 1000, cursor)
    del documents[place]
    assert list(query.page(documents).items) == documents[place:]


@given(st.lists(strategies.near_paths | strategies.paths, unique=True), st.data())
def test_sorted_paths_are_sliced_at_the_cursor(
    paths: list[tuple[str, ...]], data: st.DataObject
) -> None:
    anchor = data.draw(strategies.near_paths)
    document = Document(id_of(anchor), {}, 1, NOW, NOW)
    cursor = Query.parse("ns", "c").cursor_after(document)
    query = Query.parse("ns", "c", cursor=cursor)
    assert query.cursor_anchor == anchor
    paths.sort()
    assert list(query.paths_after_cursor(paths)) == [p for p in paths if p > anchor]
    assert Query.parse("ns", "c").paths_after_cursor(paths) == paths


def test_only_the_order_of_ids_slices_paths() -> None:
    query = Query.parse("ns", "c", (), ("v", "asc"))
    assert not query.by_id
    with pytest.raises(ValueError, match="order of ids"):
        query.paths_after_cursor([])


def test_the_order_is_told() -> None:
    by_id, field, version = (
        Query.parse("ns", "c", (), order)
        for order in (None, ("v", "asc"), ("@version", "desc"))
    )
    assert (by_id.by_id, by_id.by_version, by_id.descending) == (True, False, False)
    assert (field.by_id, field.by_version, field.descending) == (False, False, False)
    assert (version.by_version, version.descending) == (True, True)


def test_a_query_gives_its_arguments_back() -> None:
    where: list[Any] = [("f", "in", iter([1, 2]))]
    query = Query.parse("ns", "c", iter(where), within=["b", ("a", "x")])
    again = Query.parse("ns", "c", query.predicates, within=query.prefixes)
    assert again == query
    assert query.predicates == (("f", "in", (1, 2)),)
    assert query.prefixes == [("a", "x"), ("b",)]


def test_predicate_values_are_private_copies() -> None:
    value = [1]
    query = Query.parse("ns", "c", [("f", "eq", value), ("f", "in", [value])])
    value.append(2)
    assert query.matches_data({"f": [1]})
    assert not query.matches_data({"f": [1, 2]})


def test_a_query_matches_path_and_data() -> None:
    query = Query.parse("ns", "c", [("f", "gt", 1)], within="t")
    assert query.matches(Document(("t", "a"), {"f": 2}, 1, NOW, NOW))
    assert not query.matches(Document(("t", "a"), {"f": 1}, 1, NOW, NOW))
    assert not query.matches(Document("t", {"f": 2}, 1, NOW, NOW))
    assert not query.matches(Document(("u", "a"), {"f": 2}, 1, NOW, NOW))


def test_equal_predicates_share_a_cursor() -> None:
    document = Document("a", {}, 1, NOW, NOW)
    first = Query.parse("ns", "c", [("f", "in", {3, 1, 2}), ("g", "eq", 1)])
    cursor = first.cursor_after(document)
    others: list[Any] = [
        [("g", "eq", 1.0), ("f", "in", [1, 2, 3, 3.0])],
        [("g", "eq", 1), ("f", "in", (3, 2, 1)), ("g", "eq", 1)],
    ]
    for where in others:
        assert Query.parse("ns", "c", where, cursor=cursor).cursor_anchor == ("a",)
    with pytest.raises(InvalidRequestError):
        Query.parse("ns", "c", [("f", "in", [3, 1]), ("g", "eq", 1)], cursor=cursor)


def test_infinite_iterables_of_values_are_refused() -> None:
    def endless() -> Any:
        while True:
            yield 1

    with pytest.raises(InvalidRequestError, match="more than 500"):
        Query.parse("ns", "c", [("f", "in", endless())])


@given(checked, strategies.paths)
def test_cursors_of_a_field_round_trip(value: Any, path: tuple[str, ...]) -> None:
    key = order_key(value)
    text = cursors.encode_field(b"binding", key, path)
    assert text.isascii()
    assert cursors.decode_field(b"binding", text) == (key, path)
    with pytest.raises(InvalidRequestError):
        cursors.decode_field(b"another", text)


FORGED: list[Any] = [
    None,
    1,
    "a",
    {},
    [],
    [[]],
    ["a", 1],
    [["a"]],
    ["a\0"],
    ["a"] * 33,
    [0, 0],
    [0, 0, "a"],
    [0, 0, []],
    [0, 1, ["a"]],
    [True, True, ["a"]],
    [1, 0, ["a"]],
    [2, "1", ["a"]],
    [2, 2**63, ["a"]],
    [2, True, ["a"]],
    [3, 1, ["a"]],
    [3, "a\0", ["a"]],
    [4, "2024", ["a"]],
    [4, 10**30, ["a"]],
    [4, 10**18, ["a"]],
    [5, "zz", ["a"]],
    [5, 1, ["a"]],
    [6, None, ["a"]],
    [7, {}, ["a"]],
    [8, 0, ["a"]],
    [-1, 0, ["a"]],
    ["0", 0, ["a"]],
]


@pytest.mark.parametrize("content", FORGED, ids=repr)
def test_a_forged_cursor_is_refused_like_any_other(content: Any) -> None:
    text = cursors._seal(b"binding", content)
    if content not in (["a"] * 33, ["a\0"]):
        with pytest.raises(InvalidRequestError):
            cursors.decode_field(b"binding", text)
    if type(content) is not int:
        with pytest.raises(InvalidRequestError):
            cursors.decode_version(b"binding", text)
    if content != ["a"]:
        with pytest.raises(InvalidRequestError):
            cursors.decode_path(b"binding", text)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b"[" * 100_000, b"NaN", b"1e999", b"9" * 5000, b'"\\ud800"'],
    ids=range(8),
)
def test_a_forged_body_is_refused_like_any_other(body: bytes) -> None:
    text = base64.urlsafe_b64encode(cursors._digest(b"b", body) + body).decode()
    for decode in (cursors.decode_path, cursors.decode_version, cursors.decode_field):
        with pytest.raises(InvalidRequestError):
            decode(b"b", text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_forged_number_is_finite(number: str) -> None:
    body = f'[2,{number},["a"]]'.encode()
    text = base64.urlsafe_b64encode(cursors._digest(b"b", body) + body).decode()
    with pytest.raises(InvalidRequestError):
        cursors.decode_field(b"b", text)


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    for order_by in ORDERS:
        with pytest.raises(InvalidRequestError):
            Query.parse("ns", "c", (), order_by, cursor=text)


def test_a_cursor_is_compact() -> None:
    text = cursors.encode_path(b"binding", ("thread", "a"))
    body = base64.urlsafe_b64decode(text)[16:]
    assert json.loads(body) == ["thread", "a"]
    assert path_of("a") == ("a",)
    assert len(text) < 60
