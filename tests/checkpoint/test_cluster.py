"""On three replicas, where a read may come from one that lags, answers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.checkpoint.conformance import asynchronous, conform
from tests.checkpoint.saving import OpenSaver, at, listed, numbered, put

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.checkpoint.layout import RECORDS
from jskv_saver.document.port import ForeseesVersions


@pytest.fixture
def open_replicated(cluster: Sequence[LocalServer], bucket: str) -> OpenSaver:
    """Makes savers that are connected to one server of the cluster after the other."""
    opened = 0

    def open_saver(**options: Any) -> JetStreamSaver:
        nonlocal opened
        opened += 1
        return JetStreamSaver.from_conn_string(
            cluster[opened % len(cluster)].url, bucket=bucket, replicas=3, **options
        )

    return open_saver


async def test_all_81_conformance_tests_pass_on_three_replicas(
    open_replicated: OpenSaver,
) -> None:
    await conform(asynchronous(open_replicated))


async def test_what_one_server_acknowledged_another_one_reads(
    open_replicated: OpenSaver,
) -> None:
    text = "x" * 1000
    async with open_replicated() as writer, open_replicated() as reader:
        parent = None
        for n, id in enumerate(numbered(150)):
            await put(writer, id, {"text": f"{text}{n}"}, parent=parent)
            await writer.aput_writes(at(id), [("a", n)], "task")
            latest = await reader.aget_tuple(at())
            assert latest
            assert latest.checkpoint["id"] == id
            assert latest.checkpoint["channel_values"] == {"text": f"{text}{n}"}
            assert latest.pending_writes == [("task", "a", n)]
            single = await reader.aget_tuple(at(id))
            assert single == latest
            parent = id
        assert len(await listed(reader, at())) == 150
        await writer.adelete_thread("t")
        assert await reader.aget_tuple(at()) is None
        assert not await reader.store.ids("default", RECORDS, within=("default", "t"))


async def test_on_three_replicas_nothing_is_foreseen(
    open_replicated: OpenSaver,
) -> None:
    """A condition on what is still being replicated is refused, whatever it says."""
    async with open_replicated() as saver:
        for n in range(3):
            await put(saver, "1", {"text": "x" * 9000}, thread=f"t{n}")
        assert isinstance(saver.store, ForeseesVersions)
        assert saver.store.next_version is None
