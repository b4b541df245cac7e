"""What a checkpoint shares with its parent: channel versions, and values under them.

This package counts in whole numbers, and goes on after any form. Other savers go on in
their own, and a thread with two forms can be compared by nobody. Most of them keep a
value under its channel and version, which then must be no other branch's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, cast

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from jskv_saver.checkpoint.saver import DocumentCheckpointSaver
from jskv_saver.migrate.comparing import fingerprint, same
from jskv_saver.migrate.source import Item, Row

Load = Callable[[Row], Awaitable[Item]]
_Versions = Mapping[str, Any]
_Key = tuple[str, str]

_BY_VERSION: Final = (
    "jskv_saver",
    "langgraph.checkpoint.memory",
    "langgraph.checkpoint.postgres",
    "langgraph_checkpoint_plainredis",
)
"""Savers in which one version of a channel has one value, along a branch."""


class _Seen(NamedTuple):
    """The versions of a checkpoint and of its nodes: as they were, and become."""

    channels: _Versions
    new_channels: _Versions
    nodes: Mapping[str, _Versions]
    new_nodes: Mapping[str, _Versions]


class Lineage:
    """Gives the checkpoints of one thread as the target is to have them.

    Attributes:
        healed: The values that the source had changed under a version. A saver that
            serialises after the graph went on has such; the version's own are given.
        snapshots: Fingerprints of delta channels' values, by namespace, channel and
            the version that it becomes.
    """

    def __init__(
        self,
        source: BaseCheckpointSaver[Any],
        target: BaseCheckpointSaver[Any],
        load: Load,
        rows: Sequence[Row],
    ) -> None:
        self._load = load
        self._rows = {(row.ns, row.id): row for row in rows}
        self._in_text = isinstance(target.get_next_version(None, None), str)
        self._takes_any = isinstance(target, DocumentCheckpointSaver)
        self._heals = not type(source).__module__.startswith(_BY_VERSION)
        self._seen: dict[_Key, _Seen] = {}
        # The newest of each namespace: mostly the parent of the next one.
        self._last: dict[str, Item] = {}
        self.healed: set[tuple[str, str, str]] = set()
        self.snapshots: dict[tuple[str, str, Any], str] = {}

    def channels(self, row: Row) -> _Versions:
        """The channel versions of a checkpoint that was given."""
        return self._seen[(row.ns, row.id)].new_channels

    async def load(self, row: Row) -> Item:
        """A checkpoint; its ancestors are looked at first, where they were not."""
        lacking = {row: None}
        parent = self._parent_of(row)
        # A damaged source may have a circle of parents: each is looked at once.
        while parent and parent not in lacking and not self._has(parent):
            lacking[parent] = None
            parent = self._parent_of(parent)
        for each in reversed(lacking):
            item = self._given(await self._load(each))
            self._last[each.ns] = item
        return item if self._takes_any else self._renumbered(item)

    def _has(self, row: Row) -> bool:
        """Whether all that a child needs of it is at hand."""
        if not self._heals:
            return (row.ns, row.id) in self._seen
        last = self._last.get(row.ns)
        return last is not None and last.row == row

    def _parent_of(self, row: Row) -> Row | None:
        return self._rows.get((row.ns, row.parent)) if row.parent else None

    def _given(self, item: Item) -> Item:
        """A checkpoint with one value for each version, whose versions are settled."""
        if self._heals and (parent := self._last.get(item.row.ns)) is not None:
            if parent.row.id == item.row.parent:
                item = self._healed(item, parent)
        self._settle(item)
        versions = self.channels(item.row)
        for name, value in (item.checkpoint.get("channel_values") or {}).items():
            if isinstance(value, _DeltaSnapshot):
                key = (item.row.ns, name, versions.get(name))
                self.snapshots[key] = fingerprint(value)
        return item

    def _healed(self, item: Item, parent: Item) -> Item:
        before, now = parent.checkpoint, item.checkpoint
        values = dict(now.get("channel_values") or {})
        deltas = item.metadata.get("counters_since_delta_snapshot") or {}
        for name, version in now["channel_versions"].items():
            if (
                name in values
                and name not in deltas
                and name in before["channel_values"]
                and before["channel_versions"].get(name) == version
                and not same(before["channel_values"][name], values[name])
            ):
                values[name] = before["channel_values"][name]
                self.healed.add((item.row.ns, item.row.id, name))
        changed = cast(Checkpoint, {**now, "channel_values": values})
        return dataclasses.replace(item, checkpoint=changed)

    def _settle(self, item: Item) -> None:
        """Decide what becomes of the versions: the same in each run."""
        row = item.row
        parent = self._seen.get((row.ns, row.parent or ""))
        channels = dict(item.checkpoint.get("channel_versions") or {})
        nodes = item.checkpoint.get("versions_seen") or {}
        if not self._changes(channels):
            self._seen[(row.ns, row.id)] = _Seen(channels, channels, nodes, nodes)
            return
        new_channels = {
            name: parent.new_channels[name]
            if parent and parent.channels.get(name) == version
            else self._new(version, row.id)
            for name, version in channels.items()
        }
        seen = _Seen(channels, new_channels, nodes, {})
        new_nodes = {
            node: {
                name: self._known(name, version, node, parent, seen)
                for name, version in of_node.items()
            }
            for node, of_node in nodes.items()
        }
        self._seen[(row.ns, row.id)] = seen._replace(new_nodes=new_nodes)

    def _changes(self, channels: _Versions) -> bool:
        if self._takes_any or not channels:
            return False
        in_text = all(isinstance(version, str) for version in channels.values())
        return not (in_text and self._in_text)

    def _known(
        self, name: str, version: Any, node: str, parent: _Seen | None, own: _Seen
    ) -> Any:
        """What a version that a node has seen became, where it was met before."""
        if parent is not None:
            of_node = parent.nodes.get(node, {})
            if of_node.get(name) == version:
                return parent.new_nodes[node][name]
            if parent.channels.get(name) == version:
                return parent.new_channels[name]
        if own.channels.get(name) == version:
            return own.new_channels[name]
        return self._new(version, "")

    def _new(self, version: Any, origin: str) -> Any:
        """A version with the same number and a fraction that is its origin's."""
        text = version.partition(".")[0] if isinstance(version, str) else version
        number = int(text)
        bits = int.from_bytes(blake2b(origin.encode(), digest_size=6).digest())
        if self._in_text:
            return f"{number:032}.0.{bits:015}"
        # A float has room for that, up to some million steps.
        return number + (bits >> 20) / (1 << 29)

    def _renumbered(self, item: Item) -> Item:
        seen = self._seen[(item.row.ns, item.row.id)]
        changed = {
            **item.checkpoint,
            "channel_versions": dict(seen.new_channels),
            "versions_seen": {node: dict(of) for node, of in seen.new_nodes.items()},
        }
        return dataclasses.replace(item, checkpoint=cast(Checkpoint, changed))
