"""A saver that is used through its blocking methods alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory
from tests.checkpoint.conformance import Forwarding

from jskv_saver.document.port import DocumentStore


class Blocking(Forwarding):
    """The asynchronous face of a saver's blocking one, each call in a thread."""

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._saver.__enter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._saver.__exit__, None, None, None)

    @property
    def store(self) -> DocumentStore:
        """The store, which any loop may use."""
        return self._saver.store

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(
            self._saver.get_delta_channel_history, config=config, channels=channels
        )
