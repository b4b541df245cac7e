"""What LangGraph's contract and this saver promise, as plainly as dicts can say it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key

OK, DIVERGENT, CONFLICT, LOST = "ok", "divergent", "conflict", "lost"
COUNTERS = "counters_since_delta_snapshot"
_MISSING = object()


class Place(NamedTuple):
    """Where checkpoints are told apart by their ids alone."""

    thread: str
    ns: str


@dataclass(frozen=True, slots=True)
class State:
    """A checkpoint, without its id."""

    parent: str | None
    values: Mapping[str, Any]
    versions: Mapping[str, Any]
    metadata: Mapping[str, Any]
    updated: Sequence[str] | None

    @property
    def run(self) -> str | None:
        run: str | None = self.metadata.get("run_id")
        return run

    @property
    def deltas(self) -> set[str]:
        """The channels whose value only the ancestors have."""
        return set(self.metadata.get(COUNTERS, ())) - self.values.keys()


Write: TypeAlias = tuple[str, str, Any]
"""Task, channel and value."""
Met: TypeAlias = dict[tuple[Place, str], str]
"""What the head was when a saver last read or stored a checkpoint."""


class History(NamedTuple):
    """What the ancestors gave to a channel: writes, and maybe the value before."""

    writes: list[Write]
    seed: tuple[Any, ...]


class Model:
    """All checkpoints and writes of one namespace and agent."""

    def __init__(self) -> None:
        self._places: dict[Place, dict[str, State]] = {}
        self._writes: dict[
            tuple[Place, str], dict[str, dict[int, tuple[str, str, Any]]]
        ] = {}

    # -- one checkpoint ----------------------------------------------------------------

    def at(self, place: Place) -> dict[str, State]:
        """The checkpoints of a place, by id."""
        return self._places.setdefault(place, {})

    def head(self, place: Place) -> str | None:
        """The latest: the greatest id, whatever came last."""
        return max(self.at(place), default=None)

    def put(self, place: Place, id: str, state: State) -> bool:
        """Whether a checkpoint is there afterwards: what is stored never changes."""
        return self.at(place).setdefault(id, state) == state

    def outcomes(
        self, place: Place, id: str, state: State, raises: bool, met: Met
    ) -> set[str]:
        """What a put may end with, given the saver's policy and memory."""
        stored = self.at(place)
        if id in stored:
            return {OK if stored[id] == state else DIVERGENT}
        is_lost = state.deltas and state.parent and state.parent not in stored
        stores = LOST if is_lost else OK
        if not raises or place.ns or state.metadata["source"] != "loop":
            return {stores}
        head = self.head(place)
        if head is not None and id <= head:
            return {CONFLICT}
        if state.parent == head:
            return {stores}
        if head is not None and state.parent is not None:
            if met.get((place, state.parent)) == head:
                return {stores}
        if head is not None and state.run and stored[head].run == state.run:
            # This run's own put moved the head: no conflict, as long as the saver has
            # that put at hand. What it has at hand depends on what it read in between.
            return {stores, CONFLICT}
        return {CONFLICT}

    # -- writes ------------------------------------------------------------------------

    def put_writes(
        self,
        place: Place,
        id: str,
        task: str,
        path: str,
        writes: Iterable[tuple[str, Any]],
    ) -> None:
        """Regular writes: the first one stays. Special ones: the last one."""
        new = {
            WRITES_IDX_MAP.get(channel, at): (path, channel, value)
            for at, (channel, value) in enumerate(writes)
        }
        self._merge(place, id, task, new)

    def _merge(
        self, place: Place, id: str, task: str, new: dict[int, tuple[str, str, Any]]
    ) -> None:
        stored = self._writes.setdefault((place, id), {}).setdefault(task, {})
        for at, write in new.items():
            if at < 0 or at not in stored:
                stored[at] = write

    def writes_of(self, place: Place, id: str) -> list[Write]:
        found = [
            (writes_sort_key(path, task, at), (task, channel, value))
            for task, writes in self._writes.get((place, id), {}).items()
            for at, (path, channel, value) in writes.items()
        ]
        return [write for _, write in sorted(found, key=lambda pair: pair[0])]

    # -- many checkpoints --------------------------------------------------------------

    def listed(
        self,
        thread: str | None,
        ns: str | None,
        id: str | None,
        before: str | None,
        filter: Mapping[str, Any],
        limit: int | None,
    ) -> list[tuple[str, Place]]:
        """The checkpoints that match, the greatest id first."""
        found = [
            (each, place)
            for place, stored in self._places.items()
            if thread in (None, place.thread) and ns in (None, place.ns)
            for each, state in stored.items()
            if id in (None, each) and (before is None or each < before)
            if all(_has(state.metadata, *wanted) for wanted in filter.items())
        ]
        return sorted(found, reverse=True)[:limit]

    def history(
        self, place: Place, id: str | None, channels: Iterable[str]
    ) -> dict[str, History] | None:
        """What the ancestors gave to some channels; None: one of them is missing."""
        stored = self.at(place)
        id = id or self.head(place)
        if id is None or id not in stored:
            return {channel: History([], ()) for channel in channels}
        found: dict[str, History] = {}
        for channel in channels:
            writes: list[Write] = []
            seed: tuple[Any, ...] = ()
            child, met = id, {id}
            while not seed and (parent := stored[child].parent) is not None:
                if parent not in stored or parent in met:
                    return None
                met.add(parent)
                of_parent = self.writes_of(place, parent)
                writes[:0] = [each for each in of_parent if each[1] == channel]
                if channel in stored[parent].values:
                    seed = (stored[parent].values[channel],)
                child = parent
            found[channel] = History(writes, seed)
        return found

    def prune(self, thread: str) -> None:
        """Keep the latest of each namespace, and what its delta channels need."""
        for place in self._of(thread):
            self._remove(place, self.at(place).keys() - {self.head(place)})

    def delete_runs(self, runs: Container[str | None]) -> None:
        """Remove what some runs wrote, unless the delta channels of others need it."""
        for place, stored in self._places.items():
            self._remove(place, {id for id in stored if stored[id].run in runs})

    def delete(self, thread: str) -> None:
        """Erase a thread, with the writes that came before their checkpoint."""
        self._places = {k: v for k, v in self._places.items() if k.thread != thread}
        self._writes = {k: v for k, v in self._writes.items() if k[0].thread != thread}

    def copy(self, source: str, target: str, met: Met) -> str:
        """Put all checkpoints of a thread, with their writes, under another one."""
        ids = [(id, place) for place in self._of(source) for id in self.at(place)]
        for id, place in sorted(ids):
            to = Place(target, place.ns)
            for task, writes in self._writes.get((place, id), {}).items():
                self._merge(to, id, task, writes)
            is_new = id not in self.at(to)
            if not self.put(to, id, self.at(place)[id]):
                return DIVERGENT
            if is_new:
                met[to, id] = max(self.at(to))
        return OK

    def _of(self, thread: str) -> list[Place]:
        return [place for place in self._places if place.thread == thread]

    def _remove(self, place: Place, dead: set[str]) -> None:
        stored = self.at(place)
        for id in dead - self._needed(stored, stored.keys() - dead):
            del stored[id]
            self._writes.pop((place, id), None)

    def _needed(self, stored: Mapping[str, State], kept: Iterable[str]) -> set[str]:
        """For each delta channel the ancestors up to the nearest that has its value."""
        found: set[str] = set()
        for id in kept:
            for channel in stored[id].deltas:
                met: set[str] = set()
                parent = stored[id].parent
                while parent and parent in stored and parent not in met:
                    met.add(parent)
                    if channel in stored[parent].values:
                        break
                    parent = stored[parent].parent
                found |= met
        return found


def _has(metadata: Mapping[str, Any], key: str, value: object) -> bool:
    """A null is no missing key, and `True` is not 1."""
    found = metadata.get(key, _MISSING)
    return found == value and isinstance(found, bool) == isinstance(value, bool)
