"""One nats-server for a run, fresh names for each test.

A missing nats-server is a failure, never a skipped test.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from zlib import crc32

import nats
import pytest
from hypothesis import HealthCheck, settings
from nats.aio.client import Client
from nats.js.api import StreamConfig

from jskv_saver import LocalServer, _server_process
from jskv_saver._server_process import free_port

# Another server version for the whole run, for example one of a version matrix.
BINARY = os.environ.get("JSKV_TEST_NATS_SERVER")


def _share_the_ports(worker: str, workers: str) -> None:
    """Of several processes, none takes the port of another's server that was killed."""
    _server_process._PORTS //= int(workers)
    _server_process._FIRST_PORT += int(worker) * _server_process._PORTS


if "PYTEST_XDIST_WORKER" in os.environ:
    _share_the_ports(
        os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"),
        os.environ["PYTEST_XDIST_WORKER_COUNT"],
    )

_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "ci", max_examples=40, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile("soak", parent=settings.get_profile("ci"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


REPEATED = (
    "acceptance/test_graphs_resume.py",
    "attacks/",
    "checkpoint/test_interleavings.py",
    "contract/test_machine",
    "differential/",
    "documents/",
    "explorer/",
    "faults/test_elsewhere.py",
    "integration/test_bustle.py",
    "integration/test_crash_points.py",
    "limits/",
)
"""Tests that run again and again through what others have covered."""
ALIKE = ("plain", "remote")
"""Kinds of stores on which the contract is the same text once more."""
_TESTS = Path(__file__).parent

# Of what is repeated one in so many, another share each day: `make test-all` runs all.
SHARE = int(os.environ.get("JSKV_TEST_SHARE", "1"))
# The same for all processes of a run, which inherit it.
SEED = os.environ.setdefault("JSKV_TEST_SEED", str(int(time.time()) // 86_400))


def pytest_report_header() -> str:
    return f"share: 1 in {SHARE} of what is repeated, JSKV_TEST_SEED={SEED}"


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Measuring takes as long as running; what is repeated is not measured."""
    left: list[pytest.Item] = []
    for item in items:
        place = item.path.relative_to(_TESTS).as_posix()
        repeated = place.startswith(REPEATED)
        if repeated:
            item.add_marker(pytest.mark.no_cover)
        kind = item.name.partition("[")[2]
        alike = place.startswith("contract/") and any(each in kind for each in ALIKE)
        chosen = crc32(f"{SEED} {item.nodeid}".encode()) % SHARE == 0
        shown = place.startswith("documents/")
        if (alike or (repeated and not shown)) and not chosen:
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture(autouse=True)
def _children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are the processes that such a test starts."""
    if request.node.get_closest_marker("no_cover"):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture(scope="session")
def nats_server() -> Iterator[LocalServer]:
    with LocalServer(binary=BINARY, sync_interval="2m") as server:
        yield server
        # It would say goodbye to each of some thousand streams.
        server.kill()


@pytest.fixture
def nats_url(nats_server: LocalServer) -> str:
    return nats_server.url


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


@pytest.fixture
def bucket() -> str:
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture
async def plain_bucket(nats_url: str, bucket: str) -> str:
    """A bucket that nats-py made: it takes no batches, on a server of any version."""
    client = await nats.connect(nats_url)
    await client.jetstream().create_key_value(bucket=bucket, history=1, direct=True)
    await client.close()
    return bucket


@pytest.fixture
def own_server() -> Iterator[LocalServer]:
    """A server that the test may kill, start again, or fill."""
    with LocalServer(binary=BINARY, sync_interval="2m") as server:
        yield server


@pytest.fixture(scope="session")
def cluster() -> Iterator[Sequence[LocalServer]]:
    """Three servers with replicated JetStream, ready for streams of three replicas."""
    ports: set[int] = set()
    while len(ports) < 6:
        ports.add(free_port("127.0.0.1"))
    # Those for clients are chosen here too, so that nobody takes one for the routes.
    own, among = [*ports][:3], [*ports][3:]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in among)
    with ExitStack() as stack:
        servers = [
            LocalServer(
                port=port,
                binary=BINARY,
                sync_interval="2m",
                token="cluster",
                config=f'cluster {{ name: "test", listen: "127.0.0.1:{route}", '
                f"routes: [{routes}] }}",
            )
            for port, route in zip(own, among, strict=True)
        ]
        for server in servers:
            stack.enter_context(server)
        # A thread of its own: the test that asks for this may have a loop already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _replicated(servers[0].url)).result()
        yield servers
        for server in servers:
            server.kill()


async def _replicated(url: str) -> None:
    """Wait until a stream of three replicas can be made."""
    client = await nats.connect(url)
    jetstream = client.jetstream(timeout=1)
    stream = StreamConfig(name="ready", subjects=["ready"], num_replicas=3)
    async with asyncio.timeout(45):
        while True:
            try:
                await jetstream.add_stream(stream)
                break
            except nats.errors.Error:
                await asyncio.sleep(0.05)
    await jetstream.delete_stream("ready")
    await client.close()
