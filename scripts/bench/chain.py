"""Drives one thread the way LangGraph does: ids, versions, parents."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base.id import uuid6
from scripts.bench.peers import AnySaver

_WORDS = "on in the of a state graph agent answer question tool call result and or not "
_WORDS += "message thread channel value node branch memory search weather order item"


class Chain:
    """One thread, and what it must hold."""

    def __init__(self, saver: AnySaver, thread: str) -> None:
        self.saver = saver
        self.thread = thread
        self.values: dict[str, Any] = {}
        self.id: str | None = None
        self.steps = 0
        self._versions: dict[str, Any] = {}
        self._next: tuple[RunnableConfig, Checkpoint, CheckpointMetadata, Any]

    @property
    def latest(self) -> RunnableConfig:
        """Names the thread's latest checkpoint."""
        return at(self.thread)

    @property
    def config(self) -> RunnableConfig:
        """Names the checkpoint that was put last."""
        return at(self.thread, self.id)

    def prepare(self, changed: Mapping[str, Any], **metadata: Any) -> Chain:
        """Make the next checkpoint; nothing of it is timed."""
        self.values = {**self.values, **changed}
        new = {
            channel: self.saver.get_next_version(self._versions.get(channel), None)
            for channel in changed
        }
        seen = dict(self._versions)
        self._versions = {**self._versions, **new}
        config = self.config
        self.id = str(uuid6(clock_seq=self.steps))
        checkpoint = Checkpoint(
            v=4,
            id=self.id,
            ts=datetime.now(UTC).isoformat(),
            channel_values=dict(self.values),
            channel_versions=dict(self._versions),
            versions_seen={"__input__": {}, "agent": seen},
            updated_channels=sorted(changed),
        )
        step = {"source": "loop", "step": self.steps, "parents": {}, **metadata}
        self._next = (config, checkpoint, cast(CheckpointMetadata, step), new)
        self.steps += 1
        return self

    async def put(self) -> None:
        """Put what was prepared."""
        await self.saver.aput(*self._next)

    async def write(self, number: int, value: Any) -> None:
        """Put writes of one of the step's tasks."""
        task = f"{self.id}-{number}"
        writes = [("messages", value), ("branch:to:agent", None)]
        await self.saver.aput_writes(self.config, writes, task)


def at(thread: str, id: str | None = None) -> RunnableConfig:
    """A config: of one checkpoint, or of the latest."""
    configurable = {"thread_id": thread, "checkpoint_ns": ""}
    if id is not None:
        configurable["checkpoint_id"] = id
    return {"configurable": configurable}


class Texts:
    """Messages and texts, the same ones for every saver."""

    def __init__(self, kind: str = "plain") -> None:
        self._rng = random.Random(1)
        self._words = _WORDS.split()
        self._kind = kind

    def text(self, size: int) -> str:
        """So many bytes of words."""
        return " ".join(self._rng.choices(self._words, k=size))[:size]

    def message(self, role: str, size: int = 600) -> Any:
        """A message of a chat: a dict, or one of LangChain's."""
        id, content = self._rng.randbytes(16).hex(), self.text(size)
        if self._kind == "plain":
            return {"id": id, "role": role, "content": content}
        from langchain_core.messages import AIMessage, HumanMessage

        made = HumanMessage if role == "user" else AIMessage
        return made(content=content, id=id)
