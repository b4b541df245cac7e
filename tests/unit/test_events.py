from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

import jskv_saver
from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.errors import WriterConflictError

DOCUMENT = Path(__file__).parents[2] / "docs" / "monitoring.md"
NAME = r"jskv\.(?:connection|bucket|saver|lease|watch|service|agent_server)\.\w+"


def test_the_document_lists_every_event_and_no_other() -> None:
    listed = re.findall(rf"^\| `({NAME})` \|", DOCUMENT.read_text(), re.MULTILINE)
    used: set[str] = set()
    for path in Path(jskv_saver.__file__).parent.rglob("*.py"):
        used |= set(re.findall(rf'"({NAME})"', path.read_text()))
    assert len(listed) == len(set(listed))
    assert set(listed) == used


async def test_a_conflict_is_an_event(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryDocumentStore()
    one = DocumentCheckpointSaver(store, on_conflict="raise")
    other = DocumentCheckpointSaver(store)
    thread: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    parent = await one.aput(thread, empty_checkpoint(), {"source": "input"}, {})
    await other.aput(parent, empty_checkpoint(), {"source": "loop"}, {})
    with caplog.at_level(logging.WARNING), pytest.raises(WriterConflictError):
        await one.aput(parent, empty_checkpoint(), {"source": "loop"}, {})
    (record,) = caplog.records
    assert vars(record)["event"] == "jskv.saver.conflict"
    assert record.levelno == logging.WARNING
