"""The composition root: the one place that names concrete adapters."""

from __future__ import annotations

from typing import Any, Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.adapters.jetstream.store import JetStreamDocumentStore
from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.checkpoint.saver import DocumentCheckpointSaver
from jskv_saver.checkpoint.versions import GraphVersion
from jskv_saver.checkpoint.writer import ConflictPolicy


class JetStreamSaver(DocumentCheckpointSaver):
    """A LangGraph checkpoint saver whose state is in a JetStream KV bucket alone.

    `JetStreamSaver(nc)` uses a nats-py client that is connected already, and leaves it
    open; `JetStreamSaver.from_conn_string(url)` makes a connection of its own.
    """

    def __init__(
        self,
        store: Any,
        *,
        namespace: str = "default",
        agent_id: str = "default",
        serde: SerializerProtocol | None = None,
        on_conflict: ConflictPolicy = "fork",
        graph_version: str | GraphVersion | None = None,
        encryption: Encryption | None = None,
        bucket: str = "jskv",
        close_store: bool = False,
        **options: Any,
    ) -> None:
        """Make a saver. Nothing is sent before its first call.

        Args:
            store: A `JetStreamDocumentStore`, or a connected nats-py client.
            namespace: The owner: a module, an application.
            agent_id: A stable name of the graph.
            serde: The serialiser; LangGraph's default if None.
            on_conflict: As for `DocumentCheckpointSaver`.
            graph_version: As for `DocumentCheckpointSaver`.
            encryption: As for `DocumentCheckpointSaver`.
            bucket: The bucket, where a client is given.
            close_store: Close the store when the saver is closed.
            **options: Options of the bucket, where a client is given; see
                `JetStreamDocumentStore`.
        """
        if not isinstance(store, JetStreamDocumentStore):
            store = JetStreamDocumentStore(store, bucket=bucket, **options)
            close_store = True
        super().__init__(
            store,
            namespace=namespace,
            agent_id=agent_id,
            serde=serde,
            on_conflict=on_conflict,
            graph_version=graph_version,
            encryption=encryption,
            close_store=close_store,
        )

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        namespace: str = "default",
        agent_id: str = "default",
        serde: SerializerProtocol | None = None,
        on_conflict: ConflictPolicy = "fork",
        graph_version: str | GraphVersion | None = None,
        encryption: Encryption | None = None,
        bucket: str = "jskv",
        **options: Any,
    ) -> Self:
        """A saver with a connection of its own, made on first use.

        Args:
            conn_string: The server's URL, e.g. `nats://localhost:4222`, or `tls://…`
                for one with TLS; several with commas. None: as the environment and
                the NATS context say, else localhost:4222.
            namespace: The owner: a module, an application.
            agent_id: A stable name of the graph.
            serde: The serialiser; LangGraph's default if None.
            on_conflict: As for `DocumentCheckpointSaver`.
            graph_version: As for `DocumentCheckpointSaver`.
            encryption: As for `DocumentCheckpointSaver`.
            bucket: The bucket; made on first use where it does not exist.
            **options: Options of the connection and the bucket; see
                `JetStreamDocumentStore.from_conn_string`.

        Returns:
            A saver that is not connected yet: use it as it is, or enter it with
            `with` or `async with`, which closes it at the end.

        Raises:
            InvalidRequestError: The URL, or an option, is none; the message says what
                is legal.
        """
        store = JetStreamDocumentStore.from_conn_string(
            conn_string, bucket=bucket, **options
        )
        return cls(
            store,
            namespace=namespace,
            agent_id=agent_id,
            serde=serde,
            on_conflict=on_conflict,
            graph_version=graph_version,
            encryption=encryption,
            close_store=True,
        )
