"""The document store's own puts around the greatest message that a server takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.limits.lines import Line, blob, refusal
from tests.soak import SOAK

from jskv_saver import CollectionSpec
from jskv_saver.document.bound import BoundDocuments
from jskv_saver.errors import DocumentTooLargeError

Data = dict[str, Any]


async def _replace(docs: BoundDocuments, data: Data) -> None:
    version = (await docs.get("notes", "a")).version
    await docs.put("notes", "a", data, if_version=version)


WAYS: dict[str, Callable[[BoundDocuments, Data], Awaitable[Any]]] = {
    "put": lambda docs, data: docs.put("notes", "a", data),
    "replace": _replace,
    "create": lambda docs, data: docs.put("notes", "new", data, if_version=0),
    "put_many": lambda docs, data: docs.put_many(
        [
            ("notes", "b", {"n": 1}, None),
            ("notes", "a", data, None),
            ("notes", "c", {}, None),
        ]
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_document_is_stored_or_refused(limited: Line, way: str) -> None:
    docs = BoundDocuments(limited.saver.store, "owner")
    await docs.ensure_collection(CollectionSpec("notes"))
    await docs.put("notes", "stays", {"n": 1})
    stored = refusals = 0
    whole = limited.max_payload
    step = 128 if SOAK else 512 if whole < 4_000_000 else 4096
    for offset in (*range(-4096, 4097, step), 4 * whole):
        data = {"blob": blob(whole + offset)}
        await docs.put("notes", "a", {"n": 0})
        before = await limited.keys()
        refused = await refusal(WAYS[way](docs, data))
        if refused is None:
            stored += 1
            id = "new" if way == "create" else "a"
            assert (await docs.get("notes", id)).data == data
        else:
            refusals += 1
            assert isinstance(refused, DocumentTooLargeError)
            assert refused.size is not None
            assert refused.size > whole
            assert whole + offset > docs.limits.data
            # Of many, those before it are stored.
            extra = {key.rpartition(".")[2] for key in await limited.keys() ^ before}
            assert extra <= ({"b"} if way == "put_many" else set())
            assert (await docs.get("notes", "a")).data == {"n": 0}
        for id in ("new", "b", "c"):
            await docs.delete("notes", id)
    assert stored
    assert refusals
    assert (await docs.get("notes", "stays")).data == {"n": 1}
    await limited.lives()
