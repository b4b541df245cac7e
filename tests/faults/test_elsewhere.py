"""What holds on the stores of `tests/checkpoint` holds on a bucket without batches,
and through the blocking methods: the same tests, on other kinds of saver.
"""

from __future__ import annotations

import pytest
from tests.checkpoint import (
    test_copy,
    test_delete,
    test_delta_history,
    test_identity,
    test_list,
    test_put,
    test_writes,
)
from tests.soak import SOAK

LEFT_OUT = {
    # Of one store or none.
    "test_a_long_walk_takes_few_requests",
    "test_any_history_is_that_of_langgraph_s_own_walks",
    "test_the_next_version_is_of_the_same_form",
    # The decision is pure, and has many cases.
    "test_a_filter_is_structural_equality_of_each_key",
    # Long, and in one namespace of eleven hundred checkpoints as well.
    "test_eleven_hundred_checkpoints_are_all_listed",
    "test_the_writes_of_two_thousand_tasks_are_all_there",
    # A blocking call reads its arguments when its thread runs, and cannot be cancelled.
    "test_cancelled_writes_are_there_all_or_none_and_can_be_repeated",
    "test_state_is_stored_as_it_was_at_the_call",
    "test_writes_are_stored_as_they_were_at_the_call",
    # The blocking double reads a listing at once: see test_listing.py.
    "test_a_listing_beside_a_prune_and_a_delete_ends_well",
    "test_a_half_read_listing_stands_in_nobody_s_way",
    "test_listings_that_are_abandoned_cost_nothing",
}

for module in (
    test_copy,
    test_delete,
    test_delta_history,
    test_identity,
    test_list,
    test_put,
    test_writes,
):
    tests = {name for name in vars(module) if name.startswith("test_")} - LEFT_OUT
    assert not tests & globals().keys()
    globals().update({name: getattr(module, name) for name in tests})


KINDS = ["plain", "memory blocking"]
if SOAK:
    KINDS += ["jetstream blocking", "plain blocking"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind
