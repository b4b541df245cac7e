"""Listing names page by page while others add and remove them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jskv_saver._nats.connection import Connection
from jskv_saver._nats.requests import Requests
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.reads import Reads
from jskv_saver.errors import StoreUnavailableError

PAGE = 4


class Pages(Api):
    """Answers listings as a server with pages of four would."""

    def __init__(self, requests: Requests, names: list[str]) -> None:
        super().__init__(requests, "b")
        self.names = names
        self.asked = 0
        self.meanwhile: Callable[[], None] = lambda: None

    async def call(
        self,
        name: str,
        request: Mapping[str, Any] | None = None,
        *,
        write: bool = False,
    ) -> dict[str, Any]:
        assert name == "STREAM.INFO"
        assert request is not None
        offset = request["offset"]
        page = sorted(self.names)[offset : offset + PAGE]
        total = len(self.names)
        self.asked += 1
        self.meanwhile()
        return {"total": total, "state": {"subjects": {f"$KV.b.{n}": 1 for n in page}}}


def listing(*names: str) -> tuple[Reads, Pages]:
    requests = Requests(Connection("nats://127.0.0.1:1"), timeout=1, bucket="b")
    pages = Pages(requests, list(names))
    return Reads(requests, pages), pages


@pytest.mark.parametrize("count", range(15))
async def test_all_pages(count: int) -> None:
    names = [f"{n:02}" for n in range(count)]
    reads, _ = listing(*names)
    assert await reads.names(["a.*"]) == names


@pytest.mark.parametrize("gone", range(10))
async def test_names_that_go_between_two_pages_hide_no_others(gone: int) -> None:
    names = [f"{n:02}" for n in range(10)]
    reads, pages = listing(*names)

    def remove() -> None:
        if pages.asked == 1:
            pages.names.remove(names[gone])

    pages.meanwhile = remove
    assert set(await reads.names(["a.*"])) >= set(names) - {names[gone]}


async def test_names_that_come_between_two_pages() -> None:
    names = [f"{n:02}" for n in range(10)]
    reads, pages = listing(*names)

    def add() -> None:
        if pages.asked == 1:
            pages.names.append("00x")

    pages.meanwhile = add
    assert set(await reads.names(["a.*"])) >= set(names)


async def test_a_listing_that_never_stands_still_is_an_error() -> None:
    reads, pages = listing(*(f"{n:03}" for n in range(100)))

    def remove() -> None:
        pages.names.remove(min(pages.names))

    pages.meanwhile = remove
    with pytest.raises(StoreUnavailableError):
        await reads.names(["a.*"])
