"""The process ends by itself, at once, and without a word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lifecycle import exits
from tests.lifecycle.child import run

SCENARIOS = [
    exits.never_used,
    exits.never_closed,
    exits.never_left,
    exits.dropped,
    exits.in_mid_listing,
    exits.with_daemon_threads,
    exits.interrupted_in_a_blocking_call,
    exits.interrupted_in_a_loop,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_process_that_ends(
    nats_url: str, bucket: str, scenario: Callable[[str, str], None]
) -> None:
    run(scenario, nats_url, bucket)
