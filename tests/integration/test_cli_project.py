"""`jskv up`, `down`, `status`: one server for a project, whatever became of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.commands import Result
from tests.patience import wait_until

from jskv_saver import JetStreamDocumentStore, LocalServer
from jskv_saver._server_process import holder
from jskv_saver.cli.project import Project
from jskv_saver.errors import InvalidRequestError, StoreUnavailableError

Jskv = Callable[..., Result]


@pytest.fixture
def jskv(tmp_path: Path) -> Iterator[Jskv]:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environment.pop("NATS_URL", None)
    project = tmp_path / "project"
    project.mkdir()

    def jskv(*arguments: str, cwd: Path = project, **more: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "jskv_saver", *arguments],
            cwd=cwd,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    yield jskv
    Project(project).down()


def test_a_server_goes_on_and_keeps_its_address(jskv: Jskv, tmp_path: Path) -> None:
    project = tmp_path / "project"
    before = jskv("status")
    assert (before.code, before.err) == (3, "")
    assert "`jskv up` starts one" in before.out
    assert not (project / ".jskv").exists()

    first = jskv("up")
    assert first.code == 0
    assert first.out.startswith("export NATS_URL=nats://")
    url = first.out.strip().removeprefix("export NATS_URL=")
    state = jskv("status", "--json")
    assert (state.code, state.json["running"], state.json["url"]) == (0, True, url)

    async def put() -> None:
        async with JetStreamDocumentStore.from_conn_string(url) as store:
            await store.put("n", "ls", ("a",), {"x": 1})

    async def get() -> object:
        async with JetStreamDocumentStore.from_conn_string(url) as store:
            return (await store.get("n", "ls", ("a",))).data

    asyncio.run(put())
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    again = jskv("up", cwd=below)
    assert again.out == first.out
    assert not (below / ".jskv").exists()
    assert jskv("down", cwd=below).out == "stopped\n"
    assert jskv("down").out == "it was not running\n"
    stopped = jskv("status")
    assert (stopped.code, "not running" in stopped.out) == (3, True)
    # No login where others may read along.
    assert url.split("//")[1].split("@")[0] not in stopped.out
    assert jskv("up").out == first.out
    assert asyncio.run(get()) == {"x": 1}
    files = {path.name for path in (project / ".jskv").iterdir()}
    assert files == {".gitignore", "lock", "server.json", "store"}
    mode = (project / ".jskv" / "server.json").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_process_id_of_somebody_else_is_never_killed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    url = project.up().url
    pid = project.state().pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: holder(tmp_path / ".jskv" / "store") is None)
    # The number now belongs to somebody else, as after a restart of the machine.
    with subprocess.Popen(["sleep", "60"]) as stranger:
        lock = tmp_path / ".jskv" / "store" / "jskv-server.lock"
        lock.write_text(str(stranger.pid))
        assert not project.state().running
        assert project.down() is False
        assert stranger.poll() is None
        assert project.up().url == url
        # Its lock is held, and the number is wrong.
        lock.write_text(str(stranger.pid))
        with pytest.raises(StoreUnavailableError, match=f"process {stranger.pid}"):
            project.down()
        assert stranger.poll() is None
        stranger.kill()
    configured = tmp_path / ".jskv" / "store" / "local-server" / "nats-server.pid"
    lock.write_text(configured.read_text())
    assert project.down() is True


def test_several_at_once_start_one(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "jskv_saver",
        "up",
        "--json",
        "--dir",
        str(tmp_path),
    ]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    try:
        found = [json.loads(each.communicate()[0]) for each in started]
        assert len({(each["pid"], each["url"]) for each in found}) == 1
    finally:
        assert Project(tmp_path).down() is True


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with LocalServer() as other:
        with pytest.raises(StoreUnavailableError, match=f"port {other.port} is in use"):
            project.up(other.port)
    state = project.up()
    try:
        with pytest.raises(InvalidRequestError, match="`jskv down` ends it"):
            project.up(state.port + 1)
        (tmp_path / ".jskv" / "server.json").unlink()
        with pytest.raises(InvalidRequestError, match="is gone: `jskv down` ends it"):
            project.up()
    finally:
        project.down()
    (tmp_path / ".jskv" / "server.json").write_text("{")
    with pytest.raises(InvalidRequestError, match=r"server\.json"):
        project.state()
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequestError, match="cannot be made"):
        Project(tmp_path / "file").up()


def test_a_context_is_written_only_if_asked_for(jskv: Jskv, tmp_path: Path) -> None:
    config = tmp_path / "config"
    url = jskv("up").out.strip().removeprefix("export NATS_URL=")
    assert not config.exists()
    assert jskv("up", "--context", "mine").code == 0
    assert not (config / "nats" / "context.txt").exists()
    assert jskv("up", "--context", "mine", "--select").code == 0
    # Without an address the context says where.
    found = jskv("doctor", "--json").json
    server = next(f for f in found["findings"] if f["topic"] == "server")
    assert server["text"].endswith(url.split("@")[1])
    theirs = config / "nats" / "context" / "theirs.json"
    theirs.write_text('{"url": "nats://elsewhere"}')
    refused = jskv("up", "--context", "theirs")
    assert (refused.code, "not of ours" in refused.err) == (1, True)
    assert theirs.read_text() == '{"url": "nats://elsewhere"}'
    assert jskv("up", "--context", "../x").code == 1
    assert jskv("up", "--select").code == 1
    assert jskv("up", "--dir", str(tmp_path / "none")).code == 1
