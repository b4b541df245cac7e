"""Processes that have the service's subjects only, and those that serve them.

    python -m tests.service.processes SETTINGS-AS-JSON

runs a graph over a remote store, prints its state as one line of JSON, and lives on
until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.types import Command
from tests.acceptance.graphs import GRAPHS

from jskv_saver import DocumentCheckpointSaver, LocalServer, RemoteDocumentStore

ROOT = Path(__file__).parents[2]
USERS = """
authorization {
  users = [
    {user: admin, password: pw}
    {user: app, password: pw, permissions: {
      publish: ["jskv.v1.>"], subscribe: ["_INBOX.>"]
    }}
    {user: reader, password: pw, permissions: {
      publish: ["jskv.v1.owner.get"], subscribe: ["_INBOX.>"]
    }}
  ]
}
"""


@contextmanager
def guarded_server() -> Iterator[LocalServer]:
    """A server with a user `app`, who may do nothing but ask the service."""
    with LocalServer(
        user="admin", password="pw", sync_interval="2m", config=USERS
    ) as server:
        yield server


def as_app(server: LocalServer, user: str = "app") -> str:
    return f"nats://{user}:pw@127.0.0.1:{server.port}"


@asynccontextmanager
async def serving(
    url: str, bucket: str, *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command `jskv serve`, when it serves; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "jskv_saver",
        "serve",
        "--server",
        url,
        "--bucket",
        bucket,
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        line = await process.stdout.readline()
        assert line.startswith(f"serving bucket {bucket}".encode()), line
        yield process
    finally:
        await kill(process)


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[dict[str, Any]]:
    """A process that runs a graph: the state it came to. Killed -9 at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.service.processes",
        json.dumps(settings),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        assert process.stderr
        line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        state: dict[str, Any] = json.loads(line)
        yield state
    finally:
        await kill(process)


async def kill(process: asyncio.subprocess.Process) -> None:
    """End a process by SIGKILL, and wait until it has."""
    if process.returncode is None:
        process.kill()
    await process.communicate()


async def main(settings: dict[str, Any]) -> None:
    """Run what the settings say: url, graph, configurable, input or resume."""
    store = RemoteDocumentStore.from_conn_string(settings["url"])
    given = settings.get("input")
    if "resume" in settings:
        given = Command(resume=settings["resume"])
    async with DocumentCheckpointSaver(store, close_store=True) as saver:
        graph = GRAPHS[settings["graph"]]().compile(checkpointer=saver)
        config: Any = {"configurable": settings["configurable"]}
        state = await graph.ainvoke(given, config, durability="sync")
        asked = [each.value for each in state.pop("__interrupt__", [])]
        print(json.dumps({**state, "asked": asked}), flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
