"""What the tests of commands do to threads beside the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.checkpoint.saving import at, ids, put_chain

from jskv_saver import (
    JetStreamSaver,
)

Fill = Callable[..., None]
Look = Callable[..., Any]
NAMES = ["1", "2", "3", "4"]


@pytest.fixture
def fill(nats_url: str, bucket: str) -> Fill:
    """Put a chain of checkpoints in two namespaces of each thread."""

    async def filled(threads: tuple[str, ...], **saver: Any) -> None:
        async with JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, **saver
        ) as keeper:
            for thread in threads:
                for ns in ("", "child:1"):
                    await put_chain(keeper, NAMES, thread=thread, ns=ns, run_id="r")
                await keeper.aput_writes(at("4", thread=thread), [("c", 1)], "task")

    return lambda *threads, **saver: asyncio.run(filled(threads, **saver))


@pytest.fixture
def use(nats_url: str, bucket: str) -> Look:
    """Do something with a saver."""

    async def used(
        act: Callable[[JetStreamSaver], Awaitable[Any]], **saver: Any
    ) -> Any:
        async with JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, **saver
        ) as keeper:
            return await act(keeper)

    return lambda act, **saver: asyncio.run(used(act, **saver))


@pytest.fixture
def left(use: Look) -> Look:
    """The ids of a thread's checkpoints."""
    return lambda thread="t", ns="", **saver: use(
        lambda keeper: ids(keeper, at(thread=thread, ns=ns)), **saver
    )
