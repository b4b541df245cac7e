from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from jskv_saver import ANY, CollectionSpec, FieldSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    DocumentNotFoundError,
    IncompatibleDeclarationError,
    UniqueViolationError,
    VersionConflictError,
)

NOW = datetime(2024, 6, 1, tzinfo=UTC)
ONE = CollectionSpec("one", (FieldSpec("f", "json", unique=True),))
PAIR = CollectionSpec(
    "pair", (FieldSpec("b", "json"), FieldSpec("a", "json")), (("b", "a"),)
)


@pytest.fixture
async def unique(docs: BoundDocuments) -> BoundDocuments:
    await docs.ensure_collection(ONE)
    await docs.ensure_collection(PAIR)
    return docs


async def test_a_second_document_with_the_value_is_refused(
    unique: BoundDocuments,
) -> None:
    await unique.put("one", "a", {"f": "x"})
    with pytest.raises(UniqueViolationError) as caught:
        await unique.put("one", ("b", "c"), {"f": "x"})
    assert caught.value.fields == ("f",)
    assert caught.value.document in (None, "a")
    with pytest.raises(DocumentNotFoundError):
        await unique.get("one", ("b", "c"))
    with pytest.raises(UniqueViolationError):
        await unique.put("one", "b", {"f": "x"}, if_version=0)
    assert await unique.count("one") == 1


async def test_a_violation_changes_nothing(unique: BoundDocuments) -> None:
    await unique.put("one", "a", {"f": "x"})
    stored = await unique.put("one", "b", {"f": "y"})
    for if_version in (None, stored.version):
        with pytest.raises(UniqueViolationError):
            await unique.put("one", "b", {"f": "x"}, if_version=if_version)
    assert await unique.get("one", "b") == stored
    with pytest.raises(UniqueViolationError):
        await unique.put("one", "c", {"f": "y"})


async def test_a_document_may_keep_its_own_value(unique: BoundDocuments) -> None:
    first = await unique.put("one", "a", {"f": "x"})
    second = await unique.put("one", "a", {"f": "x", "n": 1})
    await unique.put("one", "a", {"f": "x", "n": 2}, if_version=second.version)
    assert first.version < second.version
    with pytest.raises(UniqueViolationError):
        await unique.put("one", "b", {"f": "x"})


async def test_a_given_up_value_is_free(unique: BoundDocuments) -> None:
    await unique.put("one", "a", {"f": "x"})
    await unique.put("one", "a", {"f": "y"})
    await unique.put("one", "b", {"f": "x"})
    with pytest.raises(UniqueViolationError):
        await unique.put("one", "a", {"f": "x"})
    await unique.put("one", "b", {})
    await unique.put("one", "a", {"f": "x"})


async def test_deleting_frees_the_value(unique: BoundDocuments) -> None:
    stored = await unique.put("one", ("t", "a"), {"f": "x"})
    await unique.delete("one", ("t", "a"))
    stored = await unique.put("one", ("t", "b"), {"f": "x"})
    await unique.delete("one", ("t", "b"), if_version=stored.version)
    await unique.put("one", ("t", "c"), {"f": "x"})
    await unique.delete("one", "t", subtree=True)
    await unique.put("one", ("t", "d"), {"f": "x"})
    await unique.delete("one", (ANY,), subtree=True)
    await unique.put("one", ("t", "e"), {"f": "x"})
    assert await unique.delete_many("one", [("f", "eq", "x")]) == 1
    await unique.put("one", ("t", "f"), {"f": "x"})
    await unique.drop_collection("one")
    await unique.ensure_collection(ONE)
    await unique.put("one", ("t", "g"), {"f": "x"})
    with pytest.raises(UniqueViolationError):
        await unique.put("one", ("t", "h"), {"f": "x"})


async def test_null_and_missing_never_conflict(unique: BoundDocuments) -> None:
    for id, data in enumerate([{}, {}, {"f": None}, {"f": None}]):
        await unique.put("one", f"{id}", data)
    assert await unique.count("one") == 4


async def test_values_conflict_when_they_are_equal(unique: BoundDocuments) -> None:
    same: list[tuple[Any, Any]] = [
        (1, 1.0),
        (0, -0.0),
        (2**53, float(2**53)),
        ("", ""),
        (b"", b""),
        (NOW, NOW.astimezone(timezone(timedelta(hours=3)))),
        ([1, {"a": 1, "b": [2]}], [1.0, {"b": [2.0], "a": 1}]),
        ({}, {}),
        (False, False),
        ("x" * 3000, "x" * 3000),
    ]
    for n, (first, second) in enumerate(same):
        await unique.put("one", f"a{n}", {"f": first})
        with pytest.raises(UniqueViolationError):
            await unique.put("one", f"b{n}", {"f": second})
    assert await unique.count("one") == len(same)


async def test_values_that_differ_never_conflict(unique: BoundDocuments) -> None:
    values: list[Any] = [
        True,
        1,
        "1",
        b"1",
        [1],
        [True],
        ["1"],
        {"1": 1},
        {"1": True},
        [[1]],
        False,
        0,
        "",
        b"",
        [],
        {},
        2**53,
        2**53 + 1,
        0.1,
        0.10000000000000002,
        5e-324,
        1e-323,
        NOW,
        NOW.isoformat(),
        NOW + timedelta(microseconds=1),
        "é",
        "e\u0301",
        "*",
        ">",
        "a.b",
        "x" * 3000,
        "x" * 2999 + "y",
        [None],
        ["a", "b"],
        ["ab"],
    ]
    for n, value in enumerate(values):
        await unique.put("one", f"{n}", {"f": value})
    assert await unique.count("one") == len(values)


async def test_compound_values_conflict_together_only(
    unique: BoundDocuments,
) -> None:
    await unique.put("pair", "1", {"a": 1, "b": 2})
    await unique.put("pair", "2", {"a": 2, "b": 1})
    await unique.put("pair", "3", {"a": 1, "b": 1})
    with pytest.raises(UniqueViolationError) as caught:
        await unique.put("pair", "4", {"b": 2.0, "a": 1.0})
    assert caught.value.fields == ("a", "b")
    await unique.put("pair", "4", {"a": "1", "b": "23"})
    await unique.put("pair", "5", {"a": "12", "b": "3"})
    await unique.put("pair", "6", {"a": True, "b": 2})


async def test_compound_is_exempt_when_a_component_is_null_or_missing(
    unique: BoundDocuments,
) -> None:
    exempt: list[dict[str, Any]] = [{"a": 1}, {"b": 2}, {"a": 1, "b": None}, {}]
    for n, data in enumerate([*exempt, *exempt]):
        await unique.put("pair", f"{n}", data)
    await unique.put("pair", "whole", {"a": 1, "b": 2})
    with pytest.raises(UniqueViolationError):
        await unique.put("pair", "0", {"a": 1, "b": 2})


async def test_field_order_of_a_compound_has_no_meaning(
    unique: BoundDocuments,
) -> None:
    await unique.put("pair", "1", {"a": 1, "b": 2})
    await unique.ensure_collection(
        CollectionSpec("pair", (), unique_together=(("a", "b"), ("b", "a"), ("a", "b")))
    )
    with pytest.raises(UniqueViolationError):
        await unique.put("pair", "2", {"a": 1, "b": 2})
    await unique.put("pair", "2", {"a": 2, "b": 1})


async def test_omitting_a_constraint_removes_nothing(unique: BoundDocuments) -> None:
    await unique.ensure_collection(CollectionSpec("one", (FieldSpec("f", "json"),)))
    await unique.put("one", "1", {"f": 1})
    with pytest.raises(UniqueViolationError):
        await unique.put("one", "2", {"f": 1})
    await unique.ensure_collection(
        CollectionSpec("pair", (FieldSpec("c", "json"),), (("b", "c"),))
    )
    await unique.put("pair", "1", {"a": 1, "b": 1, "c": 1})
    for data in ({"a": 1, "b": 1, "c": 2}, {"a": 2, "b": 1, "c": 1}):
        with pytest.raises(UniqueViolationError):
            await unique.put("pair", "2", data)


async def test_several_constraints_hold_at_once(docs: BoundDocuments) -> None:
    fields = (
        FieldSpec("a", "int", unique=True),
        FieldSpec("b", "int"),
        FieldSpec("c", "int"),
    )
    await docs.ensure_collection(CollectionSpec("many", fields, (("b", "c"),)))
    await docs.put("many", "1", {"a": 1, "b": 1, "c": 1})
    for data in ({"a": 1, "b": 2, "c": 2}, {"a": 2, "b": 1, "c": 1}):
        with pytest.raises(UniqueViolationError):
            await docs.put("many", "2", data)
    await docs.put("many", "2", {"a": 2, "b": 1, "c": 2})
    # A refused write holds none of its values, not even those that were free.
    with pytest.raises(UniqueViolationError):
        await docs.put("many", "3", {"a": 3, "b": 1, "c": 1})
    await docs.put("many", "4", {"a": 3, "b": 3, "c": 3})


async def test_uniqueness_ends_at_the_collection(
    store: DocumentStore, unique: BoundDocuments
) -> None:
    await unique.put("one", "a", {"f": "x"})
    await unique.put("notes", "b", {"f": "x"})
    await store.ensure_collection("other", ONE)
    await store.put("other", "one", "c", {"f": "x"})


async def test_conditions_hold_in_a_unique_collection(unique: BoundDocuments) -> None:
    first = await unique.put("one", ("t", "a"), {"f": "x"}, if_version=0)
    with pytest.raises(VersionConflictError):
        await unique.put("one", ("t", "a"), {"f": "y"}, if_version=0)
    with pytest.raises(VersionConflictError):
        await unique.put("one", ("t", "b"), {"f": "y"}, if_version=first.version)
    second = await unique.put("one", ("t", "a"), {"f": "y"}, if_version=first.version)
    await unique.put("one", ("t", "b"), {"f": "x"})
    assert second.created_at == first.created_at


async def test_a_fence_holds_in_a_unique_collection(unique: BoundDocuments) -> None:
    first = await unique.put("one", ("t", "a"), {"f": "x"}, if_latest=("t", 0))
    with pytest.raises(VersionConflictError):
        await unique.put("one", ("t", "b"), {"f": "y"}, if_latest=("t", 0))
    with pytest.raises(UniqueViolationError):
        await unique.put("one", ("t", "b"), {"f": "x"}, if_latest=("t", first.version))
    await unique.put("one", ("t", "b"), {"f": "y"}, if_latest=("t", first.version))
    await unique.put("one", ("u", "b"), {"f": "z"}, if_latest=("u", 0))


async def test_of_concurrent_writers_of_a_value_exactly_one_wins(
    store: DocumentStore, second: DocumentStore, unique: BoundDocuments
) -> None:
    results = await asyncio.gather(
        *(
            handle.put("owner", "one", f"{n}", {"f": "x"})
            for n, handle in enumerate([store, second] * 3)
        ),
        return_exceptions=True,
    )
    winners = [result for result in results if not isinstance(result, BaseException)]
    losers = [result for result in results if isinstance(result, BaseException)]
    assert [winner.id for winner in winners] == list(await unique.ids("one"))
    assert len(losers) == 5
    assert all(isinstance(loser, UniqueViolationError) for loser in losers)


async def test_concurrent_writers_of_different_values_all_win(
    store: DocumentStore, second: DocumentStore, unique: BoundDocuments
) -> None:
    await asyncio.gather(
        *(
            handle.put("owner", "one", f"{n}", {"f": n})
            for n, handle in enumerate([store, second] * 4)
        )
    )
    assert await unique.count("one") == 8


async def test_a_constraint_that_data_breaks_changes_nothing(
    docs: BoundDocuments,
) -> None:
    await docs.put("notes", "a", {"f": 1})
    await docs.put("notes", "b", {"f": 1.0})
    await docs.put("notes", "c", {"f": 2})
    with pytest.raises(IncompatibleDeclarationError) as caught:
        await docs.ensure_collection(
            CollectionSpec(
                "notes",
                (FieldSpec("f", "float", unique=True), FieldSpec("g", "int")),
            )
        )
    assert caught.value.collection == "notes"
    assert caught.value.document in ("a", "b")
    await docs.put("notes", "d", {"f": 2, "g": "text"})
    await docs.put("notes", "e", {"f": "text"})
    assert await docs.count("notes") == 5


async def test_a_compound_that_data_breaks_changes_nothing(
    docs: BoundDocuments,
) -> None:
    fields = (FieldSpec("a", "int"), FieldSpec("b", "int"))
    await docs.ensure_collection(CollectionSpec("notes", fields))
    await docs.put("notes", "1", {"a": 1, "b": 1})
    await docs.put("notes", "2", {"a": 1, "b": 1})
    with pytest.raises(IncompatibleDeclarationError):
        await docs.ensure_collection(
            CollectionSpec("notes", fields, unique_together=(("a", "b"),))
        )
    await docs.put("notes", "3", {"a": 1, "b": 1})


async def test_a_constraint_that_data_keeps_holds_from_then_on(
    docs: BoundDocuments,
) -> None:
    await docs.put("notes", "a", {"f": 1})
    await docs.put("notes", "b", {"f": 2})
    await docs.put("notes", "c", {})
    await docs.put("notes", "d", {"f": None})
    await docs.ensure_collection(
        CollectionSpec("notes", (FieldSpec("f", "int", unique=True),))
    )
    with pytest.raises(UniqueViolationError):
        await docs.put("notes", "c", {"f": 1})
    await docs.put("notes", "a", {"f": 3})
    await docs.put("notes", "c", {"f": 1})


async def test_a_constraint_is_seen_by_every_handle(
    store: DocumentStore, second: DocumentStore
) -> None:
    await store.ensure_collection("owner", CollectionSpec("one"))
    await second.put("owner", "one", "a", {"f": 1})
    await store.ensure_collection("owner", ONE)
    with pytest.raises(UniqueViolationError):
        await second.put("owner", "one", "b", {"f": 1})
    await second.put("owner", "one", "b", {"f": 2})
    with pytest.raises(UniqueViolationError):
        await store.put("owner", "one", "c", {"f": 2})
    await store.put("owner", "one", "a", {"f": 3})
    await second.put("owner", "one", "c", {"f": 1})
