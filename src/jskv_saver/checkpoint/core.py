"""What the saver's two faces share: life cycle, and one coroutine per operation."""

from __future__ import annotations

import copy
from collections.abc import (
    Awaitable,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, Self
from weakref import WeakSet

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver._portal import Portal, running_loop
from jskv_saver.checkpoint.abilities import sealed_store
from jskv_saver.checkpoint.admissions import Admissions
from jskv_saver.checkpoint.arguments import (
    check_serde,
    parse_channels,
    parse_mapping,
)
from jskv_saver.checkpoint.capabilities import expiring
from jskv_saver.checkpoint.config import (
    parse_before,
    parse_ref,
    parse_text,
    parse_thread_id,
)
from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.copier import copy_thread
from jskv_saver.checkpoint.drafts import Draft, draft_of
from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.checkpoint.following import Follower
from jskv_saver.checkpoint.history import ChannelHistory, channel_histories
from jskv_saver.checkpoint.holding import Holding
from jskv_saver.checkpoint.layout import (
    Scope,
)
from jskv_saver.checkpoint.leases import Lease, Leases, lease_of
from jskv_saver.checkpoint.listing import Listing
from jskv_saver.checkpoint.matching import matches
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.pruner import Pruner
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.retention import Keeper
from jskv_saver.checkpoint.tuples import tuple_of
from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.versions import GraphVersion, graph_version_of
from jskv_saver.checkpoint.writer import ConflictPolicy, Writer
from jskv_saver.checkpoint.writes import PendingWrite, serialise_writes
from jskv_saver.document.names import check_namespace
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import InvalidRequestError, StoreClosedError


class SaverCore(BaseCheckpointSaver[Any]):
    """A saver without its methods."""

    def __init__(
        self,
        store: DocumentStore,
        *,
        namespace: str = "default",
        agent_id: str = "default",
        serde: SerializerProtocol | None = None,
        on_conflict: ConflictPolicy = "fork",
        graph_version: str | GraphVersion | None = None,
        encryption: Encryption | None = None,
        close_store: bool = False,
    ) -> None:
        """Make a saver. Nothing is sent before its first call.

        Args:
            store: Where the documents go.
            namespace: The owner: a module, an application.
            agent_id: A stable name of the graph.
            serde: The serialiser; LangGraph's default if None.
            on_conflict: What a step does whose thread another run has moved on since
                this saver read it: "fork" stores it beside, as LangGraph's own
                savers do; "raise" raises `WriterConflictError`.
            graph_version: Stored with each checkpoint, as its metadata
                `graph_version`; where a checkpoint of another version is read to go on
                from it, `GraphVersionError` is raised before anything runs.
                `GraphVersion(...)` says which others are accepted, or to warn only.
            encryption: Encrypts all that is stored; what is not encrypted is refused.
            close_store: Close the store when the saver is closed.

        Raises:
            InvalidRequestError: `namespace`, `agent_id`, `serde`, `on_conflict`,
                `graph_version` or `encryption` is not one.
        """
        check_serde(serde)
        super().__init__(serde=serde)
        for name, value in (("namespace", namespace), ("agent_id", agent_id)):
            if not isinstance(value, str) or not value:
                raise InvalidRequestError(f"{name} must be a non-empty str: {value!r}")
            parse_text(name, value)
        check_namespace(namespace)
        if not isinstance(store, DocumentStore):
            raise InvalidRequestError(
                f"store must be a document store, not {type(store).__name__}; for an "
                "address use JetStreamSaver.from_conn_string(...)"
            )
        if on_conflict not in ("fork", "raise"):
            raise InvalidRequestError(
                f"on_conflict must be 'fork' or 'raise', not {on_conflict!r}"
            )
        self.store = store
        self.namespace = namespace
        self.agent_id = agent_id
        self._on_conflict = on_conflict
        self._graph_version = graph_version_of(graph_version)
        self._close_store = close_store
        # A store that is tied to an event loop says so, and is served there.
        portal = getattr(store, "portal", None)
        self._portal = portal.child() if isinstance(portal, Portal) else Portal()
        held = sealed_store(store, encryption)
        self._partition = Partition(held, namespace, agent_id)
        self._reader = Reader(self._partition)
        self._writer = Writer(self._partition, on_conflict)
        self._pruner = Pruner(self._partition)
        self._keeper = Keeper(self._partition)
        self._admissions = Admissions(self._partition)
        self._followers: WeakSet[Follower] = WeakSet()
        self._leases = Leases(self._partition)

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # State is in the store, which a copy shares, deep or not.
        return copy.copy(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} holds a connection and cannot be pickled: make "
            "one in the process that needs it, with the same arguments"
        )

    async def __aenter__(self) -> Self:
        self._portal.bind()
        try:
            await self._portal.arun(self._setup)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        try:
            self._portal.run(self._setup)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def setup(self) -> Awaitable[None]:
        """Connect, and make what the store needs. Idempotent; the first use does it.

        Without a running event loop it blocks until that is done; with one, await it.
        """
        if running_loop() is None:
            self._portal.run(self._setup)
            return _Done()
        return self.asetup()

    async def asetup(self) -> None:
        """As `setup`, to be awaited."""
        await self._portal.arun(self._setup)

    async def _setup(self) -> None:
        setup = getattr(self.store, "setup", None)
        if setup is not None:
            await setup()

    def close(self) -> None:
        """End the saver, and its store if it is its own. Idempotent."""
        if not (self._portal.closed or self._portal.lost):
            with self._closed_by_others():
                self._portal.run(self._release)
        self._close_portals()

    async def aclose(self) -> None:
        """As `close`, to be awaited."""
        if not (self._portal.closed or self._portal.lost):
            with self._closed_by_others():
                await self._portal.arun(self._release)
        self._close_portals()

    @contextmanager
    def _closed_by_others(self) -> Iterator[None]:
        """Another call may close it at the same time, and be first."""
        try:
            yield
        except StoreClosedError:
            if not self._portal.closed:
                raise

    def _close_portals(self) -> None:
        self._portal.close()
        portal = getattr(self.store, "portal", None)
        if self._close_store and isinstance(portal, Portal):
            portal.close()

    def lease(self, thread_id: str, *, ttl: float = 30.0, wait: float = 60.0) -> Lease:
        """One holder for a thread, in a block: `async with saver.lease(…)`, or `with`.

        Whoever takes the lease waits for him who has it. It is renewed while the block
        lasts, and expires when its process dies; only the server's clock counts. What
        is put to the thread in the block is refused once another one has taken it.
        Who takes no lease is not kept out.

        Args:
            thread_id: The thread.
            ttl: Seconds that it lasts without a renewal, 1 at least.
            wait: Seconds to wait for another holder at most; 0: not at all.

        Returns:
            What is to be entered, once. Nothing is sent before.

        Raises:
            InvalidRequestError: An argument is none, or nothing expires in this store.
            LeaseHeldError: On entering: another one holds it.
            LeaseLostError: On leaving: it was lost in the block.
        """
        thread = parse_thread_id(thread_id)
        expiring(self.store)
        return lease_of(self._portal, self._leases, thread, ttl, wait)

    async def _release(self) -> None:
        for follower in list(self._followers):
            await follower.close()
        await self._leases.close()
        if self._close_store:
            # A store on the same portal must leave that to us: we still run on it.
            await getattr(self.store, "release", self.store.close)()

    def _draft(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Draft:
        if self._graph_version is not None:
            metadata = self._graph_version.marked(metadata)
        return draft_of(
            parse_ref(config),
            self.agent_id,
            self.serde,
            self._partition.heads.base,
            config,
            checkpoint,
            metadata,
            new_versions,
        )

    def _writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> tuple[Scope, str, str, list[PendingWrite], Holding | None]:
        ref = parse_ref(config)
        if ref.id is None:
            raise InvalidRequestError(
                "put_writes needs config['configurable']['checkpoint_id']: the "
                "checkpoint that the writes belong to"
            )
        scope = Scope(self.agent_id, ref.thread, ref.namespace)
        task_id = parse_text("task_id", task_id)
        new = serialise_writes(writes, task_id, task_path, self.serde)
        return scope, ref.id, task_id, new, self._leases.current(scope.thread)

    async def _read(self, config: RunnableConfig) -> Loaded | None:
        ref = parse_ref(config)
        scope = Scope(self.agent_id, ref.thread, ref.namespace)
        if ref.id is None:
            return await self._reader.latest(scope)
        if self._on_conflict == "fork" or scope.ns:
            return await self._reader.by_id(scope, ref.id)
        # A step from here is in conflict if the head is another one by then.
        head = await self._partition.read_head(scope)
        loaded = await self._reader.by_id(scope, ref.id)
        if loaded is not None and head.known:
            self._partition.heads.met(scope, ref.id, head.known[0])
        return loaded

    def _listing(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Listing:
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise InvalidRequestError(
                f"limit must be a whole number from 0, or None for all: {limit!r}"
            )
        ref = parse_ref(config) if config else None
        serde, wanted = self.serde, dict(parse_mapping("filter", filter or {}))

        def accept(metadata: Typed) -> bool:
            return matches(serde.loads_typed(metadata), wanted)

        return Listing(
            self._reader,
            ref.thread if ref else None,
            ref.ns if ref else None,
            ref.id if ref else None,
            parse_before(before),
            limit,
            accept if wanted else None,
        )

    async def _copy(self, source: str, target: str) -> None:
        thread = parse_thread_id(target)
        await copy_thread(
            self._partition,
            self._writer,
            self.serde,
            parse_thread_id(source),
            thread,
            self._leases.current(thread),
        )

    async def _history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, ChannelHistory]:
        if not (channels := parse_channels(channels or ())):
            return {}
        ref = parse_ref(config)
        scope = Scope(self.agent_id, ref.thread, ref.namespace)
        return await channel_histories(self._partition, scope, ref.id, channels)

    def _given(self, loaded: Loaded | None) -> CheckpointTuple | None:
        if loaded is None:
            return None
        if self._graph_version is not None:
            # First of all: another version's values may not even be readable.
            self._graph_version.check(
                self.serde.loads_typed(loaded.metadata),
                loaded.scope.thread,
                loaded.record.id,
            )
        return tuple_of(loaded, self.serde)


class _Done:
    """Nothing is left to await."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield
