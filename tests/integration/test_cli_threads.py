"""`jskv threads`: which, in which order, how many; and how commands end."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import time
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from tests.checkpoint.saving import put
from tests.integration.commands import Fill, Run

from jskv_saver import JetStreamSaver


async def filled(url: str, bucket: str) -> None:
    async with JetStreamSaver.from_conn_string(url, bucket=bucket) as saver:
        for thread, count, metadata in (
            ("c", 3, {"team": "red", "n": 1}),
            ("a", 1, {"team": "blue", "n": 1}),
            ("b", 2, {"team": "red", "n": 1.0}),
        ):
            parent = None
            for n in range(count):
                id = f"{thread}{n}"
                last: dict[str, Any] = metadata if n == count - 1 else {"team": "old"}
                await put(saver, id, {"x": n}, parent=parent, thread=thread, **last)
                parent = id
        # Large metadata is in parts.
        await put(saver, "d0", {}, thread="d", team="x" * 200_000, n=None)


def test_threads_are_chosen_sorted_and_paged(
    run: Run, nats_url: str, bucket: str
) -> None:
    asyncio.run(filled(nats_url, bucket))

    def names(*options: str) -> list[str]:
        found = run("threads", "--json", *options).json
        return [thread["thread"] for thread in found["threads"]]

    assert names() == ["d", "c", "b", "a"]
    assert names("--sort", "oldest") == ["a", "b", "c", "d"]
    assert names("--sort", "name") == ["a", "b", "c", "d"]
    assert names("--sort", "checkpoints") == ["c", "b", "d", "a"]
    assert names("--metadata", "team=red") == ["c", "b"]
    assert names("--metadata", "team=red", "--metadata", "n=1") == ["c"]
    assert names("--metadata", "n=1.0") == ["b"]
    assert names("--metadata", "n=null") == ["d"]
    assert names("--metadata", "team=old") == []
    assert names("--metadata", f"team={'x' * 200_000}") == ["d"]
    assert names("--limit", "2", "--offset", "1") == ["c", "b"]
    assert names("--offset", "9") == []
    assert names("--idle", "1h") == []
    time.sleep(0.05)
    assert names("--idle", "0.01s", "--sort", "name") == ["a", "b", "c", "d"]
    assert run("threads", "--json", "--limit", "1").json["total"] == 4
    text = run("threads", "--limit", "2", "--offset", "1").out
    assert text.endswith("1 more: use --limit and --offset\n")


def test_encrypted_metadata_fits_nothing(run: Run, fill: Fill) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    fill("t", values={"x": 1}, serde=serde)
    found = run("threads", "--json", "--metadata", "step=1").json
    assert found["threads"] == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--idle", "soon"], "--idle 'soon' is no age: e.g. 90s"),
        (["--idle", "-1d"], "--idle '-1d' is no age"),
        (["--metadata", "team"], "'team' is no pair: write it as KEY=VALUE"),
        (["--metadata", "=x"], "'=x' is no pair"),
    ],
)
def test_what_is_written_wrongly_is_named(
    run: Run, options: list[str], text: str
) -> None:
    result = run("threads", *options)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert text in result.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nope"], "No such command 'nope'"),
        (["threads", "--nope"], "No such option"),
        (["threads", "--sort", "x"], "Invalid value for '--sort'"),
        (["show"], "Missing argument 'THREAD'"),
    ],
)
def test_a_command_line_that_is_none_is_one_line(
    run: Run, arguments: list[str], text: str
) -> None:
    result = run(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert text in result.err
    assert "--help)" in result.err


@pytest.mark.parametrize("quiet", [False, True])
def test_colours_are_for_terminals(
    fill: Fill, nats_url: str, bucket: str, quiet: bool
) -> None:
    fill("t", values={"x": 1})
    command = [sys.executable, "-m", "jskv_saver", "threads", "--bucket", bucket]
    environment = {**os.environ, "NATS_URL": nats_url, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        environment.pop(name, None)
    piped = subprocess.run(
        command, env=environment, capture_output=True, check=True
    ).stdout
    assert b"\x1b" not in piped
    if quiet:
        environment["NO_COLOR"] = "1"
    inner, outer = pty.openpty()
    try:
        subprocess.run(command, env=environment, stdout=outer, check=True)
        assert (b"\x1b[2m" in os.read(inner, 65_536)) is (not quiet)
    finally:
        os.close(inner)
        os.close(outer)
