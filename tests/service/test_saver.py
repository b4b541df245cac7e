"""The saver over a remote store: LangGraph's conformance suite, and whole graphs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.acceptance.conftest import comparable
from tests.acceptance.graphs import deltas, sending
from tests.checkpoint.conformance import Factory, asynchronous, conform, entered
from tests.checkpoint.saving import OpenSaver

from jskv_saver import (
    DocumentCheckpointSaver,
    DocumentService,
    DocumentStore,
    JetStreamDocumentStore,
    MemoryDocumentStore,
    RemoteDocumentStore,
)


@pytest.fixture(params=["memory", "jetstream"])
async def open_saver(
    request: pytest.FixtureRequest, nats_url: str, bucket: str
) -> AsyncIterator[OpenSaver]:
    """Makes savers on one storage behind a service, each on its own connection."""
    store: DocumentStore = MemoryDocumentStore()
    if request.param == "jetstream":
        store = JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)

    def open_(**options: Any) -> DocumentCheckpointSaver:
        remote = RemoteDocumentStore.from_conn_string(nats_url)
        return DocumentCheckpointSaver(remote, close_store=True, **options)

    async with DocumentService(store, nats_url):
        yield open_
    await store.close()


@pytest.mark.parametrize("opened", [asynchronous, entered], ids=lambda f: f.__name__)
async def test_all_81_tests_of_all_capabilities_run_and_pass(
    open_saver: OpenSaver, opened: Callable[[OpenSaver], Factory]
) -> None:
    await conform(opened(open_saver))


@pytest.mark.parametrize("make", [lambda: sending(12), deltas], ids=["sends", "deltas"])
async def test_a_graph_over_the_service_does_what_it_does_without(
    open_saver: OpenSaver, make: Callable[[], Any]
) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    async with (
        open_saver() as remote,
        DocumentCheckpointSaver(MemoryDocumentStore()) as local,
    ):
        histories = []
        for saver in (remote, local):
            graph = make().compile(checkpointer=saver)
            await graph.ainvoke({"log": []}, config)
            history = [state async for state in graph.aget_state_history(config)]
            histories.append(comparable(history))
        assert histories[0] == histories[1]
        assert len(histories[0]) > 2


async def test_a_blocking_graph_runs_over_the_service(open_saver: OpenSaver) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}

    def run() -> Any:
        with open_saver() as saver:
            return sending(5).compile(checkpointer=saver).invoke({"log": []}, config)

    state = await asyncio.to_thread(run)
    assert len(state["log"]) == 7
