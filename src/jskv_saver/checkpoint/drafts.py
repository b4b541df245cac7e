"""A checkpoint that is about to be stored: serialised, then laid out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.config import CheckpointRef, parse_id, parse_text
from jskv_saver.checkpoint.increments import Fresh, Run, plan
from jskv_saver.checkpoint.layout import (
    Entry,
    Record,
    Scope,
    Typed,
    digest_of,
    greatest,
    join,
)
from jskv_saver.errors import InvalidRequestError

INLINE = 512
"""Bytes up to which a value is kept in the record itself."""
INLINE_RECORD = 32_768
"""Bytes up to which a checkpoint's skeleton and its metadata are."""
INLINE_TOTAL = 131_072
"""Bytes above which a record keeps no channel value in itself."""

_BYTES_PER_RUN = 40
"""What a run costs in the record that names it, at most about."""
_APART = ("channel_values", "channel_versions")


@dataclass(frozen=True, slots=True)
class Base:
    """A stored checkpoint and its bytes: what a child may refer to.

    Attributes:
        record: The stored record.
        values: Those of its channel values that are at hand, exactly as stored.
    """

    record: Record
    values: Mapping[str, Typed]

    @property
    def size(self) -> int:
        """Bytes that it holds in memory, about."""
        return len(self.record.inline) + sum(
            len(v.content) for v in self.values.values()
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """A checkpoint that is about to be stored, serialised.

    Attributes:
        scope: Where it goes.
        id: Its id.
        parent: The id of its parent, or None.
        run: The run that writes it, or None.
        source: Of its metadata: `loop`, `input`, `update`, `fork`, or None.
        deltas: Channels whose value only the history holds.
        format: The checkpoint's own format, its `v`.
        skeleton: The checkpoint without channel values and versions.
        metadata: Its metadata, the config's merged in.
        versions: Its channel versions.
        changed: Channels that are new in this checkpoint.
        values: All channel values.
        is_copy: Whether it is one of another thread, and no less whole than that.
    """

    scope: Scope
    id: str
    parent: str | None
    run: str | None
    source: str | None
    deltas: tuple[str, ...]
    format: int
    skeleton: Typed
    metadata: Typed
    versions: ChannelVersions
    changed: frozenset[str]
    values: Mapping[str, Typed]
    is_copy: bool = False

    def carried(self, base: Base) -> Iterator[str]:
        """The channels whose value is that of the parent, by version."""
        for channel in self.values:
            if (
                channel not in self.changed
                and channel in base.record.channels
                and channel in self.versions
                and base.record.versions.get(channel) == self.versions[channel]
            ):
                yield channel


def draft_of(
    ref: CheckpointRef,
    agent: str,
    serde: SerializerProtocol,
    base: Callable[[Scope, str], Base | None],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Draft:
    """Serialise a checkpoint. Nothing of the caller's is referred to afterwards.

    Args:
        ref: Where it goes; its id is the parent's.
        agent: The agent.
        serde: The serialiser.
        base: Gives the parent, where its bytes are at hand: unchanged channels are
            then not serialised again.
        config: As given to `put`.
        checkpoint: As given to `put`.
        metadata: As given to `put`.
        new_versions: As given to `put`.

    Raises:
        InvalidRequestError: The checkpoint has no id.
    """
    id = checkpoint.get("id")
    if not isinstance(id, str) or not id:
        raise InvalidRequestError(
            "the checkpoint has no id; it must be a non-empty str"
        )
    parse_text("checkpoint_id", id)
    scope = Scope(agent, ref.thread, ref.namespace)
    skeleton = {k: v for k, v in checkpoint.items() if k not in _APART}
    versions = _versions(checkpoint.get("channel_versions") or {})
    merged = get_checkpoint_metadata(config, metadata)
    run, source = merged.get("run_id"), merged.get("source")
    values = checkpoint.get("channel_values") or {}
    counters = merged.get("counters_since_delta_snapshot") or {}
    at_hand = base(scope, ref.id) if ref.id else None
    stored: dict[str, Typed] = {}
    for channel, value in values.items():
        if (
            at_hand is not None
            and channel not in new_versions
            and channel in versions
            and at_hand.record.versions.get(channel) == versions[channel]
            and channel in at_hand.values
        ):
            stored[channel] = at_hand.values[channel]
        else:
            stored[channel] = Typed(*serde.dumps_typed(value))
    return Draft(
        scope=scope,
        id=str(id),
        parent=ref.id,
        run=_run_id(run),
        source=source if isinstance(source, str) else None,
        deltas=tuple(sorted(name for name in counters if name not in values)),
        format=checkpoint.get("v", 1),
        skeleton=Typed(*serde.dumps_typed(skeleton)),
        metadata=Typed(*serde.dumps_typed(merged)),
        versions=versions,
        changed=frozenset(new_versions),
        values=stored,
    )


def _versions(versions: ChannelVersions) -> ChannelVersions:
    for channel, version in versions.items():
        if type(version) not in (int, float, str):
            raise InvalidRequestError(
                f"the version of channel {channel!r} must be int, float or str, not "
                f"{type(version).__name__}"
            )
    return dict(versions)


def _run_id(run: object) -> str | None:
    """A run's id as text, as `delete_for_runs` names it; None where it is no id."""
    try:
        return parse_id("run_id", run) or None
    except InvalidRequestError:
        return None


@dataclass(slots=True)
class _Packer:
    """Gathers new bytes: small ones together in one part, large ones in their own."""

    part_size: int
    parts: dict[bytes, bytes] = field(default_factory=dict)
    inline: bytearray = field(default_factory=bytearray)
    _small: bytearray = field(default_factory=bytearray)
    _waiting: list[tuple[list[Run], int, int, int]] = field(default_factory=list)

    def keep(self, content: bytes) -> Run:
        run = Run(b"", len(self.inline), len(content))
        self.inline += content
        return run

    def add(self, runs: list[Run], content: bytes) -> None:
        """Append to `runs` where `content` will be."""
        if len(content) >= self.part_size // 8:
            for at in range(0, len(content), self.part_size):
                piece = content[at : at + self.part_size]
                name = digest_of(piece)
                self.parts[name] = piece
                runs.append(Run(name, 0, len(piece)))
            return
        if len(self._small) + len(content) > self.part_size:
            self.close()
        # The part's name is known when it is full.
        self._waiting.append((runs, len(runs), len(self._small), len(content)))
        runs.append(Run(b"", 0, 0))
        self._small += content

    def close(self) -> None:
        """Name the part that is being gathered."""
        if not self._small:
            return
        content = bytes(self._small)
        name = digest_of(content)
        self.parts[name] = content
        for runs, at, offset, length in self._waiting:
            runs[at] = Run(name, offset, length)
        self._small.clear()
        self._waiting.clear()


def lay_out(
    draft: Draft, base: Base | None, known: tuple[str, ...], part_size: int
) -> tuple[Base, dict[bytes, bytes]]:
    """Decide how a checkpoint is stored.

    Args:
        draft: The checkpoint.
        base: Its parent, whose parts are known to be stored; None: store in full.
        known: The greatest ids of the namespace.
        part_size: The greatest size of a part, in bytes.

    Returns:
        What its children may refer to, with the record itself, and the parts that
        must be stored before it, by digest.
    """
    packer = _Packer(part_size)
    carried = set(draft.carried(base)) if base else set()
    inline = sum(
        len(v.content) for v in draft.values.values() if len(v.content) <= INLINE
    )
    threshold = INLINE if inline <= min(INLINE_TOTAL, part_size // 4) else 0
    record_threshold = min(INLINE_RECORD, part_size // 8)
    open_entries: dict[str, tuple[str, list[Run]]] = {}

    def store(name: str, value: Typed, threshold: int, old: Base | None) -> None:
        if len(value.content) <= threshold:
            open_entries[name] = (value.kind, [packer.keep(value.content)])
            return
        runs: list[Run] = []
        open_entries[name] = (value.kind, runs)
        for piece in _pieces(name, value, old):
            if isinstance(piece, Run):
                runs.append(piece)
            else:
                packer.add(runs, value.content[piece.start : piece.end])

    store("s", draft.skeleton, record_threshold, None)
    store("m", draft.metadata, record_threshold, None)
    values: dict[str, Typed] = {}
    for channel, value in draft.values.items():
        name = "c" + channel
        if base is not None and channel in carried:
            entry = base.record.channels[channel]
            if all(run.part for run in entry.runs):
                open_entries[name] = (entry.kind, list(entry.runs))
                # Serialising the same value twice need not give the same bytes.
                if channel in base.values:
                    values[channel] = base.values[channel]
                continue
        store(name, value, threshold, base)
        values[channel] = value
    runs = sum(len(runs) for _, runs in open_entries.values())
    if base is not None and runs * _BYTES_PER_RUN > part_size:
        # To name them all the record would be too large: begin anew.
        return lay_out(draft, None, known, part_size)
    packer.close()
    entries = {
        name: Entry(kind, tuple(runs)) for name, (kind, runs) in open_entries.items()
    }
    record = Record(
        id=draft.id,
        parent=draft.parent,
        known=greatest(known, draft.id),
        run=draft.run,
        deltas=draft.deltas,
        format=draft.format,
        versions=draft.versions,
        skeleton=entries.pop("s"),
        metadata=entries.pop("m"),
        channels={name[1:]: entry for name, entry in entries.items()},
        inline=bytes(packer.inline),
    )
    return Base(record, values), packer.parts


def _pieces(name: str, value: Typed, base: Base | None) -> list[Run | Fresh]:
    channel = name[1:]
    if base is not None and channel in base.values:
        entry = base.record.channels.get(channel)
        old = base.values[channel]
        if entry is not None and entry.length == len(old.content):
            return plan(old.content, entry.runs, value.content)
    return [Fresh(0, len(value.content))]


def value_bytes(record: Record, parts: Mapping[bytes, bytes]) -> dict[str, Typed]:
    """The channel values of a record, not deserialised."""
    return {
        name: Typed(entry.kind, join(entry, record.inline, parts))
        for name, entry in record.channels.items()
    }
