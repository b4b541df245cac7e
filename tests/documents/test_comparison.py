"""What the comparison says of other savers is so in the installed ones."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tests.documents.test_references import rows

from jskv_saver import JetStreamSaver
from jskv_saver.errors import DivergentCheckpointError

Saver = BaseCheckpointSaver[Any]
BLOCKING: dict[str, type[Saver]] = {
    "jskv-saver": JetStreamSaver,
    "`InMemorySaver`": InMemorySaver,
    "SQLite": SqliteSaver,
    "PostgreSQL": PostgresSaver,
}
ASYNC: dict[str, type[Saver]] = {
    **BLOCKING,
    "SQLite": AsyncSqliteSaver,
    "PostgreSQL": AsyncPostgresSaver,
}


def table() -> dict[str, dict[str, str]]:
    """The cells by row and column."""
    head, _, *lines = rows("comparison.md")
    return {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}


def has(kind: type[Saver], name: str) -> bool:
    return getattr(kind, name) is not getattr(BaseCheckpointSaver, name)


@pytest.mark.parametrize("name", ["delete_thread", "prune"])
def test_who_implements_what(name: str) -> None:
    row = table()[f"`{name}`"]
    for column, kind in BLOCKING.items():
        assert has(kind, name) is not row[column].startswith("no"), column
        assert has(ASYNC[column], f"a{name}") is has(kind, name), column


@pytest.mark.parametrize("name", ["copy_thread", "delete_for_runs"])
def test_who_copies_and_rolls_back(name: str) -> None:
    row = table()["`copy_thread`, `delete_for_runs`"]
    for column, kind in BLOCKING.items():
        assert has(kind, name) is row[column].startswith("yes"), column
        assert has(ASYNC[column], f"a{name}") is row[column].startswith("yes"), column


def test_whose_object_has_both_kinds_of_calls() -> None:
    row = table()["blocking and `async` calls in one object"]
    for column, kind in BLOCKING.items():
        one = kind is ASYNC[column]
        assert one is row[column].startswith("yes"), column
        assert has(kind, "put")
    assert not has(PostgresSaver, "aget_tuple")


async def test_the_blocking_class_of_sqlite_refuses_to_be_awaited() -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        with pytest.raises(NotImplementedError):
            await saver.aget_tuple({"configurable": {"thread_id": "t"}})


@contextmanager
def savers(nats_url: str, bucket: str, path: Path) -> Iterator[dict[str, Saver]]:
    with (
        JetStreamSaver.from_conn_string(nats_url, bucket=bucket) as ours,
        SqliteSaver.from_conn_string(str(path / "db")) as sqlite,
    ):
        yield {
            "jskv-saver": ours,
            "`InMemorySaver`": InMemorySaver(),
            "SQLite": sqlite,
        }


def test_who_replaces_what_has_the_same_id(
    nats_url: str, bucket: str, tmp_path: Path
) -> None:
    row = table()["other content under a stored id"]
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = empty_checkpoint()
    first["channel_values"] = {"a": 1}
    first["channel_versions"] = {"a": 1}
    second = first.copy()
    second["channel_values"] = {"a": 2}
    with savers(nats_url, bucket, tmp_path) as each:
        for column, saver in each.items():
            saver.put(config, first, {}, {"a": 1})
            if row[column].startswith("refused"):
                with pytest.raises(DivergentCheckpointError):
                    saver.put(config, second, {}, {"a": 1})
            else:
                assert row[column].startswith("replaces")
                saver.put(config, second, {}, {"a": 1})
                found = saver.get_tuple(config)
                assert found is not None
                assert found.checkpoint["channel_values"] == {"a": 2}
    assert row["PostgreSQL"].startswith("replaces")
    assert "DO UPDATE SET" in PostgresSaver.UPSERT_CHECKPOINTS_SQL


def test_who_has_a_store() -> None:
    row = table()["a `BaseStore` for long-term memory, with vectors"]
    for column, module, name in [
        ("`InMemorySaver`", "langgraph.store.memory", "InMemoryStore"),
        ("SQLite", "langgraph.store.sqlite", "SqliteStore"),
        ("PostgreSQL", "langgraph.store.postgres", "PostgresStore"),
    ]:
        assert row[column].startswith("yes")
        assert getattr(importlib.import_module(module), name)
