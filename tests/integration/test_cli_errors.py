from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial

import nats
import pytest
from tests.integration.commands import Fill, Result, Run

from jskv_saver import JetStreamDocumentStore

HINT = "(hint: `jskv threads` and `jskv history THREAD` list what is there)"


@pytest.mark.parametrize("command", ["history", "show"])
def test_a_missing_thread_is_an_error(command: str, run: Run, fill: Fill) -> None:
    fill("t")
    result = run(command, "no such thread")
    assert result == Result(
        1, "", f"jskv: there is no thread 'no such thread' here {HINT}\n"
    )


def test_a_missing_checkpoint_is_an_error(run: Run, fill: Fill) -> None:
    fill("t")
    result = run("show", "t", "nope")
    assert result == Result(
        1, "", f"jskv: thread 't' has no checkpoint 'nope' {HINT}\n"
    )


def test_one_thread_id_in_two_places_must_be_told_apart(run: Run, fill: Fill) -> None:
    fill("t", namespace="one")
    fill("t", namespace="two")
    result = run("history", "t")
    assert result.code == 1
    assert "namespace 'one' agent 'default', namespace 'two'" in result.err
    assert "--namespace and --agent" in result.err
    assert run("history", "t", "--namespace", "two").code == 0


@pytest.mark.parametrize("command", [["threads"], ["history", "t"], ["show", "t"]])
def test_a_missing_bucket_is_an_error_and_is_never_made(
    command: list[str], run: Run, nats_url: str, bucket: str
) -> None:
    result = run(*command)
    hint = "(hint: the first saver makes it; or name another with --bucket)"
    assert result == Result(1, "", f"jskv: there is no bucket '{bucket}' {hint}\n")

    async def streams() -> list[str]:
        client = await nats.connect(nats_url)
        infos = await client.jetstream().streams_info()
        await client.close()
        return [info.config.name or "" for info in infos]

    assert f"KV_{bucket}" not in asyncio.run(streams())


def test_no_server_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hasty = partial(JetStreamDocumentStore.from_conn_string, timeout=0.3)
    monkeypatch.setattr(JetStreamDocumentStore, "from_conn_string", hasty)
    result = run("threads", "--server", "nats://127.0.0.1:1")
    assert result.code == 1
    assert result.err.startswith("jskv: no NATS server at nats://127.0.0.1:1")
    assert "`nats-server -js`" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "address", ["nats://h:99999", "/tmp/a.db", ":memory:", "http://h"]
)
@pytest.mark.parametrize("source", ["option", "environment"])
def test_an_address_that_is_none_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, address: str, source: str
) -> None:
    option = ("--server", address) if source == "option" else ()
    if source == "environment":
        monkeypatch.setenv("NATS_URL", address)
    result = run("threads", *option)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"jskv: {address!r} is no address of a NATS server")


@pytest.mark.parametrize(
    "command",
    [["version"], ["--help"], ["threads"], ["threads", "--json"], ["threads", "--x"]],
)
@pytest.mark.parametrize("closed", ["stdout", "both"])
def test_a_reader_that_is_gone_gets_no_traceback(
    nats_url: str, command: list[str], closed: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jskv_saver", *command],
            env={**os.environ, "NATS_URL": nats_url},
            stdout=writing,
            stderr=writing if closed == "both" else subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode in (1, 2)
    assert b"Traceback" not in (done.stderr or b"")
    assert b"BrokenPipe" not in (done.stderr or b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command",
    [["version"], ["threads"], ["threads", "--json"], ["export", "-"]],
)
def test_a_full_disk_is_one_line(
    nats_url: str, bucket: str, fill: Fill, command: list[str]
) -> None:
    fill("t")
    chosen = [] if command == ["version"] else ["--bucket", bucket]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jskv_saver", *command, *chosen],
            env={**os.environ, "NATS_URL": nats_url},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "jskv: the output cannot be written: No space left on device\n"
    )


def test_wrong_usage_exits_with_2(run: Run) -> None:
    assert run("no-such-command").code == 2
    assert run("threads", "--limit", "-1").code == 2


def test_the_list_of_commands_cuts_no_line_off() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "jskv_saver", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Stop the project's NATS server; its data stays." in " ".join(
        printed.split()
    )
    assert "..." not in printed.partition("Commands:")[2]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for argument in ("version", "--version"):
        done = subprocess.run(
            [sys.executable, "-m", "jskv_saver", argument],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.count(".") == 2


def test_without_its_extra_the_command_says_how_to_install_it() -> None:
    script = """
import sys
sys.modules["typer"] = None
from jskv_saver.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "jskv: the command line needs typer; install it with: "
        'pip install "jskv-saver[cli]"\n'
    )


def test_only_the_demo_needs_langgraph() -> None:
    script = """
import sys
sys.modules["langgraph.graph"] = None
sys.argv = ["jskv", sys.argv[1]]
from jskv_saver.__main__ import main
main()
"""

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, command],
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("version").returncode == 0
    demo = run("demo")
    assert demo.returncode == 1
    assert demo.stderr == (
        "jskv: the demo needs langgraph; install it with: "
        'pip install "jskv-saver[demo]"\n'
    )
