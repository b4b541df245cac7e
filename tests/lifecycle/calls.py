"""Every public method of a saver, called; and savers on each store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from tests.checkpoint.saving import at, checkpoint, get, id_of, ids, meta, put
from tests.lifecycle.child import say

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamSaver,
    MemoryDocumentStore,
    Retention,
)
from jskv_saver.errors import StoreClosedError

PROMPT = 4.0
"""Seconds that an immediate answer may take; who waits in vain waits for five."""

Open = Callable[[], DocumentCheckpointSaver]
KEEPS = Retention(keep_last=1000)
"""Removes nothing of what is put here."""

BLOCKING: dict[str, Callable[[DocumentCheckpointSaver], object]] = {
    "put": lambda s: s.put(at(), checkpoint("2"), meta(), {}),
    "put_writes": lambda s: s.put_writes(at("1"), [("a", 1)], "task"),
    "get_tuple": lambda s: s.get_tuple(at()),
    "get": lambda s: s.get(at()),
    "list": lambda s: list(s.list(at())),
    "get_delta_channel_history": lambda s: s.get_delta_channel_history(
        config=at(), channels=["x"]
    ),
    "copy_thread": lambda s: s.copy_thread("t", "u"),
    "delete_thread": lambda s: s.delete_thread("u"),
    "delete_for_runs": lambda s: s.delete_for_runs(["r"]),
    "prune": lambda s: s.prune(["u"]),
    "repair": lambda s: s.repair(["u"]),
    "verify": lambda s: s.verify(["u"], settle=0),
    "enforce_retention": lambda s: s.enforce_retention(KEEPS),
    "pin": lambda s: s.pin("t"),
    "pinned": lambda s: s.pinned(),
    "unpin": lambda s: s.unpin("t"),
    "admit": lambda s: s.admit(at(thread="u"), "asked", request_id="once"),
    "admitted": lambda s: s.admitted("u"),
}
ASYNCHRONOUS: dict[
    str, Callable[[DocumentCheckpointSaver], Coroutine[Any, Any, object]]
] = {
    "aput": lambda s: s.aput(at(), checkpoint("2"), meta(), {}),
    "aput_writes": lambda s: s.aput_writes(at("1"), [("a", 1)], "task"),
    "aget_tuple": lambda s: s.aget_tuple(at()),
    "aget": lambda s: s.aget(at()),
    "alist": lambda s: ids(s, at()),
    "aget_delta_channel_history": lambda s: s.aget_delta_channel_history(
        config=at(), channels=["x"]
    ),
    "acopy_thread": lambda s: s.acopy_thread("t", "u"),
    "adelete_thread": lambda s: s.adelete_thread("u"),
    "adelete_for_runs": lambda s: s.adelete_for_runs(["r"]),
    "aprune": lambda s: s.aprune(["u"]),
    "arepair": lambda s: s.arepair(["u"]),
    "averify": lambda s: s.averify(["u"], settle=0),
    "aenforce_retention": lambda s: s.aenforce_retention(KEEPS),
    "apin": lambda s: s.apin("t"),
    "apinned": lambda s: s.apinned(),
    "aunpin": lambda s: s.aunpin("t"),
    "aadmit": lambda s: s.aadmit(at(thread="u"), "asked", request_id="once"),
    "aadmitted": lambda s: s.aadmitted("u"),
    "asetup": lambda s: s.asetup(),
}
NOT_CALLS = {
    # The ends of a saver are subjects of their own; `setup` is either kind.
    *("close", "aclose", "setup"),
    # Nothing is sent before they are entered (tests/lease), or asked for the next
    # thing that happens (tests/checkpoint/test_watch.py).
    *("lease", "watch"),
    # Pure: they speak to no store.
    *("get_next_version", "with_allowlist", "config_specs", "serde"),
}


def opens(url: str, bucket: str) -> Iterator[Open]:
    """What opens savers: of one memory store, and of one bucket; says which."""
    shared = MemoryDocumentStore()
    say("memory")
    yield lambda: DocumentCheckpointSaver(shared)
    say("jetstream")
    yield lambda: JetStreamSaver.from_conn_string(url, bucket=bucket)


def use(saver: DocumentCheckpointSaver, name: str) -> None:
    """The whole life of a thread, blocking."""
    config = saver.put(at(thread=name), checkpoint("1", {"x": name}), meta(), {})
    saver.put_writes(config, [("c", name)], "task")
    found = saver.get_tuple(at(thread=name))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": name}
    assert found.pending_writes == [("task", "c", name)]
    assert [id_of(f) for f in saver.list(at(thread=name))] == ["1"]
    saver.copy_thread(name, name + " copy")
    saver.prune([name + " copy"])
    assert saver.get(at(thread=name + " copy")) == found.checkpoint
    saver.delete_thread(name + " copy")
    assert list(saver.list(at(thread=name + " copy"))) == []


async def ause(saver: DocumentCheckpointSaver, name: str) -> None:
    """The same, asynchronous."""
    await put(saver, "1", {"x": name}, thread=name)
    await saver.aput_writes(at("1", thread=name), [("c", name)], "task")
    found = await get(saver, thread=name)
    assert found.checkpoint["channel_values"] == {"x": name}
    assert found.pending_writes == [("task", "c", name)]
    assert await ids(saver, at(thread=name)) == ["1"]


@contextmanager
def raises(kind: type[Exception], what: str, *words: str) -> Iterator[None]:
    """An error at once, whose text has some words; `what` names who was called."""
    start, text = time.monotonic(), None
    try:
        yield
    except kind as error:
        text = str(error)
    took = time.monotonic() - start
    assert text is not None, f"{what}: no {kind.__name__}"
    missing = [word for word in words if word not in text]
    assert not missing, f"{what}: no {missing} in {text!r}"
    assert took < PROMPT, f"{what}: {kind.__name__} only after {took:.1f} s"


def blocking_raise(saver: DocumentCheckpointSaver, *words: str) -> None:
    """Each blocking method says at once that there is nothing to call any more."""
    for name, call in BLOCKING.items():
        with raises(StoreClosedError, name, *words):
            call(saver)
    with raises(StoreClosedError, "setup", *words):
        saver.setup()


async def asynchronous_raise(saver: DocumentCheckpointSaver, *words: str) -> None:
    """The same of each asynchronous method."""
    for name, call in ASYNCHRONOUS.items():
        with raises(StoreClosedError, name, *words):
            await call(saver)
    with raises(StoreClosedError, "setup", *words):
        await saver.setup()


def all_raise(saver: DocumentCheckpointSaver, *words: str) -> None:
    """The same of all, where no loop runs."""
    blocking_raise(saver, *words)
    asyncio.run(asynchronous_raise(saver, *words))
