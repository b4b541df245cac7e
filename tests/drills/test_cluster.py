"""The leader of a bucket of three replicas is killed while twenty graphs run."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import nats
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.graph import END, START, StateGraph
from tests.attacks.writers import AWAY
from tests.checkpoint.saving import at, get, listed
from tests.patience import PATIENCE, patiently, until

from jskv_saver import JetStreamSaver, LocalServer

THREADS = [f"thread {n}" for n in range(20)]
NODES = [f"n{n}" for n in range(6)]


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Recording(JetStreamSaver):
    """Knows which checkpoints were acknowledged, and reads each of them elsewhere."""

    acknowledged: dict[str, list[str]]
    elsewhere: JetStreamSaver
    behind: list[str]

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = await super().aput(config, checkpoint, metadata, new_versions)
        thread, id = config["configurable"]["thread_id"], checkpoint["id"]
        self.acknowledged.setdefault(thread, []).append(id)
        latest = await patiently(lambda: self.elsewhere.aget_tuple(at(thread=thread)))
        if latest is None or latest.checkpoint["id"] < id:
            self.behind.append(id)
        return put


def _graph(saver: JetStreamSaver) -> Any:
    def node(name: str) -> Any:
        async def run(_: State) -> dict[str, list[str]]:
            return {"log": [name]}

        return run

    builder = StateGraph(State)
    for name in NODES:
        builder.add_node(name, node(name))
    for before, after in zip([START, *NODES], [*NODES, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=saver)


async def _leader(
    servers: Sequence[LocalServer], bucket: str, *, but: LocalServer | None = None
) -> LocalServer:
    """The server that leads the bucket, once one does that is not a certain other.

    Args:
        servers: Those that run.
        bucket: The bucket.
        but: The one that led it.
    """
    clients = {server: await nats.connect(server.url) for server in servers}
    names = {
        str(client._server_info["server_name"]): server
        for server, client in clients.items()
    }
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                for client in clients.values():
                    try:
                        jetstream = client.jetstream(timeout=1)
                        info = await jetstream.stream_info(f"KV_{bucket}")
                    except nats.errors.Error:
                        continue
                    leader = names.get(str(info.cluster and info.cluster.leader))
                    if leader is not None and leader is not but:
                        return leader
                await asyncio.sleep(0.05)
    finally:
        for client in clients.values():
            await client.close()


# nats-py does not close a connection that is cut while it introduces itself.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(240)
async def test_graphs_end_after_at_most_one_more_invoke_when_the_leader_is_killed(
    cluster: Sequence[LocalServer], bucket: str
) -> None:
    urls = ",".join(server.url for server in cluster)
    options: dict[str, Any] = {
        "bucket": bucket,
        "replicas": 3,
        "timeout": 5,
        "reconnect_time_wait": 0.05,
    }
    async with (
        Recording.from_conn_string(urls, **options) as saver,
        JetStreamSaver.from_conn_string(
            ",".join(server.url for server in reversed(cluster)), **options
        ) as other,
    ):
        saver.acknowledged, saver.behind, saver.elsewhere = {}, [], other
        graph = _graph(saver)
        invoked: dict[str, int] = dict.fromkeys(THREADS, 0)
        back = asyncio.Event()

        async def run(thread: str) -> None:
            config: RunnableConfig = {"configurable": {"thread_id": thread}}
            given: Any = {"log": ["in"]}
            while True:
                invoked[thread] += 1
                try:
                    await graph.ainvoke(given, config, durability="sync")
                except AWAY:
                    # Whoever calls again does so when the cluster has a leader again.
                    await back.wait()
                    found = await patiently(lambda: saver.aget_tuple(config))
                    given = None if found else {"log": ["in"]}
                else:
                    return

        running = asyncio.gather(*map(run, THREADS))

        def count() -> int:
            return sum(map(len, saver.acknowledged.values()))

        leader = await _leader(cluster, bucket)
        await until(lambda: running.done() or count() > 2 * len(THREADS))
        assert not running.done()
        await asyncio.to_thread(leader.kill)
        try:
            rest = [each for each in cluster if each is not leader]
            await _leader(rest, bucket, but=leader)
        finally:
            await asyncio.to_thread(leader.start)
        back.set()
        await running
        assert max(invoked.values()) <= 2
        assert saver.behind == []
        for thread in THREADS:
            rows = await listed(other, at(thread=thread))
            found = [row.checkpoint["id"] for row in rows]
            assert set(saver.acknowledged[thread]) <= set(found)
            last = await get(other, thread=thread)
            assert last.checkpoint["channel_values"]["log"] == ["in", *NODES]
            assert last.checkpoint["id"] == saver.acknowledged[thread][-1]
