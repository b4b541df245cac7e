"""What is wrong with a `LocalServer` is named, before its start where that is known."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from jskv_saver import LocalServer
from jskv_saver._server_process import find_binary
from jskv_saver.errors import InvalidRequestError, StoreUnavailableError


def test_before_the_start_there_is_no_url() -> None:
    server = LocalServer()
    assert (server.pid, server.port, server.log) == (0, 0, "")
    with pytest.raises(InvalidRequestError):
        _ = server.url
    with pytest.raises(InvalidRequestError):
        _ = server.store_dir


def test_detach_needs_a_store_that_stays() -> None:
    with pytest.raises(InvalidRequestError, match="store_dir"):
        LocalServer(detach=True)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="no-such-program"):
        LocalServer(binary="no-such-program").start()


def test_without_any_program_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.metadata.files", lambda _: None)
    with pytest.raises(InvalidRequestError, match=r"jskv-saver\[server\]"):
        LocalServer().start()


def test_without_the_wheel_the_path_is_searched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nats-server").symlink_to(find_binary(None))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.metadata.files", lambda _: None)
    with LocalServer() as server:
        program = Path(f"/proc/{server.pid}/cmdline").read_text().split("\0")[0]
        assert program == str(tmp_path / "nats-server")


def _runs(pid: int) -> bool:
    """Whether a process has not ended; nobody may have asked for a dead one yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_server_whose_keeper_is_gone_cannot_start_again() -> None:
    with LocalServer() as server:
        served, keeper = server.pid, os.getsid(server.pid)
        os.kill(keeper, signal.SIGKILL)
        # Until both have died; the keeper stays for its parent to find.
        os.waitid(os.P_PID, keeper, os.WEXITED | os.WNOWAIT)
        os.kill(served, signal.SIGKILL)
        while _runs(served):
            time.sleep(0.001)
        with pytest.raises(StoreUnavailableError, match="keeps nats-server has died"):
            server.start()
        # Nothing of it is left, so that the next start makes all anew.
        assert server.start().log


def test_a_program_that_cannot_run_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text("no program")
    program.chmod(0o755)
    with pytest.raises(InvalidRequestError, match=r"is no nats-server: .* run"):
        LocalServer(binary=program).start()


def test_a_program_that_is_another_is_named() -> None:
    with pytest.raises(InvalidRequestError, match=r"true' is no nats-server"):
        LocalServer(binary="true").start()


@pytest.mark.parametrize("place", ["file", "file/below"])
@pytest.mark.parametrize("detach", [False, True])
def test_a_store_that_is_a_file_is_refused(
    tmp_path: Path, place: str, detach: bool
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequestError, match=r"file.* is no directory"):
        LocalServer(tmp_path / place, detach=detach).start()


def test_a_store_that_cannot_be_made_is_reported() -> None:
    with pytest.raises(StoreUnavailableError, match=r"'/dev/fd/.*' cannot be made"):
        LocalServer("/dev/fd/no such file/store").start()


def test_a_host_that_is_not_of_this_machine_is_reported() -> None:
    with pytest.raises(InvalidRequestError, match=r"'192.0.2.1' is no address of"):
        LocalServer(host="192.0.2.1", port=4222).start()


def test_the_home_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LocalServer("~/store").store_dir == tmp_path / "store"


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"port": -1}, "port has to be a number from 1 to 65535"),
        ({"port": 65536}, "port has to be a number from 1 to 65535"),
        ({"port": "4222"}, "not '4222'"),
        ({"host": "::1"}, "host '::1' is neither an IPv4 address nor a name"),
        ({"host": "127.0.0.256"}, "host '127.0.0.256' is neither"),
        ({"host": ""}, "host '' is neither"),
        ({"sync_interval": "2"}, "'always' or a time such as '2m'"),
        ({"sync_interval": "never"}, "not 'never'"),
        ({"sync_interval": "0s"}, "not '0s'"),
        ({"sync_interval": 120}, "not 120"),
        ({"store_limit": 0}, "store_limit has to be a number of bytes"),
        ({"store_dir": ""}, "store_dir is empty"),
        ({"store_dir": "~no-such-user/x"}, "~no-such-user/x"),
        ({"store_dir": 5}, "store_dir must be a path, not 5"),
        ({"store_dir": b"x"}, "store_dir must be a path, not b'x'"),
        ({"token": 5}, "token, user and password are made of letters"),
    ],
)
def test_a_mistake_is_named_before_the_start(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        LocalServer(**wrong)
    assert rule in str(caught.value)


@pytest.mark.parametrize("interval", ["always", "2m", "1m30s", "0.5s", "100ms"])
def test_times_to_sync(interval: str) -> None:
    LocalServer(sync_interval=interval)


def test_a_server_that_fails_shows_its_log() -> None:
    server = LocalServer(config="no_such_option: 1")
    with pytest.raises(StoreUnavailableError, match="no_such_option"):
        server.start()
    with pytest.raises(InvalidRequestError):
        _ = server.store_dir


@pytest.mark.parametrize(
    "login", [{"token": "a b"}, {"user": "a"}, {"user": "a", "password": "b@c"}]
)
def test_a_login_that_no_url_can_hold_is_refused(login: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError):
        LocalServer(
            token=login.get("token"),
            user=login.get("user"),
            password=login.get("password"),
        )
