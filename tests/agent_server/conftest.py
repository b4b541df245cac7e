"""A bucket behind a credentials file, and `langgraph dev` in front of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.isolation.operators import Operator, operated
from tests.patience import PATIENCE, wait_until

from jskv_saver._server_process import free_port

APP = Path(__file__).parent / "app"
DEV = "-m langgraph_cli dev --no-browser --no-reload --server-log-level INFO"


@dataclass(frozen=True)
class Place:
    """Where the bucket is, for the server and for who looks behind it."""

    url: str
    credentials: str
    home: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    operator = Operator()
    home = tmp_path_factory.mktemp("agent-server")
    credentials = home / "app.creds"
    credentials.write_text(operator.creds())
    shutil.copytree(APP, home / "app")
    with operated(operator, tmp_path_factory.mktemp("operator")) as url:
        yield Place(url, str(credentials), home)


@dataclass(frozen=True)
class Served:
    """A running `langgraph dev`: its address, and what it has printed."""

    url: str
    log: Path


Serve = Callable[..., AbstractContextManager[Served]]


@pytest.fixture(scope="module")
def serve(place: Place) -> Serve:
    @contextmanager
    def serving(**variables: str) -> Iterator[Served]:
        port = free_port("127.0.0.1")
        log = place.home / f"log-{port}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *DEV.split(), "--port", str(port)],
                cwd=place.home / "app",
                env=_environment(place) | variables,
                stdout=output,
                stderr=output,
            )
        try:
            _await_answer(process, f"http://127.0.0.1:{port}", log)
            yield Served(f"http://127.0.0.1:{port}", log)
            # As Ctrl-C does.
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()

    return serving


def _environment(place: Place) -> dict[str, str]:
    """Nothing of this process's but what any program needs; nothing calls home."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JSKV", "LANG", "NATS"))
    }
    return inherited | {
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "NATS_URL": place.url,
        "NATS_CREDS": place.credentials,
        "JSKV_BUCKET": "served",
        "JSKV_NAMESPACE": "my_app",
        "JSKV_AGENT_ID": "approval-v1",
    }


def _await_answer(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    def answers() -> bool:
        try:
            return httpx.get(f"{url}/ok").status_code == httpx.codes.OK
        except httpx.HTTPError:
            assert process.poll() is None, log.read_text()
            return False

    # Its imports alone are some six seconds of a processor.
    wait_until(answers, 4 * PATIENCE)
