from __future__ import annotations

import base64
from typing import Any

import pytest

from jskv_saver import CollectionSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.document.model import DocumentId, Order
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import InvalidRequestError

ORDERS: list[Order | None] = [
    None,
    ("n", "asc"),
    ("n", "desc"),
    ("@version", "asc"),
    ("@version", "desc"),
]


@pytest.fixture
async def ten(docs: BoundDocuments) -> BoundDocuments:
    await docs.put_many([("notes", ("t", f"{n}"), {"n": n}, None) for n in range(10)])
    return docs


def _ns(page: Any) -> list[int]:
    return [document.data["n"] for document in page.items]


async def test_limit_bounds_a_page(ten: BoundDocuments) -> None:
    for limit in (1, 9, 10, 11, 1000):
        page = await ten.find("notes", limit=limit)
        assert len(page.items) == min(limit, 10)
        assert (page.cursor is None) == (limit >= 10)


async def test_a_page_has_100_documents_unless_told(docs: BoundDocuments) -> None:
    await docs.put_many([("notes", f"{n:03}", {"n": n}, None) for n in range(101)])
    page = await docs.find("notes")
    assert _ns(page) == list(range(100))
    page = await docs.find("notes", cursor=page.cursor)
    assert _ns(page) == [100]
    assert page.cursor is None
    assert len((await docs.find("notes", limit=1000)).items) == 101


@pytest.mark.parametrize("limit", [0, -1, 1001, True, 1.0, "1", None, 2**64])
async def test_what_is_not_a_limit_is_refused(ten: BoundDocuments, limit: Any) -> None:
    with pytest.raises(InvalidRequestError):
        await ten.find("notes", limit=limit)
    with pytest.raises(InvalidRequestError):
        await anext(ten.iterate("notes", page_size=limit))


@pytest.mark.parametrize("order_by", ORDERS, ids=repr)
async def test_pages_have_everything_once(
    ten: BoundDocuments, order_by: Order | None
) -> None:
    whole = _ns(await ten.find("notes", order_by=order_by))
    assert sorted(whole) == list(range(10))
    for limit in range(1, 11):
        seen: list[int] = []
        cursor = None
        while True:
            page = await ten.find(
                "notes", order_by=order_by, limit=limit, cursor=cursor
            )
            seen += _ns(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == whole


@pytest.mark.parametrize("order_by", ORDERS, ids=repr)
async def test_a_cursor_survives_deletion_of_its_anchor(
    ten: BoundDocuments, order_by: Order | None
) -> None:
    whole = _ns(await ten.find("notes", order_by=order_by))
    page = await ten.find("notes", order_by=order_by, limit=4)
    await ten.delete("notes", page.items[-1].id)
    await ten.delete("notes", page.items[0].id)
    rest = await ten.find("notes", order_by=order_by, cursor=page.cursor)
    assert _ns(rest) == whole[4:]
    assert await ten.delete_many("notes") == 8
    nothing = await ten.find("notes", order_by=order_by, cursor=page.cursor)
    assert nothing.items == ()
    assert nothing.cursor is None


async def test_a_cursor_survives_inserts(ten: BoundDocuments) -> None:
    by_id = await ten.find("notes", limit=5)
    by_field = await ten.find("notes", order_by=("n", "desc"), limit=5)
    inserts: list[tuple[DocumentId, float]] = [
        (("s",), 20),
        (("t", "4"), 4),
        (("t", "4", "x"), 4.5),
        (("t", "45"), 4.75),
        (("u",), -1),
    ]
    for id, n in inserts:
        await ten.put("notes", id, {"n": n})
    rest = await ten.find("notes", cursor=by_id.cursor)
    assert _ns(rest) == [4.5, 4.75, 5, 6, 7, 8, 9, -1]
    rest = await ten.find("notes", order_by=("n", "desc"), cursor=by_field.cursor)
    assert _ns(rest) == [4.75, 4.5, 4, 3, 2, 1, 0, -1]


async def test_newest_first_is_not_disturbed_by_new_writes(
    ten: BoundDocuments,
) -> None:
    page = await ten.find("notes", order_by=("@version", "desc"), limit=3)
    await ten.put("notes", "new", {"n": 10})
    await ten.put("notes", ("t", "2"), {"n": 2})
    rest = await ten.find("notes", order_by=("@version", "desc"), cursor=page.cursor)
    assert _ns(rest) == [6, 5, 4, 3, 1, 0]


async def test_a_cursor_survives_a_change_of_its_anchors_value(
    ten: BoundDocuments,
) -> None:
    page = await ten.find("notes", order_by=("n", "asc"), limit=3)
    await ten.put("notes", page.items[-1].id, {"n": 100})
    rest = await ten.find("notes", order_by=("n", "asc"), cursor=page.cursor)
    assert _ns(rest) == [3, 4, 5, 6, 7, 8, 9, 100]


async def test_ties_are_paged_by_id(docs: BoundDocuments) -> None:
    for value in (None, True, 1, "x", b"x", [1], {"k": 1}):
        await docs.put_many(
            [("notes", f"{n}", {"v": value, "n": n}, None) for n in range(5)]
        )
        for direction, expected in (("asc", [2, 3, 4]), ("desc", [2, 1, 0])):
            order: Any = ("v", direction)
            page = await docs.find("notes", order_by=order, limit=2)
            rest = await docs.find("notes", order_by=order, cursor=page.cursor)
            assert _ns(rest) == expected


async def test_a_cursor_may_change_the_limit_and_the_order_of_predicates(
    ten: BoundDocuments,
) -> None:
    where: list[Any] = [("n", "gt", 0), ("n", "in", [1, 2, 3, 4]), ("n", "ne", 9)]
    page = await ten.find("notes", where, limit=1)
    rest = await ten.find("notes", reversed(where), limit=1000, cursor=page.cursor)
    assert _ns(rest) == [2, 3, 4]


async def test_a_cursor_is_good_more_than_once(ten: BoundDocuments) -> None:
    page = await ten.find("notes", limit=8)
    for _ in range(2):
        assert _ns(await ten.find("notes", cursor=page.cursor)) == [8, 9]


async def test_another_handle_takes_the_cursor(
    second: DocumentStore, ten: BoundDocuments
) -> None:
    page = await ten.find("notes", order_by=("n", "desc"), limit=8)
    rest = await second.find(
        "owner", "notes", order_by=("n", "desc"), cursor=page.cursor
    )
    assert _ns(rest) == [1, 0]


async def test_any_other_use_of_a_cursor_is_refused(
    store: DocumentStore, ten: BoundDocuments
) -> None:
    await store.ensure_collection("other", CollectionSpec("notes"))
    base: dict[str, Any] = {
        "namespace": "owner",
        "collection": "notes",
        "where": [("n", "gte", 0), ("n", "lt", 100)],
        "order_by": None,
        "within": "t",
    }
    changes: list[dict[str, Any]] = [
        {"namespace": "other"},
        {"collection": "tags"},
        {"where": []},
        {"where": [("n", "gte", 0)]},
        {"where": [("n", "gte", 0), ("n", "lt", 101)]},
        {"where": [("n", "gte", 0), ("n", "lte", 100)]},
        {"where": [("n", "gte", False), ("n", "lt", 100)]},
        {"order_by": ("n", "asc")},
        {"order_by": ("n", "desc")},
        {"order_by": ("m", "asc")},
        {"order_by": ("@version", "desc")},
        {"order_by": ("@version", "asc")},
        {"within": None},
        {"within": ("t", "t")},
        {"within": ["t", "u"]},
    ]
    for order_by in ORDERS:
        own = {**base, "order_by": order_by}
        cursor = (await store.find(**own, limit=3)).cursor
        assert cursor is not None
        assert len((await store.find(**own, cursor=cursor)).items) == 7
        for change in changes:
            other = {**own, **change}
            if other != own:
                with pytest.raises(InvalidRequestError):
                    await store.find(**other, cursor=cursor)


@pytest.mark.parametrize("order_by", ORDERS, ids=repr)
async def test_a_changed_cursor_is_refused(
    ten: BoundDocuments, order_by: Order | None
) -> None:
    cursor = (await ten.find("notes", order_by=order_by, limit=3)).cursor
    assert cursor is not None
    changed: list[Any] = [
        "",
        cursor[:-1],
        cursor[1:],
        cursor + "=",
        cursor + "A",
        cursor + "\n",
        " " + cursor,
        cursor + cursor,
        "x",
        "!",
        "\ud800",
        "é",
        cursor.encode(),
        0,
        ["t", "2"],
        base64.urlsafe_b64encode(b"").decode(),
        base64.urlsafe_b64encode(b"\x00" * 64).decode(),
        base64.urlsafe_b64encode(b'["t","2"]').decode(),
    ]
    for place in range(len(cursor)):
        other = "B" if cursor[place] == "A" else "A"
        changed.append(cursor[:place] + other + cursor[place + 1 :])
    for text in changed:
        with pytest.raises(InvalidRequestError):
            await ten.find("notes", order_by=order_by, cursor=text)


async def test_cursors_hold_any_value(docs: BoundDocuments) -> None:
    ids = ["é\r\n", "*", "", "x" * 4096]
    for value in ("é\r\n\uffff😀", -(2**63), 5e-324, b"\x00\xff", "x" * 5000):
        await docs.put_many([("notes", id, {"v": value}, None) for id in ids])
        cursor = None
        seen: list[DocumentId] = []
        for _ in ids:
            page = await docs.find(
                "notes", order_by=("v", "asc"), limit=1, cursor=cursor
            )
            seen += [document.id for document in page.items]
            cursor = page.cursor
        assert cursor is None
        assert seen == sorted(ids)
