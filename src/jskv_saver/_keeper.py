"""Runs a nats-server for an owner, and ends it when the owner is gone.

A script of its own, started by `LocalServer`; it imports nothing of this package.
The owner holds the write end of its standard input, so the end of that stream is
the owner's death, however it died.

    in   start | kill | stop
    out  pid PID | exit PID CODE | fail REASON
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any

_PATIENCE = 5.0


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode())


class _Server:
    """One nats-server process; its exit is reported as soon as it happens."""

    def __init__(self, settings: dict[str, Any]) -> None:
        with open(settings["log"], "ab") as log:
            self._process = subprocess.Popen(
                settings["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=settings["keep_open"],
                umask=0o077,
            )
        _say(f"pid {self._process.pid}")
        self._reaper = threading.Thread(target=self._reap, daemon=True)
        self._reaper.start()

    def _reap(self) -> None:
        code = self._process.wait()
        _say(f"exit {self._process.pid} {code}")

    def kill(self) -> None:
        self._process.kill()
        self._reaper.join()

    def stop(self) -> None:
        self._process.terminate()
        self._reaper.join(_PATIENCE)
        self.kill()


def main() -> None:
    """Obey the owner until it says stop or is gone."""
    # A handler, unlike SIG_IGN, is not inherited by the server. Whoever signals the
    # whole group ends the owner too, and that is what ends this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    settings = json.loads(sys.argv[1])
    server: _Server | None = None
    for line in sys.stdin:
        if line == "stop\n":
            break
        if line == "kill\n" and server:
            server.kill()
        elif line == "start\n":
            try:
                server = _Server(settings)
            except OSError as exc:
                _say(f"fail {exc}")
    else:
        if settings["detach"]:
            return
    if server:
        server.stop()
    if settings["remove"]:
        shutil.rmtree(settings["remove"], ignore_errors=True)


if __name__ == "__main__":
    main()
