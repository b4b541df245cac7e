"""What is recorded of savers, stores and services, and that nothing is otherwise."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from tests.otel.conftest import Recorded, details

from jskv_saver import (
    DocumentCheckpointSaver,
    DocumentService,
    JetStreamDocumentStore,
    JetStreamSaver,
    MemoryDocumentStore,
    RemoteDocumentStore,
)
from jskv_saver.errors import (
    DivergentCheckpointError,
    DocumentNotFoundError,
    InvalidRequestError,
)
from jskv_saver.otel import instrument

THREAD: RunnableConfig = {"configurable": {"thread_id": "t:1", "checkpoint_ns": ""}}


def checkpoint(text: str = "x") -> Any:
    return {**empty_checkpoint(), "channel_values": {"a": text}}


def saved(url: str, bucket: str) -> JetStreamSaver:
    return JetStreamSaver.from_conn_string(
        url, bucket=bucket, namespace="my_app", agent_id="v1"
    )


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    assert span.context
    id: int = span.context.span_id
    return id


async def test_an_operation_of_a_saver(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    async with recorded.instrument(saved(nats_url, bucket)) as saver:
        with recorded.tracers.get_tracer("test").start_as_current_span("node"):
            config = await saver.aput(THREAD, checkpoint("y" * 3000), {}, {"a": 1})
        await saver.aput_writes(config, [("a", 1)], "task")
    # Another one, which remembers nothing.
    async with recorded.instrument(saved(nats_url, bucket)) as saver:
        found = await saver.aget_tuple(THREAD)
        assert found is not None
    span = recorded.span("put")
    assert span.kind is SpanKind.INTERNAL
    assert parent_of(span) == id_of(recorded.span("node"))
    told = details(span)
    assert told["jskv.operation"] == "put"
    assert told["jskv.thread.id"] == "t:1"
    assert (told["jskv.namespace"], told["jskv.agent"]) == ("my_app", "v1")
    assert 1 <= told["jskv.round_trips"] <= 3
    assert 3000 < told["jskv.bytes.sent"] < 6000
    assert told["jskv.retries"] == 0
    id = config["configurable"]["checkpoint_id"]
    assert details(recorded.span("put_writes"))["jskv.checkpoint.id"] == id
    assert details(recorded.span("get_tuple"))["jskv.bytes.received"] > 3000

    # Beneath it, the calls of the document store, by the database conventions.
    calls = [
        span
        for span in recorded.exporter.get_finished_spans()
        if span.kind is SpanKind.CLIENT
        and parent_of(span) == id_of(recorded.span("put"))
    ]
    assert {details(call)["db.system.name"] for call in calls} == {"nats"}
    assert {details(call)["db.namespace"] for call in calls} == {"my_app"}
    assert (
        sum(details(call)["jskv.round_trips"] for call in calls)
        == (told["jskv.round_trips"])
    )

    (point,) = [
        point
        for point in recorded.points("jskv.operation.duration")
        if point.attributes["jskv.operation"] == "put"
    ]
    assert point.count == 1
    # Threads have spans, but no series of their own.
    assert set(point.attributes) == {"jskv.operation", "jskv.namespace", "jskv.agent"}
    sent = [
        point.value
        for point in recorded.points("jskv.io")
        if point.attributes["jskv.operation"] == "put"
        and point.attributes["network.io.direction"] == "transmit"
    ]
    assert sent == [told["jskv.bytes.sent"]]
    assert recorded.points("db.client.operation.duration")


async def test_a_conflict_and_what_was_tried_again(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    first = checkpoint()
    async with (
        recorded.instrument(saved(nats_url, bucket)) as saver,
        saved(nats_url, bucket) as other,
    ):
        await saver.aput(THREAD, first, {}, {})
        await other.aput(THREAD, checkpoint(), {}, {})
        # What this saver remembers is no longer so: refused, read, put again.
        await saver.aput(THREAD, checkpoint(), {}, {})
        first["ts"] = "another"
        with pytest.raises(DivergentCheckpointError):
            await saver.aput(THREAD, first, {}, {})
    _, again, conflict = recorded.spans("put")
    assert details(again)["jskv.retries"] == 1
    assert again.status.status_code is StatusCode.UNSET
    assert conflict.status.status_code is StatusCode.ERROR
    assert details(conflict)["error.type"] == "DivergentCheckpointError"
    assert [point.value for point in recorded.points("jskv.conflicts")] == [1]
    assert [point.value for point in recorded.points("jskv.retries")] == [1]
    errors = {
        point.attributes.get("error.type"): point.count
        for point in recorded.points("jskv.operation.duration")
        if point.attributes["jskv.operation"] == "put"
    }
    assert errors == {None: 2, "DivergentCheckpointError": 1}


async def test_a_listing_has_one_span_and_no_other_is_current(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    async with recorded.instrument(saved(nats_url, bucket)) as saver:
        for _ in range(3):
            await saver.aput(THREAD, checkpoint(), {}, {})
        async for _ in saver.alist(THREAD):
            assert trace.get_current_span() is trace.INVALID_SPAN
        listing = saver.alist(THREAD)
        await anext(listing)
        await listing.aclose()  # type: ignore[attr-defined]
        assert [each async for each in saver.alist(THREAD, limit=0)] == []
    whole, left, none = recorded.spans("list")
    assert {each.status.status_code for each in (whole, left, none)} == {
        StatusCode.UNSET
    }
    assert details(whole)["jskv.round_trips"] >= 1
    assert details(none)["jskv.round_trips"] == 0


def test_the_blocking_face(recorded: Recorded, nats_url: str, bucket: str) -> None:
    with recorded.instrument(saved(nats_url, bucket)) as saver:
        saver.put(THREAD, checkpoint(), {}, {"a": 1})
        assert len(list(saver.list(THREAD))) == 1
        saver.delete_thread("t:1")
        with pytest.raises(InvalidRequestError):
            saver.get_tuple({})
    for name in ("put", "list", "delete_thread"):
        assert details(recorded.span(name))["jskv.round_trips"] >= 1
    assert details(recorded.span("delete_thread"))["jskv.thread.id"] == "t:1"
    assert details(recorded.span("get_tuple"))["error.type"] == "InvalidRequestError"


async def test_one_trace_goes_through_the_service(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    async with (
        JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket) as store,
        recorded.instrument(DocumentService(store, nats_url, queue_group=bucket)),
    ):
        remote = RemoteDocumentStore.from_conn_string(nats_url)
        async with recorded.instrument(
            DocumentCheckpointSaver(remote, namespace="my_app", close_store=True)
        ) as saver:
            await saver.aput(THREAD, checkpoint(), {}, {})
            with pytest.raises(DocumentNotFoundError):
                await remote.get("my_app", "cp", "missing")
    put = recorded.span("put")
    served = [
        span
        for span in recorded.exporter.get_finished_spans()
        if span.kind is SpanKind.SERVER and span.context and put.context
        if span.context.trace_id == put.context.trace_id
    ]
    assert served
    names = {id_of(each): each for each in recorded.exporter.get_finished_spans()}
    for each in served:
        assert each.name.startswith("jskv.v1/")
        # A call of the store that the saver made: not of the process behind.
        caller = names[parent_of(each) or 0]
        assert caller.kind is SpanKind.CLIENT
        assert parent_of(caller) == id_of(put)
        assert details(each)["rpc.request.size"] > 0
    # An answer without a content is none.
    assert sum(details(each)["rpc.response.size"] for each in served) > 0
    refused = recorded.spans("jskv.v1/get")[-1]
    assert details(refused)["error.type"] == "DocumentNotFoundError"
    errors = {
        point.attributes["rpc.method"]: point.attributes.get("error.type")
        for point in recorded.points("rpc.server.call.duration")
    }
    assert errors["jskv.v1/get"] == "DocumentNotFoundError"


async def test_a_call_without_a_trace_begins_one(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    """Not one of the moment in which the service was started."""
    service = recorded.instrument(
        DocumentService(MemoryDocumentStore(), nats_url, queue_group=bucket)
    )
    with recorded.tracers.get_tracer("test").start_as_current_span("start"):
        await service.start()
    async with RemoteDocumentStore.from_conn_string(nats_url) as plain:
        with pytest.raises(DocumentNotFoundError):
            await plain.get("my_app", "cp", "missing")
    await service.stop()
    assert parent_of(recorded.span("jskv.v1/get")) is None


async def test_headers_of_a_trace_are_not_stored(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    async with recorded.instrument(saved(nats_url, bucket)) as saver:
        await saver.aput(THREAD, checkpoint(), {}, {})
        store: Any = saver.store
        client = store._bucket._requests.client
        message = await client.jetstream().get_last_msg(f"KV_{bucket}", "$KV.*.cp.>")
    assert not {name.lower() for name in message.headers or {}} & {"traceparent"}


async def test_a_cancelled_call_ends_its_span(
    recorded: Recorded, nats_url: str, bucket: str
) -> None:
    async with recorded.instrument(saved(nats_url, bucket)) as saver:
        await saver.aget_tuple(THREAD)
        call = asyncio.create_task(saver.aput(THREAD, checkpoint(), {}, {}))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert details(recorded.span("put"))["error.type"] == "CancelledError"


async def test_it_is_one_object_that_is_recorded(recorded: Recorded) -> None:
    plain = DocumentCheckpointSaver(MemoryDocumentStore())
    saver = recorded.instrument(DocumentCheckpointSaver(MemoryDocumentStore()))
    assert recorded.instrument(saver) is saver
    await plain.aput(THREAD, checkpoint(), {}, {})
    assert recorded.exporter.get_finished_spans() == ()
    assert "_telemetry" not in vars(plain)
    await copy.copy(saver).aput(THREAD, checkpoint(), {}, {})
    recorded.span("put")
    assert type(saver).__name__ == "DocumentCheckpointSaver"
    assert isinstance(saver, DocumentCheckpointSaver)


def test_other_things_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="not int"):
        instrument(1)


@pytest.mark.parametrize("missing", [True, False])
def test_nothing_of_it_is_loaded_unasked(missing: bool) -> None:
    code = (
        "import sys\n"
        f"if {missing}: sys.modules['opentelemetry'] = None\n"
        "import jskv_saver, jskv_saver.agent_server\n"
        "jskv_saver.JetStreamSaver; jskv_saver.DocumentService\n"
        "assert not any(sys.modules.get(name) for name in sys.modules\n"
        "               if name.startswith(('opentelemetry', 'jskv_saver.otel')))\n"
        "import jskv_saver.otel"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) is missing
    assert ('pip install "jskv-saver[otel]"' in done.stderr) is missing
