"""Whether a history can be that of a saver that keeps its promises. Pure.

What a call that was not acknowledged did is open; everything else is not. A removal
excuses the absence of what it may have removed, from its beginning on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP
from tests.attacks.history import NEVER, REFUSALS, UNKNOWN, Event, by_thread

Row = Mapping[str, Any]
REMOVALS = frozenset({"prune", "delete_thread", "delete_runs"})


def violations(events: Sequence[Event]) -> list[str]:
    """What is wrong with a history; nothing, if it is in order."""
    found: list[str] = []
    for thread, calls in by_thread(events).items():
        found += [f"{thread}: {text}" for text in _Thread(calls).violations()]
    return found


def forks(events: Iterable[Event]) -> list[str]:
    """Steps of two runs after one checkpoint that both were acknowledged.

    Where `on_conflict="raise"` was asked for there is none.
    """
    steps: dict[tuple[str, str | None], str] = {}
    found: list[str] = []
    for event in events:
        if event.operation == "put" and event.outcome == "done":
            id, parent = event.args["id"], event.args["parent"]
            other = steps.setdefault((event.thread, parent), id)
            if other != id:
                found.append(f"{event.thread}: {other} and {id} both follow {parent}")
    return found


class _Thread:
    """The calls on one thread."""

    def __init__(self, calls: Sequence[Event]) -> None:
        self.calls = calls
        self.puts: dict[str, list[Event]] = {}
        self.writes: dict[str, list[Event]] = {}
        self.removals = [call for call in calls if call.operation in REMOVALS]
        self.reads: list[tuple[Event, Row]] = []
        for call in calls:
            if call.operation == "put":
                self.puts.setdefault(call.args["id"], []).append(call)
            elif call.operation == "writes":
                self.writes.setdefault(call.args["id"], []).append(call)
            elif call.operation == "get" and call.answer is not None:
                self.reads.append((call, call.answer))
            elif call.operation == "list":
                self.reads += [(call, row) for row in call.answer or ()]

    def violations(self) -> Iterator[str]:
        yield from self._errors()
        yield from self._divergent()
        yield from self._lists()
        for call, row in self.reads:
            yield from self._content(call, row)
            yield from self._come_back(call, row)
            yield from self._writes(call, row)
        yield from self._changed()
        yield from self._vanished()
        yield from self._lost()

    def may_be_gone(self, id: str, since: int, until: int) -> bool:
        """Whether a removal may have taken a checkpoint between two moments."""
        runs = {put.args["run"] for put in self.puts.get(id, ())}
        for removal in self.removals:
            if removal.start >= until or removal.over <= since:
                continue
            if removal.operation == "delete_runs":
                if runs.isdisjoint(removal.args["runs"]):
                    continue
            elif removal.operation == "prune" and not self._outlived(id, removal):
                continue
            return True
        return False

    def _outlived(self, id: str, prune: Event) -> bool:
        """Whether a prune may have seen a greater id: it keeps the greatest."""
        return any(
            other > id and put.start < prune.over
            for other, puts in self.puts.items()
            for put in puts
        )

    # -- single calls ----------------------------------------------------------------

    def _errors(self) -> Iterator[str]:
        for call in self.calls:
            if call.error not in {None, *REFUSALS, *UNKNOWN}:
                yield f"{call.operation} ends with {call.error}"
            elif call.operation in ("get", "list") and call.error in UNKNOWN:
                yield f"{call.operation} ends with {call.error}, and it only reads"

    def _lists(self) -> Iterator[str]:
        for call in self.calls:
            if call.operation == "list" and call.answer:
                ids = [row["id"] for row in call.answer]
                if ids != sorted(set(ids), reverse=True):
                    yield f"a listing is not in order: {ids}"

    # -- checkpoints -----------------------------------------------------------------

    def _divergent(self) -> Iterator[str]:
        """Two contents under one id were both acknowledged."""
        for id, puts in self.puts.items():
            done = [put for put in puts if put.outcome == "done"]
            for put in done[1:]:
                first = done[0]
                if _content(put.args) == _content(first.args):
                    continue
                if not self.may_be_gone(id, first.start, put.end or NEVER):
                    yield f"two contents of {id} were both acknowledged"

    def _content(self, call: Event, row: Row) -> Iterator[str]:
        """What is read is what somebody put, all of it."""
        id = row["id"]
        if call.operation == "get" and call.args["id"] not in (None, id):
            yield f"asked for {call.args['id']}, got {id}"
        puts = [put for put in self.puts.get(id, ()) if put.start < _end(call)]
        possible = [put for put in puts if put.outcome != "refused"]
        if any(_content(put.args) == _content(row) for put in possible):
            return
        if not puts:
            yield f"nobody put {id}"
        elif not possible:
            yield f"{id} is there, and its put was refused"
        elif any(put.args["values"] == row["values"] for put in possible):
            yield f"{id} has the wrong parent {row['parent']}"
        else:
            yield f"{id} is torn: its values are those of no put"

    def _changed(self) -> Iterator[str]:
        """A checkpoint that was read is the same whenever it is read again."""
        seen: dict[str, Row] = {}
        for call, row in self.reads:
            before = seen.setdefault(row["id"], row)
            if _content(before) != _content(row):
                if not self._excused(row["id"], call):
                    yield f"{row['id']} has changed"

    def _come_back(self, call: Event, row: Row) -> Iterator[str]:
        """What was put before a thread was deleted is not read afterwards."""
        latest = max((put.over for put in self.puts.get(row["id"], ())), default=NEVER)
        for removal in self.removals:
            if removal.operation == "delete_thread" and removal.outcome == "done":
                if latest < removal.start and _end(removal) < call.start:
                    yield f"{row['id']} was deleted, and comes back"

    def _excused(self, id: str, read: Event) -> bool:
        """Whether a removal may have met what was stored before the end of a read."""
        stored = [*self.puts.get(id, ()), *self.writes.get(id, ())]
        born = min((call.start for call in stored), default=0)
        return self.may_be_gone(id, born, _end(read))

    def _lost(self) -> Iterator[str]:
        """What is known to be there is found by whoever asks afterwards."""
        known: dict[str, int] = {}
        for id, puts in self.puts.items():
            ends = [_end(put) for put in puts if put.outcome == "done"]
            if ends:
                known[id] = min(ends)
        for call, row in self.reads:
            known[row["id"]] = min(known.get(row["id"], NEVER), _end(call))
        for call in self.calls:
            if call.operation not in ("get", "list") or call.outcome != "done":
                continue
            for id, since in known.items():
                if since < call.start and self._misses(call, id):
                    if not self._excused(id, call):
                        yield f"{_what(call)} misses {id}, which is there"

    def _misses(self, call: Event, id: str) -> bool:
        """Whether a read should have found a checkpoint, and has not."""
        if call.operation == "list":
            return all(row["id"] != id for row in call.answer)
        if call.args["id"] is None:
            return call.answer is None or bool(call.answer["id"] < id)
        return call.args["id"] == id and call.answer is None

    # -- pending writes --------------------------------------------------------------

    def _writes(self, call: Event, row: Row) -> Iterator[str]:
        id = row["id"]
        calls = [
            event
            for event in self.writes.get(id, ())
            if event.start < _end(call) and event.outcome != "refused"
        ]
        seen: dict[tuple[str, str], str] = {}
        order: list[tuple[str, str, int]] = []
        for task, channel, value in row["writes"]:
            if (task, channel) in seen:
                yield f"{id}: the write of {task} to {channel} is there twice"
            seen[task, channel] = value
            sources = [event for event in calls if _wrote(event, task, channel, value)]
            if not sources:
                yield f"{id}: nobody wrote what {task} has in {channel}"
                continue
            order.append((sources[0].args["path"], task, _index(sources[0], channel)))
            yield from self._which_wins(call, id, task, channel, sources)
        if order != sorted(order):
            yield f"{id}: its writes are in the wrong order"
        if not self._excused(id, call):
            yield from self._missing_writes(call, id, calls, seen)

    def _vanished(self) -> Iterator[str]:
        """A write that was read is read again, a regular one with the same value."""
        seen: dict[tuple[str, str, str], tuple[int, str]] = {}
        for call, row in sorted(self.reads, key=lambda each: _end(each[0])):
            for task, channel, value in row["writes"]:
                seen.setdefault((row["id"], task, channel), (_end(call), value))
        for call, row in self.reads:
            now = {
                (row["id"], task, name): value for task, name, value in row["writes"]
            }
            for key, (since, value) in seen.items():
                if key[0] != row["id"] or since >= call.start:
                    continue
                kept = now.get(key)
                if kept == value or (kept and key[2] in WRITES_IDX_MAP):
                    continue
                if not self._excused(key[0], call):
                    yield f"{key[0]}: the write of {key[1]} to {key[2]} was read once"

    def _which_wins(
        self, call: Event, id: str, task: str, channel: str, sources: Sequence[Event]
    ) -> Iterator[str]:
        """A regular write stays, a special one is replaced."""
        if self._excused(id, call):
            return
        others = [
            event
            for event in self.writes[id]
            if event.outcome == "done"
            and event not in sources
            and _keys(event) & {(task, channel)}
        ]
        for other in others:
            if channel not in WRITES_IDX_MAP:
                if all(_end(other) < source.start for source in sources):
                    yield f"{id}: a later write of {task} to {channel} has won"
            elif _end(other) < call.start and all(
                source.over < other.start for source in sources
            ):
                yield f"{id}: an earlier special write of {task} has won"

    def _missing_writes(
        self,
        call: Event,
        id: str,
        calls: Sequence[Event],
        seen: Mapping[tuple[str, str], str],
    ) -> Iterator[str]:
        for event in calls:
            missing = _keys(event) - seen.keys()
            if not missing:
                continue
            if event.outcome == "done" and _end(event) < call.start:
                yield f"{id}: acknowledged writes are lost: {sorted(missing)}"
            elif any(
                seen.get((event.args["task"], channel)) == value
                for channel, value in event.args["writes"]
            ):
                yield f"{id}: half of a call's writes are there, without {missing}"


def _content(of: Mapping[str, Any]) -> tuple[Any, Any]:
    return of["values"], of["parent"]


def _end(call: Event) -> int:
    return NEVER if call.end is None else call.end


def _what(call: Event) -> str:
    if call.operation == "list":
        return "a listing"
    return "the latest" if call.args["id"] is None else "a read by id"


def _keys(event: Event) -> set[tuple[str, str]]:
    return {(event.args["task"], channel) for channel, _ in event.args["writes"]}


def _index(event: Event, channel: str) -> int:
    channels = [name for name, _ in event.args["writes"]]
    return WRITES_IDX_MAP.get(channel, channels.index(channel))


def _wrote(event: Event, task: str, channel: str, value: str) -> bool:
    return event.args["task"] == task and [channel, value] in event.args["writes"]
