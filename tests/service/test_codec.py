"""What goes over the wire comes back: values, documents, queries, errors."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.drawn import leaves, predicates, specs, withins
from tests.strategies import data

from jskv_saver import ANY, Document, errors
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire import faults, values
from jskv_saver.document.declarations import parse_spec
from jskv_saver.document.names import parse_prefixes
from jskv_saver.document.predicates import parse_where
from jskv_saver.document.values import MAX_DEPTH, check_data
from jskv_saver.errors import InvalidRequestError, JskvError, RemoteFaultError

moments = st.datetimes(timezones=st.just(UTC))


@given(data, moments, moments, st.integers(0, 2**63 - 1))
def test_documents_come_back_as_they_were(
    data: dict[str, Any], created: datetime, updated: datetime, version: int
) -> None:
    document = Document(("a", "é"), check_data(data), version, created, updated)
    message = pb.Document()
    values.fill_document(message, document)
    again = values.document_of(pb.Document.FromString(message.SerializeToString()))
    assert again == document
    assert [*map(type, leaves(again.data))] == [*map(type, leaves(document.data))]


def test_the_deepest_value_passes_the_parser() -> None:
    deep: Any = 1
    for level in range(MAX_DEPTH - 1):
        deep = [deep] if level % 2 else {"k": deep}
    data = check_data({"k": deep})
    request = pb.PutManyRequest()
    write = request.writes.add()
    values.fill_object(write.data, data)
    read = pb.PutManyRequest.FromString(request.SerializeToString())
    assert values.object_of(read.writes[0].data) == data


def _is_legal(predicate: Any) -> bool:
    """Some of those that are drawn have no meaning, such as an order of dicts."""
    try:
        return bool(parse_where([predicate]))
    except InvalidRequestError:
        return False


@given(st.lists(predicates.filter(_is_legal), max_size=3), withins)
def test_queries_come_back_as_they_were(where: Any, within: Any) -> None:
    filters = parse_where(where)
    prefixes = parse_prefixes(within)
    request = pb.FindRequest()
    values.fill_where(request, [(f.field, f.operator, f.value) for f in filters])
    values.fill_within(request, None if prefixes is None else list(prefixes))
    read = pb.FindRequest.FromString(request.SerializeToString())
    assert parse_where(values.where_of(read)) == filters
    again = values.within_of(read)
    assert parse_prefixes(again) == prefixes


@given(specs)
def test_declarations_come_back_as_they_were(spec: Any) -> None:
    message = pb.CollectionSpec()
    values.fill_spec(message, parse_spec(spec))
    read = pb.CollectionSpec.FromString(message.SerializeToString())
    assert values.spec_of(read) == parse_spec(spec)


@given(st.lists(st.one_of(st.just(ANY), st.sampled_from(["", "a", "*"])), max_size=5))
def test_patterns_come_back_as_they_were(pattern: Any) -> None:
    message = pb.Pattern()
    values.fill_pattern(message, tuple(pattern))
    assert values.pattern_of(message) == tuple(pattern)


DETAILS: dict[str, Any] = {
    "id": ("a", "b"),
    "document": "x",
    "fields": ("email",),
    "expected": 0,
    "actual": 2**63 - 1,
    "size": 10,
    "limit": 5,
    "version": 3,
}


@pytest.mark.parametrize("code", faults.BY_CODE)
def test_every_error_comes_back_with_its_details(code: int) -> None:
    kind = faults.BY_CODE[code]
    details = {name: DETAILS.get(name, f"the {name}") for name in kind.fields_}
    for known in (details, {}):
        error = kind("What is wrong: é 'x'\nand more", **known)
        body, headers = faults.encode_fault(error)
        assert headers["Nats-Service-Error-Code"] == str(code)
        assert "\n" not in headers["Nats-Service-Error"]
        assert headers["Nats-Service-Error"].isascii()
        again = faults.decode_fault(body, str(code))
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.details == error.details
        assert pickle.loads(pickle.dumps(again)).details == error.details


def test_all_errors_have_a_place_on_the_wire_but_those_of_a_process() -> None:
    kinds = {getattr(errors, name) for name in errors.__all__} - {JskvError}
    assert kinds - set(faults.BY_CODE.values()) == {
        errors.StoreClosedError,
        errors.WrongThreadError,
    }
    assert type(faults.told(errors.StoreClosedError("x"))) is (
        errors.StoreUnavailableError
    )
    assert type(faults.told(errors.WrongThreadError("x"))) is RemoteFaultError


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff\xff", "404"),
        (pb.Fault(code=404, message="x").SerializeToString(), "409"),
        (pb.Fault(code=404, message="x").SerializeToString(), "none"),
        (pb.Fault(code=777, message="x").SerializeToString(), "777"),
        (b"", "500\r\nx"),
        (
            pb.Fault(
                code=404, detail=pb.Object(keys=["a"], values=[])
            ).SerializeToString(),
            "404",
        ),
    ],
)
def test_an_error_that_is_none_of_ours_is_a_fault(body: bytes, code: str) -> None:
    assert type(faults.decode_fault(body, code)) is RemoteFaultError


def test_details_that_are_unknown_here_are_left_out() -> None:
    fault = pb.Fault(code=409, message="x")
    values.fill_object(fault.detail, {"expected": 1, "since": 2})
    error = faults.decode_fault(fault.SerializeToString(), "409")
    assert error.details == {"expected": 1, "actual": None}


def test_a_text_that_no_string_can_hold_is_escaped() -> None:
    body, _ = faults.encode_fault(errors.StoreUnavailableError("half \ud83d"))
    assert str(faults.decode_fault(body, "503")) == "half \\ud83d"
