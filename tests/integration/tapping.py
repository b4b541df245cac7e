"""What the tests of the tap share."""

from __future__ import annotations

import os
import signal
from typing import Any

from nats.aio.client import Client

from jskv_saver import LocalServer
from jskv_saver.adapters.jetstream.bucket import Bucket


def go_on(server: LocalServer) -> None:
    """After `stop`."""
    os.kill(server.pid, signal.SIGCONT)


async def is_tapped(kv: Bucket) -> bool:
    """Whether answers come past nats-py."""
    # The first ones may have to set the tap, and to wait for it.
    for _ in range(5):
        await kv.get("a")
    before = kv._requests._subscription.delivered
    for _ in range(10):
        await kv.get("a")
    through: int = kv._requests._subscription.delivered - before
    assert through in (0, 10)
    return through == 0


def socket_of(client: Client) -> Any:
    """The transport of a connection."""
    transport: Any = client._transport
    return transport._io_writer.transport
