from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jskv_saver import CollectionSpec, FieldSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import Order
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import IncompatibleDeclarationError, InvalidRequestError

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SAMPLES: dict[str, Any] = {
    "string": "a",
    "int": 1,
    "float": 1.5,
    "bool": True,
    "datetime": NOW,
    "bytes": b"a",
    "list": [1],
    "dict": {"a": 1},
}
ORDERS: list[Order | None] = [None, ("f", "asc"), ("f", "desc")]
ACCEPTED = {
    "string": {"string"},
    "int": {"int"},
    "float": {"float", "int"},
    "bool": {"bool"},
    "datetime": {"datetime"},
    "bytes": {"bytes"},
    "json": set(SAMPLES),
}


def _spec(*fields: FieldSpec, together: Any = ()) -> CollectionSpec:
    return CollectionSpec("typed", fields, together)


@pytest.mark.parametrize("declared", ACCEPTED)
async def test_declared_fields_have_their_type(
    docs: BoundDocuments, declared: Any
) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", declared)))
    await docs.put("typed", "absent", {})
    await docs.put("typed", "null", {"f": None})
    for kind, value in SAMPLES.items():
        if kind in ACCEPTED[declared]:
            await docs.put("typed", kind, {"f": value})
            assert (await docs.get("typed", kind)).data == {"f": value}
        else:
            with pytest.raises(InvalidRequestError, match="'f'"):
                await docs.put("typed", kind, {"f": value})
    assert await docs.count("typed") == len(ACCEPTED[declared]) + 2


async def test_an_int_in_a_float_field_stays_an_int(docs: BoundDocuments) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "float", indexed=True)))
    await docs.put("typed", "a", {"f": 2**53 + 1})
    read = (await docs.get("typed", "a")).data["f"]
    assert type(read) is int
    assert read == 2**53 + 1


async def test_undeclared_fields_are_storable_and_queryable(
    docs: BoundDocuments,
) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "int")))
    await docs.put("typed", "a", {"f": 1, "more": [1]})
    page = await docs.find("typed", [("more", "contains", 1)])
    assert [document.id for document in page.items] == ["a"]


async def test_field_names_are_literal(docs: BoundDocuments) -> None:
    await docs.ensure_collection(_spec(FieldSpec("a.b", "int"), FieldSpec("*", "int")))
    await docs.put("typed", "a", {"a": {"b": "text"}, "a.b": 1, "x": "text"})
    with pytest.raises(InvalidRequestError, match=r"a\.b"):
        await docs.put("typed", "a", {"a.b": "text"})


async def test_a_refused_document_leaves_the_stored_one(docs: BoundDocuments) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "int")))
    stored = await docs.put("typed", "a", {"f": 1})
    with pytest.raises(InvalidRequestError):
        await docs.put("typed", "a", {"f": "text"}, if_version=stored.version)
    assert await docs.get("typed", "a") == stored


async def test_declarations_add_up(docs: BoundDocuments) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "int")))
    await docs.put("typed", "a", {"f": 1})
    await docs.ensure_collection(_spec(FieldSpec("g", "string")))
    await docs.ensure_collection(_spec())
    for data in ({"f": "text"}, {"g": 1}):
        with pytest.raises(InvalidRequestError):
            await docs.put("typed", "b", data)
    await docs.put("typed", "b", {"f": 2, "g": "text"})
    assert await docs.count("typed") == 2


async def test_omitting_a_flag_removes_nothing(docs: BoundDocuments) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "int", indexed=True)))
    await docs.put("typed", "a", {"f": 1})
    await docs.ensure_collection(_spec(FieldSpec("f", "int", unique=True)))
    await docs.ensure_collection(_spec(FieldSpec("f", "int")))
    page = await docs.find("typed", [("f", "eq", 1)])
    assert [document.id for document in page.items] == ["a"]


async def test_a_changed_type_is_refused_and_changes_nothing(
    docs: BoundDocuments,
) -> None:
    await docs.ensure_collection(_spec(FieldSpec("f", "int")))
    with pytest.raises(IncompatibleDeclarationError) as caught:
        await docs.ensure_collection(
            _spec(FieldSpec("f", "float"), FieldSpec("g", "string"))
        )
    assert caught.value.collection == "typed"
    await docs.put("typed", "a", {"f": 1, "g": 1})
    with pytest.raises(InvalidRequestError):
        await docs.put("typed", "a", {"f": 1.5})
    others: list[Any] = ["json", "string", "bool"]
    for other in others:
        with pytest.raises(IncompatibleDeclarationError):
            await docs.ensure_collection(_spec(FieldSpec("f", other)))


async def test_documents_that_break_a_new_type_are_named(
    docs: BoundDocuments,
) -> None:
    await docs.ensure_collection(CollectionSpec("typed"))
    await docs.put("typed", "fine", {"f": 1})
    await docs.put("typed", ("not", "fine"), {"f": "text"})
    with pytest.raises(IncompatibleDeclarationError) as caught:
        await docs.ensure_collection(
            _spec(FieldSpec("f", "int"), FieldSpec("g", "int"))
        )
    assert caught.value.collection == "typed"
    assert caught.value.document == ("not", "fine")
    await docs.put("typed", "still open", {"f": "text", "g": "text"})
    await docs.delete("typed", ("not", "fine"))
    await docs.delete("typed", "still open")
    await docs.ensure_collection(_spec(FieldSpec("f", "int"), FieldSpec("g", "int")))
    with pytest.raises(InvalidRequestError):
        await docs.put("typed", "a", {"f": "text"})


async def test_a_declaration_is_seen_by_every_handle_on_its_next_call(
    store: DocumentStore, second: DocumentStore
) -> None:
    await store.ensure_collection("owner", CollectionSpec("typed"))
    await second.put("owner", "typed", "a", {"f": 1})
    await store.ensure_collection(
        "owner", _spec(FieldSpec("f", "int", indexed=True, unique=True))
    )
    with pytest.raises(InvalidRequestError):
        await second.put("owner", "typed", "b", {"f": "text"})
    await second.put("owner", "typed", "b", {"f": 2})
    page = await store.find("owner", "typed", [("f", "eq", 2)])
    assert [document.id for document in page.items] == ["b"]
    await second.ensure_collection("owner", _spec(FieldSpec("g", "bytes")))
    with pytest.raises(InvalidRequestError):
        await store.put("owner", "typed", "c", {"g": "text"})
    with pytest.raises(IncompatibleDeclarationError):
        await second.ensure_collection("owner", _spec(FieldSpec("f", "string")))


@pytest.mark.parametrize("unique", [False, True])
async def test_an_index_changes_no_answer(docs: BoundDocuments, unique: bool) -> None:
    values = [
        None,
        True,
        False,
        -1,
        0.5,
        1,
        2**53,
        2**53 + 1,
        "",
        "a",
        "a*",
        "x" * 2000,
        "x" * 1999 + "y",
        NOW,
        b"a",
        [1],
        {"k": 1},
    ]
    fields = (FieldSpec("f", "json", indexed=True, unique=unique),)
    await docs.ensure_collection(CollectionSpec("indexed", fields))
    for collection in ("notes", "indexed"):
        await docs.put_many(
            [(collection, f"{n}", {"f": v}, None) for n, v in enumerate(values)]
        )
        await docs.put(collection, "missing", {})
        await docs.put(collection, "4", {"f": 0.25})
        await docs.delete(collection, "9")
    questions: list[Any] = [("f", "in", values), ("f", "exists", False)]
    for value in [*values, 0.25]:
        questions += [("f", "eq", value), ("f", "ne", value), ("f", "nin", [value])]
        if isinstance(value, bool | int | float | str | bytes | datetime):
            questions += [("f", op, value) for op in ("lt", "lte", "gt", "gte")]
    for question in questions:
        for order in ORDERS:
            pages = [
                await docs.find(collection, [question], order_by=order)
                for collection in ("notes", "indexed")
            ]
            plain, indexed = (
                [(document.id, document.data) for document in page.items]
                for page in pages
            )
            assert indexed == plain, question


async def test_present_documents_are_indexed(docs: BoundDocuments) -> None:
    for n in range(5):
        await docs.put("notes", f"{n}", {"f": n})
    await docs.ensure_collection(
        CollectionSpec("notes", (FieldSpec("f", "int", indexed=True),))
    )
    page = await docs.find("notes", [("f", "gte", 3)])
    assert [document.id for document in page.items] == ["3", "4"]


# To be called with what their types forbid.
SPEC: Any = CollectionSpec
FIELD: Any = FieldSpec
F = FIELD("f", "int")
G = FIELD("g", "int")
BAD_SPECS: list[Any] = [
    None,
    "typed",
    {"name": "typed"},
    SPEC("typed", None),
    SPEC("typed", "f"),
    SPEC("typed", ("f",)),
    SPEC("typed", (("f", "int"),)),
    SPEC("typed", (F, F)),
    SPEC("typed", (F, FIELD("f", "string"))),
    SPEC("typed", (FIELD("", "int"),)),
    SPEC("typed", (FIELD("f\0", "int"),)),
    SPEC("typed", (FIELD("\ud800", "int"),)),
    SPEC("typed", (FIELD(1, "int"),)),
    SPEC("typed", (FIELD("f", "number"),)),
    SPEC("typed", (FIELD("f", None),)),
    SPEC("typed", (FIELD("f", "int", indexed=1),)),
    SPEC("typed", (FIELD("f", "int", unique=None),)),
    SPEC("typed", (F, G), ("f", "g")),
    SPEC("typed", (F, G), (("f",),)),
    SPEC("typed", (F, G), ((),)),
    SPEC("typed", (F, G), (("f", "f"),)),
    SPEC("typed", (F, G), (("f", "h"),)),
    SPEC("typed", (F, G), (("f", 1),)),
    SPEC("typed", (F, G), (("f", "g", "f"),)),
    SPEC("typed", (), (("f", "g"),)),
]


@pytest.mark.parametrize("position", range(len(BAD_SPECS)))
async def test_what_is_not_a_declaration_is_refused(
    docs: BoundDocuments, position: int
) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.ensure_collection(BAD_SPECS[position])
    assert list(await docs.collections()) == ["notes", "tags"]
