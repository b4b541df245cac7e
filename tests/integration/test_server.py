from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import nats
import pytest
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig
from tests.patience import PATIENCE, wait_until

from jskv_saver import LocalServer
from jskv_saver._server_process import free_port
from jskv_saver.errors import StoreUnavailableError

# Prints what the test must know, then waits for the end of its input.
OWNER = """
import json, os, subprocess, sys
from jskv_saver import LocalServer
server = LocalServer().start()
child = 0
{extra}
print(json.dumps([server.pid, str(server.store_dir.parent), child]), flush=True)
sys.stdin.read()
"""
FORK = """
child = os.fork()
if not child:
    os.close(1)
    import threading
    server.stop()
    threading.Event().wait(60)
    os._exit(0)
"""
SPAWN = """
child = subprocess.Popen(["sleep", "60"], close_fds=False).pid
"""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _owner(extra: str = "") -> Iterator[tuple[subprocess.Popen[str], int, Path, int]]:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.format(extra=extra)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout
        pid, home, child = json.loads(owner.stdout.readline())
        try:
            yield owner, pid, Path(home), child
        finally:
            owner.kill()
            if child:
                os.kill(child, signal.SIGKILL)


def _answers(server: LocalServer) -> bool:
    with socket.create_connection(("127.0.0.1", server.port), 5) as wire:
        return wire.recv(5) == b"INFO "


def test_a_server_lives_as_long_as_its_block() -> None:
    with LocalServer() as server:
        home = server.store_dir.parent
        assert _alive(server.pid)
        assert _answers(server)
        assert server.store_dir.is_dir()
    assert not _alive(server.pid)
    assert not home.exists()


async def test_async_block() -> None:
    async with LocalServer() as server:
        client = await nats.connect(server.url)
        await client.close()
    assert not _alive(server.pid)


def test_start_and_stop_may_be_called_again() -> None:
    server = LocalServer()
    server.stop()
    server.start()
    first = server.pid, server.port
    assert server.start() is server
    assert (server.pid, server.port) == first
    server.stop()
    server.stop()
    server.kill()
    assert not _alive(server.pid)
    with server:
        assert server.port == first[1]
        assert _answers(server)


async def test_a_given_store_stays(tmp_path: Path) -> None:
    store = tmp_path / "my ströre"
    with LocalServer(store) as server:
        client = await nats.connect(server.url)
        await client.jetstream().add_stream(StreamConfig(name="s", subjects=["s"]))
        await client.close()
    with LocalServer(store) as server:
        assert server.store_dir == store
        client = await nats.connect(server.url)
        assert (await client.jetstream().stream_info("s")).config.name == "s"
        await client.close()


async def test_the_store_survives_a_kill(own_server: LocalServer) -> None:
    url, pid = own_server.url, own_server.pid
    client = await nats.connect(url)
    values = await client.jetstream().create_key_value(bucket="b")
    await values.put("key", b"value")
    await client.close()

    own_server.kill()
    assert not _alive(pid)
    own_server.kill()
    own_server.start()

    assert own_server.url == url
    assert own_server.pid != pid
    client = await nats.connect(url)
    values = await client.jetstream().key_value("b")
    assert (await values.get("key")).value == b"value"
    await client.close()


def test_a_server_killed_by_someone_else_starts_again(own_server: LocalServer) -> None:
    pid = own_server.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: own_server.start().pid != pid)
    assert _answers(own_server)


@pytest.mark.parametrize("extra", ["", FORK, SPAWN], ids=["alone", "fork", "spawn"])
def test_the_server_dies_with_its_owner(extra: str) -> None:
    with _owner(extra) as (owner, pid, home, child):
        assert _alive(pid)
        assert home.exists()
        owner.kill()
        wait_until(lambda: not _alive(pid) and not home.exists())
        assert not child or _alive(child)


def test_the_server_ends_with_an_owner_that_forgets_it() -> None:
    with _owner() as (owner, pid, home, _):
        assert owner.stdin
        owner.stdin.close()
        owner.wait(PATIENCE)
        wait_until(lambda: not _alive(pid) and not home.exists())


def test_the_server_does_not_hear_the_interrupts_of_a_terminal() -> None:
    with LocalServer() as server:
        assert os.getpgid(server.pid) != os.getpgid(0)


def test_the_server_ends_when_its_keeper_was_killed() -> None:
    with LocalServer() as server:
        home = server.store_dir.parent
        keeper = os.getsid(server.pid)
        assert keeper != server.pid
        os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not _alive(server.pid) and not home.exists())


def test_a_forked_child_does_not_stop_the_server() -> None:
    with _owner(FORK) as (_, pid, home, child):
        wait_until(lambda: _alive(child))
        assert _alive(pid)
        assert home.exists()


def test_a_detached_server_goes_on(tmp_path: Path) -> None:
    with LocalServer(tmp_path, detach=True) as server:
        pid = server.pid
    try:
        assert _alive(pid)
        assert _answers(server)
        assert (tmp_path / "local-server" / "nats-server.pid").read_text() == str(pid)
        with pytest.raises(StoreUnavailableError, match=f"`kill {pid}`"):
            LocalServer(tmp_path).start()
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: _startable(tmp_path))


def _startable(store: Path) -> bool:
    try:
        with LocalServer(store):
            return True
    except StoreUnavailableError:
        return False


def test_a_detached_server_can_be_stopped(tmp_path: Path) -> None:
    with LocalServer(tmp_path, detach=True) as server:
        server.stop()
        assert not _alive(server.pid)


def test_two_servers_do_not_share_a_store(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server:
        with pytest.raises(StoreUnavailableError) as caught:
            LocalServer(tmp_path).start()
        assert f"another server, process {server.pid}, runs" in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        server.kill()
        with pytest.raises(StoreUnavailableError, match="another server runs on"):
            LocalServer(tmp_path).start()


def test_a_port_in_use_is_reported(own_server: LocalServer) -> None:
    with pytest.raises(StoreUnavailableError, match=f"port {own_server.port}"):
        LocalServer(port=own_server.port).start()
    assert _answers(own_server)


def test_a_lost_race_for_a_port_is_run_again(
    own_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = iter([own_server.port])

    def choose(host: str) -> int:
        return next(ports, 0) or free_port(host)

    # Found free, then taken before the server listens.
    monkeypatch.setattr("jskv_saver.server.free_port", choose)
    with LocalServer() as server:
        assert server.port != own_server.port
        assert _answers(server)


@pytest.mark.parametrize("connect", ["{}", '{"auth_token": "wrong"}'])
def test_a_login_is_needed(own_server: LocalServer, connect: str) -> None:
    with socket.create_connection(("127.0.0.1", own_server.port), 5) as wire:
        wire.sendall(f"CONNECT {connect}\r\nPING\r\n".encode())
        heard = b"".join(iter(lambda: wire.recv(4096), b""))
    assert b"-ERR 'Authorization Violation'" in heard
    assert b"PONG" not in heard


async def test_user_and_password() -> None:
    with LocalServer(user="me", password="secret") as server:
        assert server.url == f"nats://me:secret@127.0.0.1:{server.port}"
        client = await nats.connect(server.url)
        await client.close()


def _command_line(pid: int) -> str:
    entry = Path(f"/proc/{pid}/cmdline")
    if entry.exists():
        return entry.read_text()
    command = ["ps", "-ww", "-o", "args", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_token_is_for_the_owner_only() -> None:
    with LocalServer(token="the-secret") as server:
        command = _command_line(server.pid)
        assert str(server.store_dir.parent) in command
        assert "the-secret" not in command
        assert "the-secret" not in server.log
        home = server.store_dir.parent
        config = home / "nats-server.conf"
        assert "the-secret" in config.read_text()
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


async def test_more_configuration_wins() -> None:
    users = (
        "authorization { users: [{ user: a, password: b, "
        'permissions: { publish: "allowed" } }] }'
    )
    with LocalServer(
        user="a", password="b", config=f"max_payload: 64KB\n{users}"
    ) as server:
        client = await nats.connect(server.url)
        assert client.max_payload == 64 * 1024
        await client.close()


async def test_the_store_may_be_limited() -> None:
    with LocalServer(store_limit=1_000_000) as server:
        client = await nats.connect(server.url)
        too_large = StreamConfig(name="s", subjects=["s"], max_bytes=2_000_000)
        with pytest.raises(NatsError):
            await client.jetstream().add_stream(too_large)
        await client.close()


def test_several_servers_at_once() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(LocalServer()) for _ in range(5)]
        assert len({server.port for server in servers}) == 5
        assert all(_answers(server) for server in servers)


async def test_the_cluster_replicates(cluster: Sequence[LocalServer]) -> None:
    client = await nats.connect(cluster[-1].url)
    jetstream = client.jetstream()
    stream = StreamConfig(name="r3", subjects=["r3"], num_replicas=3)
    info = await jetstream.add_stream(stream)
    assert info.config.num_replicas == 3
    await jetstream.delete_stream("r3")
    await client.close()
