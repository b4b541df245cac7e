from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from tests.shown import shown

from jskv_saver import ANY, CollectionSpec, Document, FieldSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import Write
from jskv_saver.errors import (
    DocumentTooLargeError,
    InvalidRequestError,
    JskvError,
    UniqueViolationError,
    VersionConflictError,
)


async def test_put_many_stores_in_order_across_collections(
    docs: BoundDocuments,
) -> None:
    writes: list[Write] = [
        ("notes", "b", {"n": 1}, None),
        ("tags", ("x", "y"), {"n": 2}, 0),
        ("cp", "a", {"n": 3}, None),
        ("notes", "a", {"n": 4}, None),
        ("notes", "b", {"n": 5}, None),
    ]
    stored = await docs.put_many(writes)
    assert [document.data["n"] for document in stored] == [1, 2, 3, 4, 5]
    assert [document.id for document in stored] == ["b", ("x", "y"), "a", "a", "b"]
    versions = [document.version for document in stored]
    assert versions == sorted(set(versions))
    assert await docs.get("notes", "b") == stored[4]
    assert await docs.get("tags", ("x", "y")) == stored[1]
    assert await docs.get("cp", "a") == stored[2]
    assert stored[4].created_at == stored[0].created_at


async def test_put_many_that_is_not_exact_tells_the_last_version(
    docs: BoundDocuments,
) -> None:
    writes: list[Write] = [("bl", f"{n}", {"n": n}, None) for n in range(3)]
    stored = await docs.put_many([*writes, ("cp", "a", {}, 0)], exact=False)
    assert [document.id for document in stored] == ["0", "1", "2", "a"]
    last = await docs.get("cp", "a")
    assert stored[-1].version == last.version
    for document in stored[:-1]:
        read = await docs.get("bl", document.id)
        assert read.data == document.data
        assert read.version < last.version
        assert document.version in (0, read.version)


async def test_put_many_of_nothing(docs: BoundDocuments) -> None:
    assert list(await docs.put_many([])) == []
    assert list(await docs.put_many(iter([]))) == []


async def test_put_many_takes_an_iterator(docs: BoundDocuments) -> None:
    writes: list[Write] = [("notes", f"{n}", {}, None) for n in range(3)]
    assert len(await docs.put_many(iter(writes))) == 3


async def test_put_many_takes_conditions(docs: BoundDocuments) -> None:
    first = await docs.put("notes", ("t", "a"), {})
    stored = await docs.put_many(
        [
            ("notes", ("t", "a"), {"n": 1}, first.version),
            ("tags", "b", {"n": 2}, None),
            ("notes", ("u", "c"), {"n": 3}, ("u", 0)),
            ("notes", "d", {"n": 4}, 0),
        ]
    )
    assert [document.data["n"] for document in stored] == [1, 2, 3, 4]
    last = await docs.put_many(
        [
            ("bl", ("t", "x"), {}, None),
            ("bl", ("t", "y"), {}, None),
            ("notes", ("t", "b"), {}, ("t", stored[0].version)),
        ]
    )
    assert await docs.get("notes", ("t", "b")) == last[2]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("condition", [7, 0, ("t", 0)], ids=repr)
async def test_put_many_stops_at_the_first_conflict(
    docs: BoundDocuments, place: int, condition: Any
) -> None:
    kept = await docs.put("notes", ("t", "old"), {"n": -1})
    writes: list[Write] = [("notes", f"{n}", {"n": n}, None) for n in range(4)]
    id: Any = ("t", "old") if condition == 0 else ("t", "new")
    writes[place] = ("notes", id, {"n": place}, condition)
    with pytest.raises(VersionConflictError):
        await docs.put_many(writes)
    stored = [id for id in await docs.ids("notes") if isinstance(id, str)]
    assert stored == [f"{n}" for n in range(place)]
    assert await docs.get("notes", ("t", "old")) == kept
    assert await docs.count("notes", within="t") == 1


async def test_put_many_stores_a_prefix_whatever_fails(docs: BoundDocuments) -> None:
    await docs.ensure_collection(
        CollectionSpec("typed", (FieldSpec("f", "int", unique=True),))
    )
    await docs.put("typed", "taken", {"f": 1})
    failing: list[tuple[Write, type[JskvError]]] = [
        (("typed", "x", {"f": 1}, None), UniqueViolationError),
        (("typed", "x", {"f": "text"}, None), InvalidRequestError),
        (
            ("notes", "x", {"b": b"x" * docs.limits.data * 4}, None),
            DocumentTooLargeError,
        ),
        (("notes", "x", {"b": 1}, 1), VersionConflictError),
    ]
    for write, error in failing:
        before: list[Write] = [("tags", f"{n}", {}, None) for n in range(3)]
        after: list[Write] = [("tags", f"{n}", {}, None) for n in range(3, 6)]
        with pytest.raises(error):
            await docs.put_many([*before, write, *after])
        stored = list(await docs.ids("tags"))
        assert stored == [f"{n}" for n in range(len(stored))]
        assert len(stored) <= 3
        assert await docs.count("notes") == 0
        assert await docs.count("typed") == 1
        await docs.delete_many("tags")


@pytest.mark.parametrize(
    "write",
    [
        None,
        "notes",
        (),
        ("notes", "a", {}),
        ("notes", "a", {}, None, None),
        ("", "a", {}, None),
        ("ix", "a", {}, None),
        ("notes", (), {}, None),
        ("notes", ("a", ANY), {}, None),
        ("notes", "a", None, None),
        ("notes", "a", {"v": object()}, None),
        ("notes", "a", {}, -1),
        ("notes", "a", {}, True),
        ("notes", "a", {}, "0"),
        ("notes", "a", {}, ()),
        ("notes", "a", {}, ("t",)),
        ("notes", "a", {}, ("t", -1)),
        ("notes", "a", {}, ((), 0)),
        ("notes", "a", {}, (("t", ANY), 0)),
    ],
    ids=shown,
)
async def test_put_many_with_an_invalid_write_stores_nothing(
    docs: BoundDocuments, write: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.put_many([("notes", "fine", {}, None), write])
    assert await docs.count("notes") == 0


@pytest.mark.parametrize("many", [None, 1, "ab", {"a": 1}], ids=repr)
async def test_what_is_no_list_is_refused(docs: BoundDocuments, many: Any) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.put_many(many)
    with pytest.raises(InvalidRequestError):
        await docs.get_many(many)


async def test_get_many_reads_across_collections(docs: BoundDocuments) -> None:
    a = await docs.put("notes", "a", {"n": 1})
    b = await docs.put("tags", ("b", "c"), {"n": 2})
    c = await docs.put("cp", "c", {"n": 3})
    found = await docs.get_many(
        [
            ("tags", ("b", "c")),
            ("notes", ("a",)),
            ("notes", "missing"),
            ("cp", "c"),
            ("notes", "a"),
            ("tags", ("b", ANY)),
            ("wr", "c"),
        ]
    )
    assert dict(found) == {("notes", "a"): a, ("tags", ("b", "c")): b, ("cp", "c"): c}
    assert dict(await docs.get_many([])) == {}
    assert dict(await docs.get_many([("notes", "missing")])) == {}


async def test_get_many_of_more_than_fits_one_answer(docs: BoundDocuments) -> None:
    blob = b"x" * (docs.limits.data // 3)
    for n in range(10):
        await docs.put("notes", ("t", f"{n}"), {"n": n, "blob": blob})
    found = await docs.get_many([("notes", ("t", f"{n}")) for n in range(10)])
    assert sorted(document.data["n"] for document in found.values()) == list(range(10))
    found = await docs.get_many([("notes", ("t", ANY))])
    assert len(found) == 10
    page = await docs.find("notes", within="t")
    assert [document.data["n"] for document in page.items] == list(range(10))


async def test_get_many_of_a_thousand(docs: BoundDocuments) -> None:
    ids = [("t", f"{n:04}") for n in range(1000)]
    await docs.put_many([("notes", id, {}, None) for id in ids])
    found = await docs.get_many([("notes", id) for id in ids])
    assert sorted(found) == [("notes", id) for id in ids]
    assert len(await docs.get_many([("notes", ("t", ANY))])) == 1000
    assert list(await docs.ids("notes")) == ids


@pytest.mark.parametrize(
    "read",
    [
        None,
        "a",
        (),
        ("notes",),
        ("notes", "a", "b"),
        ("", "a"),
        ("ix", "a"),
        ("notes", ()),
        ("notes", ["a"]),
        ("notes", ANY),
        ("notes", ("a", 1)),
        ("notes", "a\0"),
    ],
    ids=repr,
)
async def test_what_is_not_a_read_is_refused(docs: BoundDocuments, read: Any) -> None:
    with pytest.raises(InvalidRequestError):
        await docs.get_many([("notes", "a"), read])


async def test_delete_many_removes_what_matches(docs: BoundDocuments) -> None:
    await docs.put_many(
        [("notes", ("t" if n % 2 else "u", f"{n}"), {"n": n}, None) for n in range(10)]
    )
    await docs.put("tags", ("t", "1"), {"n": 9})
    assert await docs.delete_many("notes", [("n", "gte", 8)]) == 2
    assert await docs.delete_many("notes", [("n", "lt", 2)], within="t") == 1
    assert await docs.delete_many("notes", within=["t", ("u", "0"), "missing"]) == 3
    assert list(await docs.ids("notes")) == [("u", f"{n}") for n in (0, 2, 4, 6)]
    assert await docs.delete_many("notes", [("n", "eq", "absent")]) == 0
    assert await docs.delete_many("notes") == 4
    assert await docs.delete_many("notes") == 0
    assert await docs.count("tags") == 1


async def test_delete_many_removes_more_than_a_page(docs: BoundDocuments) -> None:
    await docs.put_many([("notes", f"{n}", {}, None) for n in range(1100)])
    assert await docs.delete_many("notes") == 1100
    assert await docs.count("notes") == 0


async def test_iterate_reads_everything_in_order(docs: BoundDocuments) -> None:
    await docs.put_many([("notes", f"{n}", {"n": n}, None) for n in range(7)])
    for page_size in (1, 3, 7, 8, 1000):
        seen = docs.iterate("notes", order_by=("n", "desc"), page_size=page_size)
        assert [document.data["n"] async for document in seen] == [6, 5, 4, 3, 2, 1, 0]
    seen = docs.iterate("notes", [("n", "in", iter([1, 3, 5]))], page_size=1)
    assert [document.id async for document in seen] == ["1", "3", "5"]
    assert [document async for document in docs.iterate("tags")] == []


async def test_iterate_lets_the_loop_body_write(docs: BoundDocuments) -> None:
    await docs.put_many([("notes", f"{n}", {"n": n}, None) for n in range(6)])
    seen: list[Any] = []
    async for document in docs.iterate("notes", page_size=2):
        seen.append(document.id)
        await docs.delete("notes", document.id, if_version=document.version)
    assert seen == ["0", "1", "2", "3", "4", "5"]
    assert await docs.count("notes") == 0


async def test_iterate_may_be_left_early(docs: BoundDocuments) -> None:
    await docs.put_many([("notes", f"{n}", {}, None) for n in range(6)])
    documents = docs.iterate("notes", page_size=2)
    assert (await anext(documents)).id == "0"
    await cast(AsyncGenerator[Document, None], documents).aclose()
    assert await docs.count("notes") == 6
