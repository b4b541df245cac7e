"""What must hold in every state, however it came about: the invariants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from langgraph.checkpoint.base import CheckpointTuple
from tests.checkpoint.saving import at, checkpoint, id_of, listed, meta, parent_of
from tests.explorer.actors import full
from tests.explorer.ledger import Ledger, Put, PutWrites, Removal
from tests.explorer.sizes import ALONE
from tests.explorer.stored import copy_store, record_versions
from tests.explorer.table import Table

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.checkpoint.epochs import decode_epoch
from jskv_saver.checkpoint.layout import (
    PARTS,
    RECORDS,
    WRITES,
    Scope,
    decode_record,
    is_epoch,
)
from jskv_saver.checkpoint.values import uuid_of
from jskv_saver.checkpoint.writes import part_names
from jskv_saver.document.model import Document, path_of

SCOPE = Scope("default", "t", "")


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


async def check_state(store: MemoryDocumentStore, ledger: Ledger) -> None:
    """A reader who knows nothing finds all that must be there, whole."""
    async with DocumentCheckpointSaver(store) as saver:
        rows = await listed(saver, at())
        ids = [id_of(row) for row in rows]
        versions = record_versions(store._collections)
        require(ids == sorted(set(ids), reverse=True), f"listed as {ids}")
        missing = ledger.required() - set(ids)
        require(not missing, f"acknowledged, not removed and gone: {missing}")
        late = ledger.late(ids)
        require(not late, f"put under a lease that somebody else had taken: {late}")
        for row in rows:
            _check_row(row, ledger, versions)
            single = await saver.aget_tuple(row.config)
            require(single == row, f"{id_of(row)} by its id is not as it is listed")
            await _check_history(saver, row, ledger, versions)
        await _check_latest(saver, store, rows)
    _check_erased(store, ledger)


def _check_erased(store: MemoryDocumentStore, ledger: Ledger) -> None:
    """Of a thread that was deleted nothing comes back by a removal."""
    calls = [each for each in ledger.operations.values() if each.name[0] != "0"]
    if any(
        isinstance(each, Put | PutWrites) or not each.acknowledged for each in calls
    ):
        return
    if any(isinstance(each, Removal) and each.kind == "delete" for each in calls):
        left = [key for key, found in store._collections.items() if found.documents]
        require(not left, f"left of a thread that was deleted: {left}")


def _check_row(
    row: CheckpointTuple, ledger: Ledger, versions: Mapping[str, int]
) -> None:
    id = id_of(row)
    require(id in ledger.states, f"{id} was never put")
    state = ledger.states[id]
    values = row.checkpoint["channel_values"]
    require(values == state.values, f"{id} is not what was put: {values}")
    require(parent_of(row) == state.parent, f"{id} has another parent")
    require((row.metadata or {}).get("run_id") == state.run, f"{id} has other metadata")
    require(any(each.id == id and each.begun for each in ledger.puts), f"{id} is early")
    found = [(task, value) for task, _, value in row.pending_writes or ()]
    _check_writes(id, found, ledger, versions)


def _check_writes(
    id: str,
    found: Sequence[tuple[str, Any]],
    ledger: Ledger,
    versions: Mapping[str, int],
) -> None:
    calls = ledger.writes_of(id)
    tasks = {call.task for call in calls}
    for task, value in found:
        require(
            any(
                call.task == task and call.begun and value == entry[1]
                for call in calls
                for entry in call.entries.values()
            ),
            f"a write of {task} to {id} that nobody put",
        )
    require([t for t, _ in found] == sorted(t for t, _ in found), "order of tasks")
    for task in tasks:
        mine = [call for call in calls if call.task == task and call.begun]
        there = [value for other, value in found if other == task]
        for call in mine:
            if ledger.is_required(call, versions):
                _check_call(call, mine, there)


def _check_call(
    call: PutWrites, calls: Sequence[PutWrites], there: Sequence[Any]
) -> None:
    """That of an acknowledged call each write is there, or one that goes before it."""
    for index, (_, value) in call.entries.items():
        rivals = [
            other.entries[index][1]
            for other in calls
            if other is not call
            and index in other.entries
            and not _precedes(call, other, index)
        ]
        require(
            value in there or any(rival in there for rival in rivals),
            f"a write of {call.task} to {call.id} is gone",
        )
        for other in calls:
            if index in other.entries and other is not call:
                loser = other.entries[index][1]
                if _precedes(call, other, index):
                    require(loser not in there, f"{call.task} to {call.id}: replaced")


def _precedes(one: PutWrites, other: PutWrites, index: int) -> bool:
    """Whether of two writes to an index the one stays for sure.

    A regular one if it was there before, a special one if it came after.
    """
    if index >= 0:
        return one.name in other.after
    return other.name in one.after


async def _check_latest(
    saver: DocumentCheckpointSaver,
    store: MemoryDocumentStore,
    rows: Sequence[CheckpointTuple],
) -> None:
    documents = (await store.find("default", RECORDS, within=SCOPE.prefix)).items
    epochs = [decode_epoch(each) for each in documents if is_epoch(each)]
    records = [decode_record(each) for each in documents if not is_epoch(each)]
    alive = {
        record.id
        for record in records
        if not any(record.version <= epoch.dead.get(record.id, -1) for epoch in epochs)
    }
    latest = await saver.aget_tuple(at())
    expected = [row for row in rows if id_of(row) in alive][:1]
    # Where all are named as dead nobody is the latest, or still one of them.
    require(
        latest in expected if expected else latest is None or latest in rows,
        f"the latest is {latest and id_of(latest)}, not {[*map(id_of, expected)]}",
    )


async def _check_history(
    saver: DocumentCheckpointSaver,
    row: CheckpointTuple,
    ledger: Ledger,
    versions: Mapping[str, int],
) -> None:
    id = id_of(row)
    if not ledger.states[id].deltas:
        return
    histories = await saver.aget_delta_channel_history(
        config=row.config, channels=["d"]
    )
    history = histories["d"]
    found = [write[2] for write in history["writes"]]
    calls: list[PutWrites] = []
    parent = ledger.states[id].parent
    seed: Any = None
    while parent is not None and seed is None:
        calls += ledger.writes_of(parent)
        seed = ledger.states[parent].values.get("d")
        parent = ledger.states[parent].parent
    require(history.get("seed") == seed, f"the history of {id} has another seed")
    for call in calls:
        for channel, value in call.entries.values():
            if channel == "d" and ledger.is_required(call, versions):
                require(value in found, f"the history of {id} lacks a write")
    known = [v for call in calls if call.begun for _, v in call.entries.values()]
    require(all(value in known for value in found), f"the history of {id} has more")


def _documents(store: MemoryDocumentStore, name: str) -> Iterator[Document]:
    found = store._collections.get(("default", name))
    return iter(found.documents.values()) if found else iter(())


def check_clean(store: MemoryDocumentStore) -> None:
    """Nothing lies about that nobody refers to, and nothing that is named is gone."""
    records = [decode_record(d) for d in _documents(store, RECORDS) if not is_epoch(d)]
    brought = {record.id: record.brought for record in records}
    named, apart = set[str](), set[str]()
    for record in records:
        located = record.located
        for digest in record.digests():
            named.add(digest.hex())
            id = located.get(digest)
            if id is None or digest not in brought.get(uuid_of(id), {}):
                apart.add(digest.hex())
    stored = {path_of(document.id)[-1] for document in _documents(store, PARTS)}
    require(stored <= named, f"{len(stored - named)} parts that nobody refers to")
    require(apart <= stored, f"{len(apart - stored)} parts are nowhere")
    paths = {path_of(document.id): document for document in _documents(store, WRITES)}
    tasks = {path: task for path, task in paths.items() if len(path) == 5}
    parts = {(*path, name) for path, t in tasks.items() for name in part_names(t)}
    require(parts == paths.keys() - tasks.keys(), "parts of writes")


async def check_recovery(stored: MemoryDocumentStore, ledger: Ledger) -> None:
    """If all died here: repaired, continued and pruned, all is whole and clean."""
    store = copy_store(stored)
    async with DocumentCheckpointSaver(store) as saver:
        await saver.arepair(["t"])
        check_clean(store)
        await check_state(store, ledger)
        before = [id_of(row) for row in await listed(saver, at())]
        latest = await saver.aget_tuple(at())
        require((latest is None) == (not before), "a latest that is not listed")
        await saver.aprune(["t"])
        rows = await listed(saver, at())
        require(
            not before or (bool(rows) and id_of(rows[0]) == before[0]),
            "the prune took the latest",
        )
        for row in rows:
            _check_row(row, ledger, record_versions(store._collections))
            await _check_history(
                saver, row, ledger, record_versions(store._collections)
            )
        await saver.arepair(["t"])
        check_clean(store)
        await _go_on(saver, latest)


async def _go_on(
    saver: DocumentCheckpointSaver, latest: CheckpointTuple | None
) -> None:
    """The thread goes on where it was."""
    values = latest.checkpoint["channel_values"] if latest else {}
    values = {**values, "own": "next " * ALONE}
    id = full("99")
    versions = dict.fromkeys(values, id)
    parent = id_of(latest) if latest else None
    await saver.aput(
        at(parent), checkpoint(id, values, versions), meta(), dict(versions)
    )
    found = await saver.aget_tuple(at())
    require(
        found is not None and found.checkpoint["channel_values"] == values,
        "the thread does not go on",
    )


class Game(Protocol):
    """What is checked."""

    ledger: Ledger

    @property
    def store(self) -> MemoryDocumentStore: ...

    @property
    def failures(self) -> Mapping[str, BaseException]: ...


class Checker:
    """Checks each state once."""

    def __init__(self, table: Table, recovery: int) -> None:
        self._table = table
        self._recovery = recovery
        self._seen: set[bytes] = set()

    def check(self, game: Game, readable: bytes) -> None:
        """Check a state with this name."""
        for name, failure in game.failures.items():
            if not isinstance(failure, self._table.scenario.may_raise):
                raise Violation(f"{name} failed: {failure!r}") from failure
        if readable in self._seen:
            return
        self._seen.add(readable)
        self._table.nonces.draws("9", {})
        store = game.store
        self._table.loop.finish(check_state(store, game.ledger))
        if self._recovery and readable[0] % self._recovery == 0:
            self._table.loop.finish(check_recovery(store, game.ledger))
