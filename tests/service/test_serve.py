"""The command `jskv serve` with a server of its own, and its mistakes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jskv_saver import RemoteDocumentStore

COMMAND = [sys.executable, "-m", "jskv_saver", "serve"]


async def test_one_command_starts_server_and_service(tmp_path: Path) -> None:
    options = ["--local", "--store", str(tmp_path / "data"), "--name", "docs"]
    for turn in range(2):
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout
        first = (await process.stdout.readline()).decode()
        second = (await process.stdout.readline()).decode()
        assert first.startswith("NATS server at nats://"), await process.communicate()
        url = first.split()[-1]
        assert second.startswith("serving bucket jskv at nats://127.0.0.1:")
        assert " as docs " in second
        # The login is told once, where the address is.
        assert url.partition("@")[0] not in second
        async with RemoteDocumentStore.from_conn_string(url) as store:
            if turn == 0:
                await store.put("owner", "cp", "a", {"n": 1})
            assert (await store.get("owner", "cp", "a")).data == {"n": 1}
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 0, err.decode()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "4222"], "--store and --port go with --local"),
        (["--local", "--server", "nats://x"], "no --server"),
        (["--server", "http://x"], "its scheme is 'http'"),
        (["--server", "nats://127.0.0.1:1"], "no NATS server at"),
        (["--local", "--name", "a b"], "cannot be called 'a b'"),
        (["--local", "--inbox-prefix", "$KV"], "no prefix of inboxes"),
    ],
)
def test_a_mistake_is_one_line(options: list[str], told: str) -> None:
    done = subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
