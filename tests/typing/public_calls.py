"""Public calls as users write them: mypy reads this file, nothing runs it.

`assert_type` fails where a result has another type, `Any` too. Pytest does not collect
the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, assert_type

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START, StateGraph
from nats.aio.client import Client

from jskv_saver import (
    ANY,
    Admission,
    CollectionSpec,
    Document,
    DocumentCheckpointSaver,
    DocumentService,
    DocumentStore,
    Encryption,
    FieldSpec,
    GraphVersion,
    JetStreamDocumentStore,
    JetStreamSaver,
    LocalServer,
    MemoryDocumentStore,
    Page,
    PruneReport,
    RemoteDocumentStore,
    Retention,
    errors,
)


class State(TypedDict):
    n: int


BUILDER: StateGraph[State, None, State, State] = StateGraph(State)
BUILDER.add_edge(START, "n")
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


async def savers_async(url: str, client: Client) -> None:
    async with JetStreamSaver.from_conn_string(
        url, namespace="app", agent_id="a", bucket="b", replicas=3, token="x"
    ) as saver:
        assert_type(saver, JetStreamSaver)
        await saver.setup()
        graph = BUILDER.compile(checkpointer=saver)
        await graph.ainvoke({"n": 1}, CONFIG)
        assert_type(await saver.aget_tuple(CONFIG), CheckpointTuple | None)
        async for found in saver.alist(CONFIG, filter={"step": 1}, limit=3):
            assert_type(found, CheckpointTuple)
        await saver.adelete_thread("t")
        await saver.adelete_for_runs(["r"])
        await saver.acopy_thread("t", "u")
        await saver.aprune(["t"], strategy="keep_latest")
        report: PruneReport = await saver.aprune(["t"], keep_last=3, older_than=60.0)
        assert_type(report.checkpoints, int)
        assert_type(await saver.aenforce_retention(Retention(idle=3600.0)), PruneReport)
        await saver.apin("t", "audit")
        await saver.aunpin("t")
        assert_type(await saver.apinned(), Mapping[str, Sequence[str]])
        await saver.arepair(["t"])
        assert_type(await saver.aadmit(CONFIG, {"n": 1}, request_id="r"), Admission)
        assert_type(await saver.aadmitted("t", begun=True), Sequence[Admission])
        async with saver.lease("t", ttl=10, wait=0.5) as lease:
            assert_type(lease.holder, str)
            assert_type(lease.lost, bool)
            await lease.acheck()
        await saver.aclose()
    given = JetStreamSaver(client, bucket="b", on_conflict="raise", graph_version="1")
    assert_type(given, JetStreamSaver)
    async with given as entered:
        assert_type(entered, JetStreamSaver)


def savers_sync(url: str) -> None:
    with JetStreamSaver.from_conn_string(url, max_bytes=10**9) as saver:
        assert_type(saver, JetStreamSaver)
        graph = BUILDER.compile(checkpointer=saver)
        graph.invoke({"n": 1}, CONFIG)
        found = saver.get_tuple(CONFIG)
        assert_type(found, CheckpointTuple | None)
        if found is not None:
            assert_type(found.config, RunnableConfig)
            assert_type(
                saver.put(CONFIG, found.checkpoint, found.metadata, {}), RunnableConfig
            )
        for each in saver.list(None, before=CONFIG):
            assert_type(each, CheckpointTuple)
        saver.delete_thread("t")
        saver.delete_for_runs(["r"])
        saver.copy_thread("t", "u")
        saver.prune(["t"])
        saver.repair(["t"])
        assert_type(saver.admit(CONFIG, "x"), Admission)
        assert_type(saver.admitted(), Sequence[Admission])
        with saver.lease("t") as lease:
            lease.check()
        saver.close()


def savers_of_any_store(store: DocumentStore, url: str) -> None:
    saver = DocumentCheckpointSaver(store, namespace="app", agent_id="a")
    as_langgraph_sees_it: BaseCheckpointSaver[Any] = saver
    BUILDER.compile(checkpointer=as_langgraph_sees_it)
    DocumentCheckpointSaver(
        MemoryDocumentStore(), graph_version=GraphVersion("2", accepts=["1"])
    )
    DocumentCheckpointSaver(JetStreamDocumentStore.from_conn_string(url))


def clones(saver: JetStreamSaver) -> None:
    clone = saver.with_allowlist([("shop.model", "Customer")])
    assert_type(clone, BaseCheckpointSaver[Any])
    BUILDER.compile(checkpointer=clone)


async def documents(url: str) -> None:
    async with JetStreamDocumentStore.from_conn_string(url, bucket="b") as store:
        assert_type(store, JetStreamDocumentStore)
        remote = RemoteDocumentStore.from_conn_string(url, namespace="shop")
        either: Sequence[DocumentStore] = [store, MemoryDocumentStore(), remote]
        for each in either:
            await documents_of(each)
        async with DocumentService(store, url, name="docs") as service, remote:
            assert_type(service, DocumentService)
            assert_type(remote, RemoteDocumentStore)
        shop = store.bind("shop")
        assert_type(await shop.get("orders", "1"), Document)
        assert_type(await shop.find("orders", [("status", "eq", "open")]), Page)


async def documents_of(store: DocumentStore) -> None:
    status = FieldSpec("status", "string", indexed=True)
    await store.ensure_collection("shop", CollectionSpec("orders", (status,)))
    assert_type(await store.collections("shop"), Sequence[str])
    put = await store.put("shop", "orders", ("a", "1"), {"total": 1.5, "x": [None]})
    assert_type(put, Document)
    assert_type(put.version, int)
    await store.put("shop", "orders", "1", {}, if_version=put.version)
    page = await store.find(
        "shop", "orders", [("status", "in", ["a", "b"])], limit=10, cursor=None
    )
    assert_type(page, Page)
    assert_type(page.items, tuple[Document, ...])
    assert_type(page.cursor, str | None)
    assert_type(await store.count("shop", "orders"), int)
    found = await store.get_many("shop", [("orders", "1"), ("orders", (ANY, "1"))])
    assert_type(found, Mapping[tuple[str, str | tuple[str, ...]], Document])
    async for each in store.iterate("shop", "orders"):
        assert_type(each, Document)
    await store.delete("shop", "orders", "1")
    await store.drop_collection("shop", "orders")
    await store.close()


def encryption(client: Client, key: bytes) -> None:
    assert_type(Encryption.from_env("KEYS"), Encryption)
    assert_type(Encryption.generate_key(), str)
    keys = Encryption([Encryption.generate_key(), key], accept_plaintext=True)
    assert_type(keys.key_ids, tuple[str, ...])
    Encryption(key)
    JetStreamSaver(client, encryption=keys)
    DocumentCheckpointSaver(MemoryDocumentStore(), encryption=keys)


def servers() -> None:
    with LocalServer("~/agents", port=4222, token="mine", sync_interval="2m") as server:
        assert_type(server, LocalServer)
        assert_type(server.url, str)
        assert_type(server.pid, int)


def failures(error: errors.JskvError) -> None:
    assert_type(error.retryable, bool)
    assert_type(error.code, int)
    if isinstance(error, errors.VersionConflictError):
        assert_type(error.details, dict[str, Any])
