"""A saver on a bucket that nats-py made: nothing in it goes in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nats
import pytest
from tests.checkpoint.conformance import Factory, asynchronous, conform, entered
from tests.checkpoint.saving import OpenSaver

from jskv_saver import JetStreamSaver


@pytest.fixture
def open_saver(nats_url: str, plain_bucket: str) -> OpenSaver:
    def open_(**options: Any) -> JetStreamSaver:
        return JetStreamSaver.from_conn_string(
            nats_url, bucket=plain_bucket, create=False, **options
        )

    return open_


async def test_it_takes_no_batches(nats_url: str, plain_bucket: str) -> None:
    client = await nats.connect(nats_url)
    info = await client.jetstream().stream_info(f"KV_{plain_bucket}")
    assert not info.config.allow_atomic
    assert not info.config.allow_batched
    await client.close()


@pytest.mark.parametrize("opened", [asynchronous, entered], ids=lambda f: f.__name__)
async def test_all_81_tests_of_all_capabilities_run_and_pass(
    open_saver: OpenSaver, opened: Callable[[OpenSaver], Factory]
) -> None:
    await conform(opened(open_saver))
