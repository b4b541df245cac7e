"""Tasks, consumers, sockets and memory return to where they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conftest import BINARY
from tests.lifecycle import leftovers
from tests.lifecycle.child import run

from jskv_saver import LocalServer
from jskv_saver._server_process import free_port

SCENARIOS = [
    leftovers.servers_started_and_stopped,
    leftovers.listings_given_up,
    leftovers.listings_beside_writers,
    leftovers.two_thousand_operations,
    leftovers.more_threads_than_are_remembered,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_nothing_is_left_of(
    nats_url: str, bucket: str, scenario: Callable[[str, str], None]
) -> None:
    run(scenario, nats_url, bucket)


@pytest.fixture
def watched_server() -> Iterator[tuple[str, str]]:
    """A server of the test's own, and the address that tells its connections."""
    monitor = f"127.0.0.1:{free_port('127.0.0.1')}"
    more = f'http: "{monitor}"'
    with LocalServer(binary=BINARY, sync_interval="2m", config=more) as server:
        yield server.url, f"http://{monitor}"


def test_nothing_is_left_of_savers_opened_and_closed(
    watched_server: tuple[str, str], bucket: str
) -> None:
    url, monitor = watched_server
    run(leftovers.savers_opened_and_closed, url, bucket, monitor)
