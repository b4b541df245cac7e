"""Keys: reversible, in order, legal, apart; and what a filter can never meet."""

from __future__ import annotations

import uuid
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.key_texts import BORDERS, LEGAL, SCALARS, TEXTS, UUIDS

from jskv_saver._nats.tokens import (
    TOKEN_LIMIT,
    Digested,
    decode_token,
    encode_token,
    is_digested,
)
from jskv_saver.adapters.jetstream import keys
from jskv_saver.adapters.jetstream.values import value_token
from jskv_saver.document.model import ANY
from jskv_saver.errors import CorruptDocumentError, InvalidRequestError


def matches(filter: str, key: str) -> bool:
    """Whether NATS would let the filter meet the key."""
    wanted, tokens = filter.split("."), key.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        if len(tokens) <= len(wanted):
            return False
        tokens = tokens[: len(wanted)]
    return len(wanted) == len(tokens) and all(
        w in ("*", t) for w, t in zip(wanted, tokens, strict=True)
    )


class TestTokens:
    @given(TEXTS)
    @example("")
    @example("a..b\r\n")
    @example("*")
    @example(">")
    def test_round_trip_and_legality(self, text: str) -> None:
        token = encode_token(text)
        assert LEGAL(token)
        assert not token.startswith("/")
        if not is_digested(token):
            assert len(token) <= TOKEN_LIMIT
            assert decode_token(token) == text

    @given(TEXTS, TEXTS)
    def test_order_is_that_of_the_code_points(self, left: str, right: str) -> None:
        one, two = encode_token(left), encode_token(right)
        assert (one == two) == (left == right)
        if not is_digested(one) and not is_digested(two):
            assert (one < two) == (left < right)

    def test_order_of_every_short_text_at_a_border(self) -> None:
        texts = {"".join(t) for size in range(4) for t in product(BORDERS, repeat=size)}
        texts |= {"".join(t) for t in product("-_z./0{", repeat=5)}
        tokens = [encode_token(text) for text in sorted(texts)]
        assert all(one < two for one, two in pairwise(tokens))

    @given(UUIDS)
    def test_a_uuid_stays_as_it_is(self, text: str) -> None:
        assert encode_token(text) == text

    @pytest.mark.parametrize(
        ("text", "token"),
        [
            ("my_app", "my_app"),
            ("reviewer-v1", "reviewer-v1"),
            ("__pregel", "__pregel"),
            ("", "-"),
            ("-", "-/"),
            ("user:42|chat", "user=A42zz1chat"),
            ("a.b/c", "a/-b//c"),
            (".", "-zzz-"),
            ("/", "-zzz/"),
            ("pizza", "pizz-za"),
            ("session 7", "session--207"),
        ],
    )
    def test_form(self, text: str, token: str) -> None:
        assert encode_token(text) == token
        assert decode_token(token) == text

    def test_long_texts_are_digested_apart(self) -> None:
        fits, too_long = "x" * TOKEN_LIMIT, "x" * (TOKEN_LIMIT + 1)
        assert encode_token(fits) == fits
        tokens = {encode_token(too_long + end) for end in ("", "a", "b")}
        assert len(tokens) == 3
        for token in tokens:
            assert LEGAL(token)
            assert is_digested(token)
            assert len(token) < 60
            assert decode_token(token) == Digested(token)

    def test_what_is_encoded_too_long_is_digested(self) -> None:
        assert is_digested(encode_token(" " * 200))
        assert is_digested(encode_token("é" * 300))

    @given(st.text(alphabet="-/_=zAG09ay", max_size=8))
    def test_what_decodes_was_encoded(self, token: str) -> None:
        try:
            text = decode_token(token)
        except ValueError:
            return
        if isinstance(text, str):
            assert encode_token(text) == token

    @pytest.mark.parametrize("text", ["\ud83d", "a\udfffb"])
    def test_an_unpaired_surrogate_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidRequestError):
            encode_token(text)


SEGMENTS = st.one_of(TEXTS, UUIDS, st.text(min_size=600, max_size=700))


PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(tuple)


COLLECTIONS = st.one_of(
    st.sampled_from(sorted(keys.RESERVED)),
    st.sampled_from(["docs", "d", "é", "i", "ix2"]),
)


NAMES = st.sampled_from(["", "ns", "d", "/ns", "a.b", "*", ">", "c"])


class TestDocumentKeys:
    @given(NAMES, COLLECTIONS, PATHS)
    def test_round_trip(
        self, namespace: str, collection: str, path: tuple[str, ...]
    ) -> None:
        key = keys.document_key(namespace, collection, path)
        parsed = keys.path_of_key(key)
        complete = not keys.needs_path(path)
        assert keys.is_complete(parsed) == complete
        assert len(parsed) == len(path)
        if complete:
            assert parsed == path

    @given(st.lists(st.tuples(NAMES, COLLECTIONS, PATHS), min_size=2, max_size=12))
    def test_different_ids_have_different_keys(
        self, ids: list[tuple[str, str, tuple[str, ...]]]
    ) -> None:
        assert len({keys.document_key(*id) for id in ids}) == len(set(ids))

    @given(PATHS, PATHS)
    def test_token_order_is_path_order(
        self, left: tuple[str, ...], right: tuple[str, ...]
    ) -> None:
        if keys.needs_path(left) or keys.needs_path(right):
            return
        one = keys.document_key("ns", "cp", left).split(".")
        two = keys.document_key("ns", "cp", right).split(".")
        assert (one < two) == (left < right)

    def test_layout(self) -> None:
        assert keys.document_key("my_app", "cp", ("a", "t.1", "", "x")) == (
            "cp.my_app.a.t/-1.-.x"
        )
        assert keys.document_key("my_app", "docs", ("x",)) == "docs./my_app.d.x"
        assert keys.catalog_key("ns", "docs") == "docs./ns.c"
        assert keys.catalog_filter("ns") == "*./ns.c"
        assert keys.tick_key("ns", "docs") == "docs./ns.t"
        assert keys.document_filter("ns", "cp", ("a", ANY)) == "cp.ns.a.*"
        assert keys.document_filter("ns", "cp", "a", deep=True) == "cp.ns.a.>"
        assert keys.document_filter("ns", "docs", (), deep=True) == "docs./ns.d.>"
        assert keys.thread_filter("ns", ("a", "t")) == "*.ns.a.t.>"
        assert keys.collection_filter("ns", "docs") == "docs./ns.>"
        assert keys.collection_filter("ns", "cp") == "cp.ns.>"

    def test_filters_need_a_prefix(self) -> None:
        with pytest.raises(InvalidRequestError):
            keys.document_filter("ns", "cp", ())
        with pytest.raises(InvalidRequestError):
            keys.thread_filter("ns", ())

    @given(NAMES, st.sampled_from(["docs", "a", "cp2", "*"]), PATHS, PATHS)
    def test_the_purge_of_a_thread_meets_the_savers_keys_only(
        self,
        namespace: str,
        collection: str,
        path: tuple[str, ...],
        end: tuple[str, ...],
    ) -> None:
        filter = keys.thread_filter(namespace, path)
        for reserved in keys.RESERVED:
            assert matches(filter, keys.document_key(namespace, reserved, path + end))
            assert not matches(filter, keys.document_key(namespace, reserved, path))
        token = value_token("x")
        for other in (
            keys.document_key(namespace, collection, path + end),
            keys.catalog_key(namespace, collection),
            keys.tick_key(namespace, collection),
        ):
            assert not matches(filter, other)
            assert matches(keys.collection_filter(namespace, collection), other)
        index = keys.index_key(namespace, collection, "i", [token], path + end)
        assert not matches(filter, index)
        assert not matches(keys.collection_filter(namespace, collection), index)

    @pytest.mark.parametrize(
        "key", ["foo", "foo.bar", "docs./ns.c", "docs./ns.t", "docs./ns.d", "cp.ns", ""]
    )
    def test_other_keys_are_no_documents(self, key: str) -> None:
        with pytest.raises(CorruptDocumentError) as caught:
            keys.path_of_key(key)
        assert caught.value.key == key

    def test_a_key_that_was_not_encoded_here_is_no_document(self) -> None:
        with pytest.raises(CorruptDocumentError):
            keys.path_of_key("cp.ns.=Z")


class TestIndexKeys:
    @given(SCALARS, PATHS, st.text(max_size=5))
    def test_filters(self, value: Any, path: tuple[str, ...], index: str) -> None:
        token = value_token(value)
        key = keys.index_key("ns", "docs", index, [token], path)
        assert matches(keys.index_filter("ns", "docs"), key)
        assert matches(keys.index_filter("ns", "docs", index), key)
        assert matches(keys.index_filter("ns", "docs", index, [token]), key)
        with pytest.raises(CorruptDocumentError):
            keys.path_of_key(key)

    def test_several_values(self) -> None:
        tokens = [value_token(1), value_token("a")]
        key = keys.index_key("ns", "docs", "pair", tokens, ("x", "y"))
        document = keys.document_key("ns", "docs", ("x", "y"))
        assert keys.split_index_key(key, width=2) == (tokens, document)

    @given(NAMES, st.sampled_from(["docs", "a", "cp2", "*", ""]), PATHS)
    def test_intents_and_bars_stand_apart(
        self, namespace: str, collection: str, path: tuple[str, ...]
    ) -> None:
        intent = keys.intent_key(namespace, collection, "5107")
        assert matches(keys.intent_filter(namespace, collection), intent)
        for other in ("docs", "a", "", "-"):
            assert not matches(keys.index_filter(namespace, other), intent)
            assert not matches(keys.collection_filter(namespace, other), intent)
        document = keys.document_key(namespace, collection, path)
        bar = keys.bar_key(document)
        assert matches(keys.bar_filter(document), document)
        assert matches(keys.bar_filter(document), bar)
        assert matches(keys.collection_filter(namespace, collection), bar)
        below = keys.document_filter(namespace, collection, (), deep=True)
        assert not matches(below, bar)
        for other in (
            keys.catalog_key(namespace, collection),
            keys.tick_key(namespace, collection),
            keys.document_key(namespace, collection, (*path, "x")),
        ):
            assert not matches(keys.bar_filter(document), other)
        thread = keys.thread_filter(namespace, path)
        assert not matches(thread, intent)
        assert not matches(thread, bar)

    @pytest.mark.parametrize(
        "key", ["a", "docs./ns.d.x.y.z", "ix./ns.a.b.c", "ix.ns.a.b.c.d"]
    )
    def test_other_keys_are_refused(self, key: str) -> None:
        with pytest.raises(CorruptDocumentError):
            keys.split_index_key(key, width=1)

    @given(SCALARS, st.sampled_from(["docs", "é", "a.b"]), PATHS)
    def test_the_document_that_an_index_key_is_about(
        self, value: Any, collection: str, path: tuple[str, ...]
    ) -> None:
        token = value_token(value)
        key = keys.index_key("ns", collection, "i", [token], path)
        document = keys.document_key("ns", collection, path)
        assert keys.split_index_key(key, width=1) == ([token], document)
        tailed = keys.split_index_key(f"{key}.tail", width=1, tail=1)
        assert tailed == ([token], document)


def test_a_uuid_path_is_readable() -> None:
    thread = str(uuid.UUID(int=5))
    assert keys.document_key("ns", "cp", ("agent", thread)) == f"cp.ns.agent.{thread}"


@given(st.lists(st.lists(SEGMENTS, min_size=1, max_size=4), max_size=30))
def test_many_keys_at_once_are_read_as_one_by_one(paths: list[list[str]]) -> None:
    names = sorted(
        keys.document_key("owner", collection, tuple(path))
        for path in paths
        for collection in ("cp", "people")
    )
    found = list(keys.paths_of_keys(names))
    assert [key for _, key in found] == names
    for path, key in found:
        expected = keys.path_of_key(key)
        assert path == (expected if keys.is_complete(expected) else None)


def test_a_strange_key_among_many_is_named() -> None:
    for strange in ("x", "x.y", "cp", "cp.o"):
        with pytest.raises(CorruptDocumentError, match=f"'{strange}'"):
            list(keys.paths_of_keys(["cp.o.a.b", strange]))
