"""What docs/security.md says of graphs, run."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from tests.checkpoint.saving import listed

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore


class State(TypedDict, total=False):
    answer: str


def _graph(saver: DocumentCheckpointSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"answer": "yes"})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


async def test_an_audit_record_finds_its_checkpoints_by_the_request() -> None:
    saver = DocumentCheckpointSaver(MemoryDocumentStore())
    graph = _graph(saver)
    thread: Any = {"configurable": {"thread_id": "t"}}
    for request in ("first", "second"):
        await graph.ainvoke(
            {"answer": ""}, {**thread, "metadata": {"request": request}}
        )

    for request in ("first", "second"):
        found = await listed(saver, thread, filter={"request": request})
        assert len(found) == 3
        assert [each.metadata["source"] for each in found] == ["loop", "loop", "input"]
    assert len(await listed(saver, thread)) == 6


async def test_which_configurable_values_are_stored() -> None:
    store = MemoryDocumentStore()
    graph = _graph(DocumentCheckpointSaver(store))
    configurable = {
        "thread_id": "t",
        "__token": "hiddentoken",
        "client": ["hiddenobject"],
        "language": "shownvalue",
    }
    await graph.ainvoke({"answer": ""}, {"configurable": configurable})

    page = await store.find("default", "cp", limit=100)
    raw = b"".join(b"".join(found.data.values()) for found in page.items)
    assert b"hidden" not in raw
    assert b"shownvalue" in raw
