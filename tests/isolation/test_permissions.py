"""What `jskv permissions` prints, and what it refuses to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.isolation.guarded import APP, TWO, printed

from jskv_saver._server_process import find_binary
from jskv_saver.cli.isolation import Mode, configuration, tenants_of, variable_of
from jskv_saver.errors import InvalidRequestError

MODES = list(Mode)


def checked(
    config: str, path: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What nats-server says of a configuration."""
    path.write_text(config)
    return subprocess.run(
        [find_binary(None), "-t", "-c", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_server_takes_it_once_every_password_is_set(
    mode: Mode, tmp_path: Path
) -> None:
    config = printed("--mode", mode, *TWO)
    names = {variable_of(name) for name in ("app", "other", "jskv-service")}
    names.add(variable_of("jskv-owner"))
    every = {name: "secret" for name in names if f"${name}" in config}
    assert len(every) == (2 if mode is Mode.ACCOUNT else 3)
    path = tmp_path / "jskv.conf"
    done = checked(config, path, **every)
    assert done.returncode == 0, done.stderr
    for name in every:
        # None is left open by an environment that lacks it.
        less = {key: value for key, value in every.items() if key != name}
        done = checked(config, path, **less)
        assert done.returncode != 0
        assert name in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_a_password_that_is_given_stands_there(mode: Mode, tmp_path: Path) -> None:
    odd = 'p"w\\ $HOME #'
    config = printed("--mode", mode, *TWO, "--password", f"app={odd}")
    assert "$JSKV_APP_PASSWORD" not in config
    others = dict.fromkeys(
        map(variable_of, ("other", "jskv-service", "jskv-owner")), "secret"
    )
    assert checked(config, tmp_path / "jskv.conf", **others).returncode == 0


def test_names_follow_from_the_namespace() -> None:
    (tenant,) = tenants_of(Mode.BUCKET, ["alpha"], [], [])
    assert (tenant.user, tenant.bucket) == ("alpha", "jskv-alpha")
    (tenant,) = tenants_of(Mode.SERVICE, ["alpha"], [], [])
    assert tenant.bucket == "jskv"
    assert variable_of("my-app") == "JSKV_MY_APP_PASSWORD"
    assert variable_of("jskv-owner") == "JSKV_OWNER_PASSWORD"


def test_no_namespace_reaches_out_of_its_token() -> None:
    for namespace in ("*", ">", "a.b", 'x" "y', "$KV", ""):
        tenants = tenants_of(Mode.SERVICE, [namespace], ["app"], [])
        (line,) = (
            line.strip()
            for line in configuration(Mode.SERVICE, tenants).splitlines()
            if "jskv.v1." in line and "*.*" not in line
        )
        token = line.removeprefix('"jskv.v1.').removesuffix('.>"')
        assert token
        assert not set(token) & set('.*> "')


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--namespace", APP], "no name of a user"),
        (["--namespace", "a", "--namespace", "a"], "namespace 'a' is there twice"),
        (["--namespace", "a-b", "--namespace", "a_b"], "_PASSWORD' is there twice"),
        (["--namespace", "jskv-owner"], "user 'jskv-owner' is there twice"),
        ([*TWO, "--user", "third"], "a user for each"),
        ([*TWO, "--bucket", "one"], "a bucket for each"),
        ([*TWO, "--bucket", "x", "--bucket", "x"], "bucket 'x' is there twice"),
        (["--namespace", "a", "--bucket", "x.>"], "no name of a bucket"),
        (["--namespace", "a", "--password", "a"], "USER=TEXT"),
        (["--namespace", "a", "--password", "b=x"], "no user here"),
        (["--namespace", "a", "--max-file", "1 }"], "no size"),
    ],
)
def test_a_mistake_is_named(options: list[str], told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        printed("--mode", "bucket", *options)


def test_one_bucket_is_enough_for_a_service() -> None:
    with pytest.raises(InvalidRequestError, match="one name for buckets"):
        printed("--mode", "service", *TWO, "--bucket", "x", "--bucket", "y")


def test_the_command_prints_the_configuration_and_nothing_else() -> None:
    args = ["--mode", "account", "--namespace", "alpha"]
    done = subprocess.run(
        [sys.executable, "-m", "jskv_saver", "permissions", *args],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed(*args)
