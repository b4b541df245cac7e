"""From any thread and any loop: an answer or a clear error, never a hang."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lifecycle import callers, ends
from tests.lifecycle.calls import ASYNCHRONOUS, BLOCKING, NOT_CALLS
from tests.lifecycle.child import run

from jskv_saver import DocumentCheckpointSaver

SCENARIOS = [
    callers.on_the_serving_loop,
    callers.from_24_threads,
    callers.with_the_default_executor_full,
    callers.without_a_serving_loop,
    callers.four_runs_each_with_a_saver,
    callers.from_another_loop,
    callers.whose_loop_is_gone,
    callers.that_ends_in_mid_call,
    callers.a_store,
    ends.after_close,
    ends.copied,
    ends.pickled,
    ends.forked_while_a_thread_serves,
    ends.forked_on_the_serving_loop,
    ends.forked_before_first_use,
    ends.forked_in_the_middle,
]


def test_no_public_method_is_left_out() -> None:
    public = {name for name in dir(DocumentCheckpointSaver) if name[0] != "_"}
    assert public == {*BLOCKING, *ASYNCHRONOUS, *NOT_CALLS}
    assert {f"a{name}" for name in BLOCKING} == ASYNCHRONOUS.keys() - {"asetup"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_saver_called(
    nats_url: str, bucket: str, scenario: Callable[[str, str], None]
) -> None:
    run(scenario, nats_url, bucket)
