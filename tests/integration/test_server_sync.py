"""Whether a LocalServer syncs before it acknowledges, as it says of itself."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.request import urlopen

import pytest
from tests.patience import PATIENCE

from jskv_saver import LocalServer

MONITORED = 'http: "127.0.0.1:-1"'
MINUTE = 60 * 10**9


def _written_ports(server: LocalServer) -> str:
    """The server's file of its ports: there first, and then filled."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for path in server.store_dir.parent.glob("*.ports"):
            if text := path.read_text():
                return text
    raise AssertionError("the server has written no ports")


def jetstream_of(server: LocalServer) -> dict[str, Any]:
    """JetStream's settings in the server's own words."""
    (address,) = json.loads(_written_ports(server))["monitoring"]
    with urlopen(f"{address}/varz", timeout=5) as answer:
        settings: dict[str, Any] = json.load(answer)["jetstream"]["config"]
    return settings


def test_it_syncs_every_message_unless_told_otherwise() -> None:
    with LocalServer(config=MONITORED) as server:
        assert jetstream_of(server)["sync_always"] is True


@pytest.mark.parametrize(
    ("interval", "nanoseconds"), [("2m", 2 * MINUTE), ("30s", MINUTE // 2)]
)
def test_with_an_interval_it_does_not(interval: str, nanoseconds: int) -> None:
    with LocalServer(sync_interval=interval, config=MONITORED) as server:
        settings = jetstream_of(server)
        assert not settings.get("sync_always")
        assert settings["sync_interval"] == nanoseconds


def test_it_still_does_after_it_was_killed_and_started_again() -> None:
    with LocalServer(config=MONITORED) as server:
        server.kill()
        (stale,) = server.store_dir.parent.glob("*.ports")
        stale.unlink()
        server.start()
        assert jetstream_of(server)["sync_always"] is True
