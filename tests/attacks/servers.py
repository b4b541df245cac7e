"""What happens to servers."""

from __future__ import annotations

import os
import signal

from jskv_saver import LocalServer


def terminate(server: LocalServer) -> None:
    """SIGTERM, as an operator does it; the store stays."""
    os.kill(server.pid, signal.SIGTERM)
    assert server._keeper
    while server._keeper.runs():
        server._keeper.listen(0.05)
