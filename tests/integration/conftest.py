from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from nats.aio.client import Client
from tests.integration.commands import Result, Run

from jskv_saver import JetStreamDocumentStore, JetStreamSaver
from jskv_saver.__main__ import main
from jskv_saver.adapters.jetstream.bucket import Bucket


class State(TypedDict):
    log: Annotated[list[str], add]


@pytest.fixture
def run(
    nats_url: str,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    monkeypatch.setenv("NATS_URL", nats_url)
    # There is no terminal, whatever runs the tests.
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args: str, bucket: str = bucket) -> Result:
        monkeypatch.setattr(sys, "argv", ["jskv", *args, "--bucket", bucket])
        code = 0
        try:
            main()
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else 1
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def fill(nats_url: str, bucket: str) -> Callable[..., None]:
    """Run a graph up to its interrupt, or put one checkpoint with given values."""

    async def ran(thread: str, resume: bool, **saver: Any) -> None:
        async with JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, **saver
        ) as keeper:
            builder = StateGraph(State)
            builder.add_node("begin", lambda _: {"log": ["begun " + "x" * 900]})
            builder.add_node("ask", lambda _: {"log": [interrupt("really?")]})
            builder.add_edge(START, "begin")
            builder.add_edge("begin", "ask")
            builder.add_edge("ask", END)
            graph = builder.compile(checkpointer=keeper)
            config: Any = {"configurable": {"thread_id": thread}}
            await graph.ainvoke({"log": ["input"]}, config)
            if resume:
                await graph.ainvoke(Command(resume="yes"), config)

    async def put(thread: str, values: dict[str, Any], ns: str, **saver: Any) -> None:
        async with JetStreamSaver.from_conn_string(
            nats_url, bucket=bucket, **saver
        ) as keeper:
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = values
            checkpoint["channel_versions"] = dict.fromkeys(values, 1)
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
            await keeper.aput(
                config,
                checkpoint,
                {"source": "loop", "step": 1},
                dict.fromkeys(values, 1),
            )

    def fill(
        thread: str,
        *,
        resume: bool = False,
        values: dict[str, Any] | None = None,
        ns: str = "",
        **saver: Any,
    ) -> None:
        if values is None:
            asyncio.run(ran(thread, resume, **saver))
        else:
            asyncio.run(put(thread, values, ns, **saver))

    return fill


@pytest.fixture
async def store(nats_url: str, bucket: str) -> AsyncIterator[JetStreamDocumentStore]:
    async with JetStreamDocumentStore.from_conn_string(
        nats_url, bucket=bucket
    ) as opened:
        yield opened


@pytest.fixture
async def kv(client: Client, bucket: str) -> AsyncIterator[Bucket]:
    kv = Bucket(client, bucket)
    yield kv
    await kv.close()
    await client.jetstream().delete_stream(f"KV_{bucket}")
