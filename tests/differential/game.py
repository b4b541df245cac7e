"""Random calls to several savers on one storage, each answer held to the model."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from tests.checkpoint.saving import at, checkpoint, id_of, listed, parent_of
from tests.differential.drawing import DELTAS, RUNS, TAGS, TASKS, Drawing
from tests.differential.model import (
    CONFLICT,
    DIVERGENT,
    LOST,
    OK,
    History,
    Met,
    Model,
    Place,
    State,
    Write,
)

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.errors import (
    CorruptDocumentError,
    DivergentCheckpointError,
    DocumentNotFoundError,
    WriterConflictError,
)

FORK, RAISE = "fork", "raise"
POLICIES = (FORK, FORK, RAISE, RAISE)
"""Of the savers of a game: two of each, so that one does not know what another did."""
THREADS = {"t": 3, "u": 2, "long": 4, "copy": 1}
"""Each with how often it is chosen; `long` is seldom removed."""
NAMESPACES = {"": 5, "sub": 2, "sub|x:1": 1}
LIMITS = [None, 0, 1, 2, 3, 5, 11, 12, 13, 14, 30, 300]
FILTERS: list[dict[str, Any]] = [
    *({"tag": tag} for tag in TAGS),
    {"source": "input"},
    {"source": "loop", "tag": 1},
    {"absent": None},
]
BURSTS = [5, 20, 60]
CALLS = {
    "put": 40.0,
    "put_writes": 18,
    "get": 12,
    "latest": 12,
    "list": 24,
    "history": 10,
    "burst": 1.2,
    "delete_for_runs": 0.8,
    "prune": 0.8,
    "delete": 0.5,
    "second_life": 0.6,
    "copy": 0.8,
    "repair": 0.4,
}
"""Each call with how often it is made."""
_SPARED = 0.2
_AGAIN = 8
_SHORT = 600
_KEPT = 25


class Different(AssertionError):
    """A saver answers otherwise than the model."""


class Game:
    """Calls by chance.

    Args:
        savers: On the same storage, one for each of `POLICIES`.
        seed: Decides all calls.
    """

    def __init__(self, savers: Sequence[DocumentCheckpointSaver], seed: int) -> None:
        self.made: Counter[str] = Counter()
        """How often each call was made, and each outcome of a put."""
        self._savers = savers
        self._met: list[Met] = [{} for _ in savers]
        self._seed = seed
        self._random = Random(seed)
        self._draw = Drawing(self._random)
        self._model = Model()
        self._last: deque[str] = deque(maxlen=_KEPT)

    async def play(self, steps: int) -> None:
        """Make so many calls.

        Raises:
            Different: An answer was not the model's; with the seed and the last calls.
        """
        for step in range(steps):
            try:
                await self._step()
            except Exception as exc:
                exc.add_note(f"seed {self._seed}, step {step}; the last calls:")
                exc.add_note("\n".join(self._last))
                raise

    async def _step(self) -> None:
        self._turn()
        place = Place(self._choose(THREADS), self._choose(NAMESPACES))
        call = self._choose(CALLS)
        removes = call in ("delete", "prune", "second_life")
        if removes and place.thread == "long" and self._random.random() > _SPARED:
            return
        self.made[call] += 1
        await getattr(self, f"_{call}")(place)

    def _turn(self) -> None:
        """The next call is one of any saver."""
        number = self._number = self._random.randrange(len(self._savers))
        self._saver, self._mine = self._savers[number], self._met[number]
        self._raises = POLICIES[number] == RAISE

    def _choose(self, weights: Mapping[str, float]) -> str:
        return self._random.choices([*weights], [*weights.values()])[0]

    def _stored(self, place: Place) -> str | None:
        """A checkpoint that is there, if there is one."""
        ids = sorted(self._model.at(place))
        return self._random.choice(ids) if ids else None

    def _note(self, *call: object) -> None:
        """Note a call before it is made."""
        self._last.append(f"saver {self._number}: {' '.join(map(repr, call))}")

    def _same(self, what: str, got: object, wanted: object) -> None:
        if got != wanted:
            raise Different(f"{what}: {_short(got)}, not {_short(wanted)}")

    # -- storing -----------------------------------------------------------------------

    async def _put(self, place: Place) -> None:
        model, random = self._model, self._random
        head, stored = model.head(place), model.at(place)
        kind = random.random()
        if kind < 0.7:
            id = self._draw.next_id(head)
        else:
            id = (kind > 0.9 and self._stored(place)) or self._draw.any_id()
        if id in stored and random.random() < 0.6:
            await self._store(place, id, stored[id])
            return
        kind = random.random()
        parent = head
        if kind > 0.98:
            parent = random.choice([None, self._draw.any_id()])
        elif kind > 0.8:
            parent = self._stored(place)
        state = self._draw.state(parent, stored.get(parent) if parent else None)
        await self._store(place, id, state)

    async def _burst(self, place: Place) -> None:
        """Many puts in a row, as a long run makes them."""
        for _ in range(self._random.choice(BURSTS)):
            head = self._model.head(place)
            of_head = self._model.at(place)[head] if head else None
            state = self._draw.state(head, of_head)
            await self._store(place, self._draw.next_id(head), state)

    async def _store(self, place: Place, id: str, state: State) -> None:
        stored = self._model.at(place)
        parent = stored.get(state.parent) if state.parent else None
        before = parent.versions if parent else {}
        new = {c: v for c, v in state.versions.items() if before.get(c) != v}
        wanted = self._model.outcomes(place, id, state, self._raises, self._mine)
        self._note("put", *place, id, "from", state.parent, wanted, state.metadata)
        config = at(state.parent, thread=place.thread, ns=place.ns)
        metadata = cast(CheckpointMetadata, dict(state.metadata))
        put = self._saver.aput(config, _checkpoint(id, state), metadata, new)
        got = await _outcome(put)
        self.made[f"put: {got}"] += 1
        if got not in wanted:
            raise Different(f"put of {id!r} to {place}: {got}, not {wanted}")
        if got == OK and id not in stored:
            self._model.put(place, id, state)
            self._mine[place, id] = max(stored)

    async def _put_writes(self, place: Place) -> None:
        """To the latest, to another one, to one that is not there or no more."""
        random = self._random
        id = self._model.head(place) if random.random() < 0.5 else self._stored(place)
        if id is None or random.random() < 0.1:
            id = self._draw.any_id()
        task, path = random.choice(TASKS), random.choice(["", "~p", "a"])
        writes = self._draw.writes()
        self._note("put_writes", *place, id, task, path, [each[0] for each in writes])
        config = at(id, thread=place.thread, ns=place.ns)
        await self._saver.aput_writes(config, writes, task, path)
        self._model.put_writes(place, id, task, path, writes)

    # -- reading -----------------------------------------------------------------------

    async def _get(self, place: Place) -> None:
        id = self._stored(place) if self._random.random() < 0.8 else None
        await self._read(place, id or self._draw.any_id())

    async def _latest(self, place: Place) -> None:
        await self._read(place, None)

    async def _read(self, place: Place, id: str | None) -> None:
        self._note("get", *place, id)
        config = at(id, thread=place.thread, ns=place.ns)
        found = await self._saver.aget_tuple(config)
        head = self._model.head(place)
        id = id or head
        if found is None or id is None or id not in self._model.at(place):
            there = id is not None and id in self._model.at(place)
            self._same(f"{id!r} of {place} is there", found is not None, there)
            return
        self._check(found, place, id)
        if head is not None:
            self._mine[place, id] = head

    def _check(self, found: CheckpointTuple, place: Place, id: str) -> None:
        """The whole checkpoint, with its writes."""
        what = f"{id!r} of {place}"
        self._same(what, _place_of(found), (id, place))
        got, wanted = _state_of(found), self._model.at(place)[id]
        for part in State.__slots__:
            self._same(f"{part} of {what}", getattr(got, part), getattr(wanted, part))
        # 1 and 1.0 are equal, and are different versions.
        for channel, version in wanted.versions.items():
            self._same(f"type in {what}", type(got.versions[channel]), type(version))
        writes = self._model.writes_of(place, id)
        self._same(f"writes of {what}", _writes_of(found.pending_writes), writes)

    async def _list(self, place: Place) -> None:
        random = self._random
        kind = random.random()
        thread = place.thread if kind < 0.9 else None
        ns = place.ns if kind < 0.75 else None
        id = self._stored(place) if thread and random.random() < 0.12 else None
        before = self._draw.any_id() if random.random() < 0.3 else None
        limit = random.choice(LIMITS)
        filter = random.choice(FILTERS) if random.random() < 0.25 else {}
        self._note("list", thread, ns, id, "before", before, limit, filter)
        found = await listed(
            self._saver,
            at(id, thread=thread, ns=ns) if thread else None,
            before=at(before) if before else None,
            filter=filter or None,
            limit=limit,
        )
        wanted = self._model.listed(thread, ns, id, before, filter, limit)
        self._same("a listing", [_place_of(each) for each in found], wanted)
        for each, (listed_id, at_place) in zip(found, wanted, strict=True):
            self._check(each, at_place, listed_id)

    async def _history(self, place: Place) -> None:
        random = self._random
        id = self._stored(place) if random.random() < 0.7 else None
        channels = random.choice([*([c] for c in DELTAS), DELTAS, ["x", "a"], ["no"]])
        self._note("history", *place, id, channels)
        got: dict[str, History] | None
        try:
            found = await self._saver.aget_delta_channel_history(
                config=at(id, thread=place.thread, ns=place.ns), channels=channels
            )
        except CorruptDocumentError:
            self.made["history: not whole"] += 1
            got = None
        else:
            got = {
                channel: History(
                    _writes_of(each["writes"]),
                    (each["seed"],) if "seed" in each else (),
                )
                for channel, each in found.items()
            }
        wanted = self._model.history(place, id, channels)
        self._same(f"history of {id!r} of {place}", got, wanted)
        head = self._model.head(place)
        if id is None and head is not None:
            self._mine[place, head] = head

    # -- removing, copying -------------------------------------------------------------

    async def _prune(self, place: Place) -> None:
        self._note("prune", place.thread)
        await self._saver.aprune([place.thread])
        self._model.prune(place.thread)
        await self._again(place)

    async def _delete_for_runs(self, place: Place) -> None:
        runs = self._random.sample(RUNS, self._random.choice([1, 1, 2]))
        self._note("delete_for_runs", runs)
        await self._saver.adelete_for_runs(runs)
        self._model.delete_runs(runs)
        await self._again(place)

    async def _again(self, place: Place) -> None:
        """What survives is accepted again, though it may have lost its parent."""
        stored = self._model.at(place)
        for id in self._random.sample(sorted(stored), min(len(stored), _AGAIN)):
            self._turn()
            await self._store(place, id, stored[id])

    async def _delete(self, place: Place) -> None:
        self._note("delete", place.thread)
        if self._random.random() < 0.5:
            await self._saver.adelete_thread(place.thread)
        else:
            await self._saver.aprune([place.thread], strategy="delete")
        self._model.delete(place.thread)

    async def _second_life(self, place: Place) -> None:
        """The latest comes again after a delete: the same versions, other values.

        Then it is read, or gone on from, by those who may remember the first one.
        """
        id = self._model.head(place)
        if id is None:
            return
        for _ in range(2):
            self._turn()
            await self._read(place, None)
        first = self._model.at(place)[id]
        values = {channel: self._draw.value() for channel in first.values}
        await self._delete(place)
        self._turn()
        second = replace(first, parent=None, values=values)
        await self._store(place, id, second)
        for _ in range(2):
            self._turn()
            if self._random.random() < 0.5:
                await self._read(place, self._random.choice([id, None]))
            elif id in self._model.at(place):
                await self._store(
                    place, self._draw.next_id(id), self._draw.state(id, second)
                )

    async def _copy(self, place: Place) -> None:
        """To a new thread, or to one that may have some of it, or other checkpoints."""
        source, target = self._random.sample([*THREADS], 2)
        if self._random.random() < 0.5:
            target = f"copy {self.made['copy']}"
        self._note("copy", source, target)
        got = await _outcome(self._saver.acopy_thread(source, target))
        self.made[f"copy: {got}"] += 1
        wanted = self._model.copy(source, target, self._mine)
        self._same(f"copy of {source} to {target}", got, wanted)

    async def _repair(self, place: Place) -> None:
        """Nothing died half-way: it must not change anything."""
        self._note("repair", place.thread)
        await self._saver.arepair([place.thread])


async def _outcome(call: Awaitable[object]) -> str:
    try:
        await call
    except DivergentCheckpointError:
        return DIVERGENT
    except WriterConflictError:
        return CONFLICT
    except DocumentNotFoundError:
        return LOST
    return OK


def _checkpoint(id: str, state: State) -> Checkpoint:
    made = checkpoint(id, state.values, state.versions)
    made["updated_channels"] = None if state.updated is None else [*state.updated]
    return made


def _place_of(found: CheckpointTuple) -> tuple[str, Place]:
    configurable = found.config["configurable"]
    place = Place(configurable["thread_id"], configurable["checkpoint_ns"])
    return id_of(found), place


def _state_of(found: CheckpointTuple) -> State:
    return State(
        parent_of(found),
        found.checkpoint["channel_values"],
        found.checkpoint["channel_versions"],
        found.metadata,
        found.checkpoint["updated_channels"],
    )


def _writes_of(writes: Iterable[Sequence[Any]] | None) -> list[Write]:
    return [(task, channel, value) for task, channel, value in writes or ()]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}… ({len(text)})"
