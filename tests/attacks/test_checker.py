"""The checker of histories: good ones pass, and each kind of bad one is caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.attacks.checker import forks, violations
from tests.attacks.history import Event, Log, merged

from jskv_saver.errors import StoreUnavailableError, UnknownOutcomeError

VALUES = {"x": "digest of x", "y": "digest of y"}


def event(operation: str, start: int, end: int | None, **more: Any) -> Event:
    known = {"answer", "error", "process", "thread"}
    fields = {name: more.pop(name) for name in known & more.keys()}
    return Event(
        fields.pop("process", "p"),
        operation,
        fields.pop("thread", "t"),
        more,
        start,
        end,
        **fields,
    )


def put(start: int, end: int | None, id: str = "1", **more: Any) -> Event:
    args = {"id": id, "parent": None, "values": VALUES, "run": f"run of {id}"}
    return event("put", start, end, **args | more)


def wrote(start: int, end: int | None, *writes: list[str], **more: Any) -> Event:
    args: dict[str, Any] = {"id": "1", "task": "task", "path": "~1", "writes": writes}
    return event("writes", start, end, **args | more)


def row(id: str = "1", *writes: list[str], **more: Any) -> dict[str, Any]:
    return {"id": id, "parent": None, "values": VALUES, "writes": list(writes), **more}


def get(start: int, end: int, answer: Any, id: str | None = None, **more: Any) -> Event:
    return event("get", start, end, id=id, answer=answer, **more)


def lists(start: int, end: int, *rows: Any) -> Event:
    return event("list", start, end, answer=list(rows))


A, B = ["a", "value a"], ["b", "value b"]
TA, TB = ["task", *A], ["task", *B]

GOOD: dict[str, list[Event]] = {
    "nothing": [],
    "put and read": [put(0, 1), get(2, 3, row()), lists(4, 5, row())],
    "a put that is under way": [put(0, 9), get(1, 2, None), get(3, 4, row())],
    "a put without an answer that is there": [
        put(0, 1, error="UnknownOutcomeError"),
        get(2, 3, row()),
    ],
    "a put without an answer that comes late": [
        put(0, None),
        get(2, 3, None),
        get(4, 5, row()),
    ],
    "a put that was refused": [
        put(0, 1, error="StoreUnavailableError"),
        get(2, 3, None, id="1"),
    ],
    "the same put again": [put(0, 1), put(2, 3), get(4, 5, row())],
    "another put under the id, refused": [
        put(0, 1),
        put(2, 3, values={"x": "other"}, error="DivergentCheckpointError"),
        get(4, 5, row()),
    ],
    "a smaller id afterwards": [
        put(0, 1, "2"),
        put(2, 3, "1"),
        get(4, 5, row("2")),
        lists(6, 7, row("2"), row("1")),
    ],
    "a read that failed": [
        put(0, 1),
        get(2, 3, None, error="StoreUnavailableError"),
    ],
    "deleted": [
        put(0, 1),
        event("delete_thread", 2, 3),
        get(4, 5, None),
        lists(6, 7),
    ],
    "a deletion under way": [
        put(0, 1),
        event("delete_thread", 2, None),
        get(4, 5, row()),
        get(6, 7, None),
    ],
    "deleted and put again, otherwise": [
        put(0, 1),
        get(2, 3, row()),
        event("delete_thread", 4, 5),
        put(6, 7, values={"x": "new"}),
        get(8, 9, row(values={"x": "new"})),
    ],
    "pruned": [
        put(0, 1),
        put(2, 3, "2"),
        event("prune", 4, 5),
        get(6, 7, None, id="1"),
        lists(8, 9, row("2")),
    ],
    "a run deleted": [
        put(0, 1),
        put(2, 3, "2"),
        event("delete_runs", 4, 5, runs=["run of 2"]),
        get(6, 7, row("1")),
    ],
    "writes": [
        put(0, 1),
        wrote(2, 3, A, B),
        get(4, 5, row("1", TA, TB)),
    ],
    "writes before their checkpoint": [
        wrote(0, 1, A),
        put(2, 3),
        get(4, 5, row("1", TA)),
    ],
    "a second regular write": [
        put(0, 1),
        wrote(2, 3, A),
        wrote(4, 5, ["a", "later"]),
        get(6, 7, row("1", TA)),
    ],
    "two regular writes at once": [
        put(0, 1),
        wrote(2, 5, A),
        wrote(3, 4, ["a", "later"]),
        get(6, 7, row("1", ["task", "a", "later"])),
    ],
    "a second special write": [
        put(0, 1),
        wrote(2, 3, ["__error__", "old"]),
        wrote(4, 5, ["__error__", "new"]),
        get(6, 7, row("1", ["task", "__error__", "new"])),
    ],
    "writes that were lost with their writer": [
        put(0, 1),
        wrote(2, None, A, B),
        get(4, 5, row()),
    ],
    "writes of a pruned checkpoint that is put again": [
        put(0, 1),
        put(0, 1, "2"),
        wrote(2, 3, A),
        event("prune", 4, 5),
        put(6, 7),
        get(8, 9, row(), id="1"),
    ],
    "other threads": [put(0, 1), get(2, 3, None, thread="u")],
}

BAD: dict[str, tuple[str, list[Event]]] = {
    "an acknowledged put is lost": ("misses", [put(0, 1), get(2, 3, None, id="1")]),
    "an acknowledged put is not the latest": (
        "the latest misses",
        [put(0, 1), put(2, 3, "2"), get(4, 5, row("1"))],
    ),
    "a thread seems empty": ("misses", [put(0, 1), get(2, 3, None)]),
    "a listing misses one": (
        "a listing misses",
        [put(0, 1), put(2, 3, "2"), lists(4, 5, row("2"))],
    ),
    "the latest goes back within one observer": (
        "the latest misses",
        [put(0, 1), put(0, None, "2"), get(2, 3, row("2")), get(4, 5, row("1"))],
    ),
    "the latest goes back from one observer to another": (
        "the latest misses",
        [
            put(0, 1),
            put(0, None, "2"),
            get(2, 3, row("2"), process="q"),
            get(4, 5, row("1"), process="r"),
        ],
    ),
    "a put is torn": ("torn", [put(0, 1), get(2, 3, row(values={"x": VALUES["x"]}))]),
    "a put without an answer is half there": (
        "torn",
        [put(0, None), get(2, 3, row(values=VALUES | {"y": "old"}))],
    ),
    "a value of nobody": ("nobody put", [get(2, 3, row("7"))]),
    "a refused put is there": (
        "was refused",
        [put(0, 1, error="StorageFullError"), get(2, 3, row())],
    ),
    "a wrong parent": ("wrong parent", [put(0, 1), get(2, 3, row(parent="0"))]),
    "another id than was asked for": ("asked for", [put(0, 1), get(2, 3, row(), "0")]),
    "two contents under one id": (
        "both acknowledged",
        [put(0, 1), put(2, 3, values={"x": "other"})],
    ),
    "a checkpoint that changes": (
        "has changed",
        [
            put(0, None),
            put(0, None, values={"x": "other"}),
            get(2, 3, row()),
            get(4, 5, row(values={"x": "other"})),
        ],
    ),
    "a listing out of order": (
        "not in order",
        [put(0, 1), put(0, 1, "2"), lists(2, 3, row("1"), row("2"))],
    ),
    "a row twice": ("not in order", [put(0, 1), lists(2, 3, row("1"), row("1"))]),
    "what was deleted comes back": (
        "comes back",
        [put(0, 1), event("delete_thread", 2, 3), get(4, 5, row())],
    ),
    "a prune takes the latest": (
        "misses",
        [put(0, 1), put(0, 1, "2"), event("prune", 2, 3), get(4, 5, row("1"))],
    ),
    "the deletion of a run takes another's": (
        "misses",
        [put(0, 1), event("delete_runs", 2, 3, runs=["r"]), get(4, 5, None)],
    ),
    "damage": (
        "CorruptDocumentError",
        [put(0, 1), get(2, 3, None, error="CorruptDocumentError")],
    ),
    "a read of unknown outcome": (
        "only reads",
        [get(2, 3, None, error="UnknownOutcomeError")],
    ),
    "an error of nobody": ("KeyError", [put(0, 1, error="KeyError")]),
    "a pending write is lost": (
        "acknowledged writes are lost",
        [put(0, 1), wrote(2, 3, A), get(4, 5, row())],
    ),
    "a pending write is there twice": (
        "twice",
        [put(0, 1), wrote(2, 3, A), get(4, 5, row("1", TA, TA))],
    ),
    "a write of nobody": ("nobody wrote", [put(0, 1), get(2, 3, row("1", TA))]),
    "half of a call's writes": (
        "half of",
        [put(0, 1), wrote(2, None, A, B), get(4, 5, row("1", TA))],
    ),
    "a later regular write wins": (
        "a later write",
        [
            put(0, 1),
            wrote(2, 3, A),
            wrote(4, 5, ["a", "later"]),
            get(6, 7, row("1", ["task", "a", "later"])),
        ],
    ),
    "an earlier special write wins": (
        "an earlier special write",
        [
            put(0, 1),
            wrote(2, 3, ["__error__", "old"]),
            wrote(4, 5, ["__error__", "new"]),
            get(6, 7, row("1", ["task", "__error__", "old"])),
        ],
    ),
    "a regular write that changes": (
        "was read once",
        [
            put(0, 1),
            wrote(2, None, A),
            wrote(2, None, ["a", "other"]),
            get(4, 5, row("1", TA)),
            get(6, 7, row("1", ["task", "a", "other"])),
        ],
    ),
    "a write that vanishes": (
        "was read once",
        [put(0, 1), wrote(2, None, A), get(4, 5, row("1", TA)), get(6, 7, row())],
    ),
    "writes in the wrong order of their numbers": (
        "wrong order",
        [put(0, 1), wrote(2, 3, A, B), get(4, 5, row("1", TB, TA))],
    ),
    "writes in the wrong order of their paths": (
        "wrong order",
        [
            put(0, 1),
            wrote(2, 3, A),
            wrote(2, 3, B, task="other", path="~0"),
            get(4, 5, row("1", TA, ["other", *B])),
        ],
    ),
    "a refused write is there": (
        "nobody wrote",
        [
            put(0, 1),
            wrote(2, 3, A, error="StorageFullError"),
            get(4, 5, row("1", TA)),
        ],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    assert violations(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_caught(name: str) -> None:
    what, events = BAD[name]
    found = violations(events)
    assert any(what in text for text in found), found


def test_two_steps_after_one_checkpoint_are_a_fork() -> None:
    chain = [put(0, 1), put(2, 3, "2", parent="1"), put(4, 5, "3", parent="2")]
    refused = put(6, 7, "4", parent="1", error="WriterConflictError")
    assert forks([*chain, chain[1], refused]) == []
    assert len(forks([*chain, put(8, 9, "5", parent="2")])) == 1


async def test_a_log_says_what_was_called_and_answered(tmp_path: Path) -> None:
    async def answer(value: Any) -> Any:
        return value

    async def fail(error: Exception) -> Any:
        raise error

    logs = [Log(tmp_path / name, name) for name in "pq"]
    args: dict[str, Any] = {"id": "1", "parent": None, "values": {}, "run": None}
    await logs[0].call("put", "t", args, answer({}))
    await logs[1].call("put", "t", args, fail(UnknownOutcomeError("lost")))
    await logs[0].call("get", "t", {"id": None}, answer(None))
    await logs[1].call("list", "t", {}, fail(StoreUnavailableError("gone")))
    with pytest.raises(KeyError):
        await logs[1].call("put", "t", args, fail(KeyError()))
    # A process that dies in a call leaves its beginning.
    logs[0]._write(n=9, operation="prune", thread="t", args={}, start=2**62)
    for log in logs:
        log.close()

    events = merged([tmp_path / "p", tmp_path / "q"])
    assert [(e.process, e.operation, e.outcome) for e in events] == [
        ("p", "put", "done"),
        ("q", "put", "unknown"),
        ("p", "get", "done"),
        ("q", "list", "refused"),
        ("q", "put", "refused"),
        ("p", "prune", "unknown"),
    ]
    assert [e.start for e in events] == sorted(e.start for e in events)
    assert all(e.end is None or e.end >= e.start for e in events)
    assert violations(events) == [
        "t: put ends with KeyError",
        "t: the latest misses 1, which is there",
    ]
