"""A checkpoint that is about to be stored: serialised, then laid out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from jskv_saver.checkpoint.arguments import check_channels, parse_mapping
from jskv_saver.checkpoint.config import CheckpointRef, parse_id, parse_text
from jskv_saver.checkpoint.increments import Fresh, Run, plan
from jskv_saver.checkpoint.layout import (
    Record,
    Scope,
    digest_of,
    table_of,
)
from jskv_saver.checkpoint.packing import Packer
from jskv_saver.checkpoint.values import Entry, Typed, bytes_of, greatest, join
from jskv_saver.errors import InvalidRequestError

INLINE = 512
"""Bytes up to which a value is kept in the record itself."""
OWN = 4096
"""Bytes of new parts up to which the record brings them itself: a message less."""
BESIDE = 8192
"""Inline bytes up to which it does: who looks for what it brings reads it whole."""
INLINE_RECORD = 32_768
"""Bytes up to which a checkpoint's skeleton and its metadata are."""
INLINE_TOTAL = 1024
"""Bytes of values above which a record keeps only tiny ones in itself: what does not
change is then named again, and not stored again."""
TINY = 64
"""Bytes up to which a value is tiny: naming it takes as much."""

_MOST_STEPS = 1 << 31
_BYTES_PER_RUN = 56
"""What a run costs in the record that names it, at most about."""
_APART = frozenset(("id", "channel_values", "channel_versions"))


class Base(NamedTuple):
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
        record = self.record
        return (len(record.inline) + len(record.own) + len(record.table)) + sum(
            len(v.content) for v in self.values.values()
        )


class Draft(NamedTuple):
    """A checkpoint that is about to be stored, serialised.

    Attributes:
        scope: Where it goes.
        id: Its id.
        parent: The id of its parent, or None.
        run: The run that writes it, or None.
        source: Of its metadata: `loop`, `input`, `update`, `fork`, or None.
        deltas: Channels whose value only the history holds, as in a record.
        format: The checkpoint's own format, its `v`.
        skeleton: The checkpoint without its id, channel values and versions.
        metadata: Its metadata, the config's merged in.
        versions: Its channel versions.
        changed: Channels that are new in this checkpoint.
        values: All channel values.
        is_copy: Whether it is one of another thread, and no less whole than that.
        assumed: Channels whose bytes are the parent's as it was remembered, which may
            be those of a first life of its id; the caller's were not looked at.
    """

    scope: Scope
    id: str
    parent: str | None
    run: str | None
    source: str | None
    deltas: Mapping[str, int]
    format: int
    skeleton: Typed
    metadata: Typed
    versions: ChannelVersions
    changed: frozenset[str]
    values: Mapping[str, Typed]
    is_copy: bool = False
    assumed: frozenset[str] = frozenset()

    def carries(self, channel: str, base: Base) -> bool:
        """Whether a channel's value is that of the parent, by version."""
        return (
            channel not in self.changed
            and channel in base.record.channels
            and channel in self.versions
            and base.record.versions.get(channel) == self.versions[channel]
        )

    def is_behind(self, base: Base) -> bool:
        """Whether it may not refer to what the parent refers to: a clock is behind.

        Whoever puts an id again must see what refers to it: only greater ids do.
        """
        record = base.record
        if not (record.own or record.bringers):
            return False
        raw = bytes_of(self.id)
        # What a record refers to has no greater id than its own.
        if raw and raw > bytes_of(record.id):
            return False
        return raw <= max(record.located.values())

    def without(self, base: Base) -> Draft:
        """The same, with the parent's values in the place of references to them.

        Of those that are not at hand the caller's own stay.
        """
        values = dict(self.values)
        for channel in values:
            if self.carries(channel, base):
                entry = base.record.channels[channel]
                if channel in base.values:
                    values[channel] = base.values[channel]
                elif not entry.named:
                    content = join(entry, base.record.inline, {})
                    values[channel] = Typed(entry.kind, content)
        return self._replace(values=values)


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
        InvalidRequestError: The checkpoint has no id, or is none.
    """
    parse_mapping("checkpoint", checkpoint)
    parse_mapping("metadata", metadata)
    parse_mapping("new_versions", new_versions)
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
    values = parse_mapping("channel_values", checkpoint.get("channel_values") or {})
    counters = merged.get("counters_since_delta_snapshot")
    if not isinstance(counters, Mapping):
        counters = {}
    at_hand = base(scope, ref.id) if ref.id else None
    check_channels(values)
    known = at_hand.values if at_hand else {}
    known_versions = at_hand.record.versions if at_hand else {}
    dumps = serde.dumps_typed
    stored: dict[str, Typed] = {}
    assumed: list[str] = []
    for channel, value in values.items():
        if (
            channel in known
            and channel not in new_versions
            and channel in versions
            and known_versions.get(channel) == versions[channel]
        ):
            stored[channel] = known[channel]
            assumed.append(channel)
        else:
            stored[channel] = Typed(*dumps(value))
    return Draft(
        scope=scope,
        id=str(id),
        parent=ref.id,
        run=_run_id(run),
        source=source if isinstance(source, str) else None,
        deltas={
            name: _steps(counter)
            for name, counter in counters.items()
            if name not in values
        },
        format=checkpoint.get("v", 1),
        skeleton=Typed(*dumps(skeleton)),
        metadata=Typed(*dumps(merged)),
        versions=versions,
        changed=frozenset(new_versions),
        values=stored,
        assumed=frozenset(assumed),
    )


def _versions(versions: ChannelVersions) -> ChannelVersions:
    parse_mapping("channel_versions", versions)
    check_channels(versions)
    for channel, version in versions.items():
        if type(version) not in (int, float, str):
            raise InvalidRequestError(
                f"the version of channel {channel!r} must be int, float or str, not "
                f"{type(version).__name__}"
            )
    return dict(versions)


def _steps(counter: object) -> int:
    """The supersteps in `(updates, supersteps)`; 0 where it is something else."""
    if isinstance(counter, tuple | list) and len(counter) == 2:
        steps = counter[1]
        if type(steps) is int and 0 <= steps < _MOST_STEPS:
            return steps
    return 0


def _run_id(run: object) -> str | None:
    """A run's id as text, as `delete_for_runs` names it; None where it is no id."""
    if run is None:
        return None
    try:
        return parse_id("run_id", run) or None
    except InvalidRequestError:
        return None


def lay_out(
    draft: Draft,
    base: Base | None,
    known: tuple[str, ...],
    part_size: int,
    naming: Callable[[bytes], bytes] = digest_of,
) -> tuple[Base, dict[bytes, bytes]]:
    """Decide how a checkpoint is stored.

    Args:
        draft: The checkpoint.
        base: Its parent, whose parts are known to be stored; None: store in full.
        known: The greatest ids of the namespace, greatest first.
        part_size: The greatest size of a part, in bytes.
        naming: Gives a part its name, by its content.

    Returns:
        What its children may refer to, with the record itself, and the parts that
        must be stored before it, by digest.
    """
    if base is not None and draft.is_behind(base):
        return lay_out(draft.without(base), None, known, part_size, naming)
    located = base.record.located if base else {}
    raw = bytes_of(draft.id)
    packer = Packer(draft.id, part_size, naming)
    small = [v for _, v in draft.values.values() if len(v) <= INLINE]
    threshold = INLINE
    if sum(map(len, small)) > INLINE_TOTAL:
        tiny = sum([len(content) for content in small if len(content) <= TINY])
        threshold = TINY if tiny <= min(BESIDE, part_size // 4) else 0
    open_entries: list[tuple[dict[str, Entry], str, str, list[Run]]] = []
    named = 0

    def store(
        into: dict[str, Entry], name: str, value: Typed, old: Base | None, most: int
    ) -> None:
        nonlocal named
        if len(value.content) <= most:
            into[name] = packer.keep(value)
            return
        runs: list[Run] = []
        for piece in _pieces(name, value, old):
            if isinstance(piece, Run):
                runs.append(piece)
            else:
                packer.add(runs, value.content[piece.start : piece.end])
        # What they are is known when the packer is closed.
        open_entries.append((into, name, value.kind, runs))
        into[name] = Entry(value.kind, ())
        named += len(runs)

    most = min(INLINE_RECORD, part_size // 8)
    whole: dict[str, Entry] = {}
    store(whole, "skeleton", draft.skeleton, None, most)
    store(whole, "metadata", draft.metadata, None, most)
    entries: dict[str, Entry] = {}
    values: dict[str, Typed] = {}
    for channel, value in draft.values.items():
        if base is not None and draft.carries(channel, base):
            entry = base.record.channels[channel]
            of_parts = entry.named
            if not of_parts:
                # What the parent has, whatever was at hand when this was serialised.
                value = Typed(entry.kind, join(entry, base.record.inline, {}))
            elif of_parts == len(entry.runs):
                entries[channel] = entry
                named += of_parts
                # Serialising the same value twice need not give the same bytes.
                if channel in base.values:
                    values[channel] = base.values[channel]
                continue
        store(entries, channel, value, base, threshold)
        values[channel] = value
    room = part_size - len(packer.inline) - named * _BYTES_PER_RUN
    if base is not None and room < 0:
        # To name them all the record would be too large: begin anew.
        return lay_out(draft.without(base), None, known, part_size, naming)
    packer.close()
    for into, name, kind, runs in open_entries:
        into[name] = Entry(kind, tuple(runs))
    few = min(OWN, part_size // 4, room)
    brings = raw and len(packer.inline) <= BESIDE
    own = packer.take_own(few) if brings else b""
    table, bringers = table_of(
        [whole["skeleton"], whole["metadata"], *entries.values()], own, located
    )
    record = Record(
        id=draft.id,
        parent=draft.parent,
        others=tuple([id for id in greatest(known, draft.id) if id != draft.id]),
        run=draft.run,
        deltas=draft.deltas,
        format=draft.format,
        versions=draft.versions,
        skeleton=whole["skeleton"],
        metadata=whole["metadata"],
        channels=entries,
        inline=bytes(packer.inline),
        table=table,
        own=packer.own,
        bringers=bringers,
    )
    return Base(record, values), packer.parts


def _pieces(channel: str, value: Typed, base: Base | None) -> list[Run | Fresh]:
    small = len(value.content) <= INLINE
    if base is not None and channel in base.values and not small:
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
