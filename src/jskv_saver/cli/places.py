"""Savers for what a command finds in a bucket: one for each namespace and agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver import DocumentCheckpointSaver, JetStreamDocumentStore
from jskv_saver.checkpoint.encryption import encryption_of_environment
from jskv_saver.checkpoint.envelope import is_sealed
from jskv_saver.checkpoint.inspect import ThreadRef, find_thread
from jskv_saver.checkpoint.layout import RECORDS
from jskv_saver.document.model import path_of
from jskv_saver.document.names import RESERVED_COLLECTIONS
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

T = TypeVar("T")


class Untouched(SerializerProtocol):
    """A serialiser for what is serialised: a value is its type and its bytes."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The type and the bytes."""
        kind, content = obj
        return kind, content

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The type and the bytes."""
        return tuple(data)


@dataclass(slots=True)
class Places:
    """An open bucket, and the savers of what is in it.

    Attributes:
        store: The bucket.
        namespaces: The owners to look at.
        agent: The agent; None: all.
    """

    store: JetStreamDocumentStore
    namespaces: Sequence[str]
    agent: str | None
    _savers: dict[tuple[str, str], DocumentCheckpointSaver] = field(
        default_factory=dict
    )

    async def saver(self, namespace: str, agent: str) -> DocumentCheckpointSaver:
        """The saver of a namespace and agent; encrypting where what is there is so."""
        key = namespace, agent
        if key not in self._savers:
            encryption = encryption_of_environment()
            if encryption is not None and not await self._is_sealed(namespace, agent):
                encryption = None
            self._savers[key] = DocumentCheckpointSaver(
                self.store,
                namespace=namespace,
                agent_id=agent,
                serde=Untouched(),
                encryption=encryption,
            )
        return self._savers[key]

    async def of(self, ref: ThreadRef) -> DocumentCheckpointSaver:
        """The saver of a thread."""
        return await self.saver(ref.namespace, ref.agent)

    async def find(self, threads: Sequence[str]) -> list[ThreadRef]:
        """The threads with some ids, each once; one that is not there is an error."""
        found = [
            await find_thread(self.store, self.namespaces, thread, agent=self.agent)
            for thread in dict.fromkeys(threads)
        ]
        return list(dict.fromkeys(found))

    async def everywhere(self) -> list[tuple[str, str]]:
        """All namespaces and agents of which anything is stored, sorted."""
        if self.agent is not None:
            return [(namespace, self.agent) for namespace in self.namespaces]
        found: set[tuple[str, str]] = set()
        for namespace in self.namespaces:
            for name in RESERVED_COLLECTIONS:
                ids = await self.store.ids(namespace, name)
                found |= {(namespace, path_of(id)[0]) for id in ids}
        return sorted(found)

    async def _is_sealed(self, namespace: str, agent: str) -> bool:
        """Whether the newest that an agent has stored is encrypted."""
        try:
            page = await self.store.find(
                namespace,
                RECORDS,
                order_by=("@version", "desc"),
                limit=1,
                within=(agent,),
            )
        except (CorruptDocumentError, UnsupportedFormatError):
            # It cannot be told: whoever has a key in his environment needs it.
            return True
        return not page.items or is_sealed(page.items[0].data)


def in_bucket(
    server: str | None,
    bucket: str,
    namespace: str | None,
    agent: str | None,
    use: Callable[[Places], Awaitable[T]],
) -> T:
    """Open the bucket, which is never made here, and use what is in it."""

    async def opened() -> T:
        async with JetStreamDocumentStore.from_conn_string(
            server, bucket=bucket, create=False
        ) as store:
            namespaces = await store.namespaces() if namespace is None else [namespace]
            return await use(Places(store, namespaces, agent))

    return asyncio.run(opened())
