"""Wrong arguments are refused under their names, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.checkpoint.saving import at, checkpoint, meta

from jskv_saver import (
    DocumentCheckpointSaver,
    Encryption,
    GraphVersion,
    JetStreamSaver,
    MemoryDocumentStore,
    Retention,
)
from jskv_saver.checkpoint.versions import GRAPH_VERSION
from jskv_saver.errors import GraphVersionError, InvalidRequestError

THREAD = at()
AT = at("1")
KEEP = Retention(keep_last=1)

SINGLE: list[Any] = [5, 1.5, True, "false", b"x", object(), math.nan]
CALLS: dict[str, tuple[Callable[[Any, Any], object], list[Any]]] = {
    "checkpoint": (lambda s, v: s.put(THREAD, v, {}, {}), [None, [], *SINGLE]),
    "metadata": (
        lambda s, v: s.put(THREAD, checkpoint("1"), v, {}),
        [None, [], *SINGLE],
    ),
    "new_versions": (
        lambda s, v: s.put(THREAD, checkpoint("1"), {}, v),
        [None, [["a"]], *SINGLE],
    ),
    "channel": (
        lambda s, v: s.put(THREAD, {**checkpoint("1"), "channel_values": v}, {}, {}),
        [["a"], {5: 1}, *SINGLE],
    ),
    "channel_versions": (
        lambda s, v: s.put(THREAD, {**checkpoint("1"), "channel_versions": v}, {}, {}),
        [["a"], *SINGLE],
    ),
    "write": (
        lambda s, v: s.put_writes(AT, v, "task"),
        [None, [5], ["ab"], [("a",)], [("a", 1, 2)], {"a": 1}, *SINGLE],
    ),
    "name of a channel": (
        lambda s, v: s.put_writes(AT, [(v, 1)], "task"),
        [None, 5, [], b"x"],
    ),
    "task_path": (
        lambda s, v: s.put_writes(AT, [("a", 1)], "task", v),
        [None, 5, [], b"x", datetime.now(UTC)],
    ),
    "filter": (lambda s, v: list(s.list(THREAD, filter=v)), [["a"], *SINGLE]),
    "channels": (
        lambda s, v: s.get_delta_channel_history(config=THREAD, channels=v),
        ["ab", b"ab", {"a": 1}, 5, object()],
    ),
    "name of a channel: history": (
        lambda s, v: s.get_delta_channel_history(config=THREAD, channels=v),
        [[5], [None], [["a"]]],
    ),
    "dry_run": (
        lambda s, v: s.prune(["t"], dry_run=v),
        [None, 0, "", "false", [], object()],
    ),
    "dry_run: retention": (
        lambda s, v: s.enforce_retention(KEEP, dry_run=v),
        [None, 0, "", "false", [], object()],
    ),
    "begun": (lambda s, v: s.admitted(begun=v), [None, 0, "false"]),
    "on_progress": (lambda s, v: s.repair(on_progress=v), SINGLE),
    "on_progress: verify": (lambda s, v: s.verify(on_progress=v), SINGLE),
    "on_progress: retention": (
        lambda s, v: s.enforce_retention(KEEP, on_progress=v),
        SINGLE,
    ),
    "older_than": (lambda s, v: s.prune(["t"], older_than=v), [10**400, math.inf]),
    "idle": (lambda s, v: Retention(idle=v), [10**400, -(10**400), math.nan]),
    "wait": (lambda s, v: s.lease("t", wait=v), [-(10**400), math.nan, "1"]),
    "serde": (lambda s, v: DocumentCheckpointSaver(s.store, serde=v), SINGLE),
    "bucket": (
        lambda s, v: JetStreamSaver.from_conn_string("nats://localhost:1", bucket=v),
        [None, 5, b"x", [], object()],
    ),
    "accepts": (
        lambda s, v: GraphVersion("2", accepts=v),
        [None, 5, "1", {"1": 1}, [1], [None], (each for each in "1")],
    ),
    "accept_plaintext": (
        lambda s, v: Encryption(Encryption.generate_key(), accept_plaintext=v),
        [None, 0, "false", "no", []],
    ),
    "variable": (lambda s, v: Encryption.from_env(v), [None, 5, b"x", []]),
}


class Untouched(MemoryDocumentStore):
    """Nobody asks it for a document, or for any other thing."""

    def _unasked(self, *args: object, **options: object) -> Any:
        raise AssertionError("this was sent")

    put = put_many = put_expiring = get = get_many = _unasked
    delete = delete_many = find = count = ids = _unasked


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param(argument, value, id=f"{argument}-{type(value).__name__}-{at}")
        for argument, (_, values) in CALLS.items()
        for at, value in enumerate(values)
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_sent(
    argument: str, value: Any
) -> None:
    call, _ = CALLS[argument]
    with DocumentCheckpointSaver(Untouched()) as saver:
        with pytest.raises(InvalidRequestError) as caught:
            call(saver, value)
    assert argument.partition(":")[0] in str(caught.value)


def test_a_wait_that_is_too_long_for_a_float_is_for_ever() -> None:
    with DocumentCheckpointSaver(MemoryDocumentStore()) as saver:
        with saver.lease("t", wait=10**400) as lease:
            assert not lease.lost


def test_a_version_that_is_no_text_is_another_version() -> None:
    store = MemoryDocumentStore()
    with DocumentCheckpointSaver(store) as plain:
        plain.put(THREAD, checkpoint("1"), meta(**{GRAPH_VERSION: ["1"]}), {})
    version = GraphVersion("2", accepts=frozenset({"1"}))
    with DocumentCheckpointSaver(store, graph_version=version) as saver:
        with pytest.raises(GraphVersionError):
            saver.get_tuple(THREAD)
