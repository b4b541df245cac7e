"""The command line on encrypted threads, with the keys of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.encryption.keys import NEW, OLD, OTHER
from tests.integration.commands import Fill, Run

from jskv_saver import Encryption

KEYS = "JSKV_ENCRYPTION_KEYS"
ID = Encryption(NEW).key_ids[0]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEYS, raising=False)


def test_threads_are_listed_without_a_key_and_said_to_be_encrypted(
    run: Run, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("plain")
    fill("secret", encryption=Encryption(NEW))

    for key in (None, NEW, OTHER):
        if key:
            monkeypatch.setenv(KEYS, key.hex())
        result = run("threads")
        assert (result.code, result.err) == (0, "")
        assert "1 of 2 encrypted" in result.out
        found = {t["thread"]: t for t in run("threads", "--json").json["threads"]}
        assert (found["secret"]["encrypted"], found["plain"]["encrypted"]) == (
            True,
            False,
        )
        assert found["secret"]["checkpoints"] == 3


@pytest.mark.parametrize("command", ["history", "show", "diff"])
def test_without_a_key_it_says_encrypted_and_what_to_do(
    run: Run, fill: Fill, command: str
) -> None:
    fill("t", encryption=Encryption(NEW))
    ids = [_newest(run)] * 2 if command == "diff" else []

    result = run(command, "t", *ids)

    assert result.code == 1
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert f"is encrypted with key {ID}, and no key was given" in result.err
    assert f"set {KEYS}" in result.err


def _newest(run: Run) -> str:
    newest: str = run("threads", "--json").json["threads"][0]["newest_id"]
    return newest


def test_with_the_key_all_is_shown(
    run: Run, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("t", encryption=Encryption(OLD), resume=True)
    fill("u", values={"text": "in the clear"}, encryption=Encryption(NEW))
    monkeypatch.setenv(KEYS, f"{NEW.hex()},{OLD.hex()}")

    rows = run("history", "t", "--json").json["checkpoints"]
    assert [row["step"] for row in rows] == [2, 1, 0, -1]
    assert rows[0]["shared_bytes"] > 800
    assert run("history", "t").code == 0
    shown = run("show", "t")
    assert "begun xxx" in shown.out
    assert '"in the clear"' in run("show", "u").out
    assert run("diff", "t", rows[1]["id"], rows[0]["id"]).code == 0
    assert run("replay-plan", "t", rows[1]["id"]).code == 0
    told = run("tail", "--after", "0", "--limit", "1", "--json")
    assert told.json["kind"] in ("checkpoint", "writes")
    assert told.json["channels"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (OTHER.hex(), "none of those given"),
        ("", f"{KEYS} is not set, or empty"),
        ("secret!", f"{KEYS}: encryption key 1"),
    ],
)
def test_a_wrong_key_is_an_error_in_a_line(
    run: Run, fill: Fill, monkeypatch: pytest.MonkeyPatch, keys: str, message: str
) -> None:
    fill("t", encryption=Encryption(NEW))
    monkeypatch.setenv(KEYS, keys)

    result = run("show", "t")

    assert result.code == 1
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert "secret!" not in result.err


def test_what_is_not_encrypted_is_not_shown_as_if_it_were(
    run: Run, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("t")
    monkeypatch.setenv(KEYS, NEW.hex())

    result = run("show", "t")

    assert result.code == 1
    assert "is not encrypted, and a key was given" in result.err


def test_an_archive_goes_from_one_key_to_another(
    run: Run,
    fill: Fill,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bucket: str,
) -> None:
    fill("t", encryption=Encryption(NEW), resume=True)
    archive = str(tmp_path / "archive")
    assert run("export", archive, "t").code == 1
    monkeypatch.setenv(KEYS, NEW.hex())
    exported = run("export", archive, "t")
    assert exported.code == 0, exported.err
    shown = run("show", "t", "--json").json

    monkeypatch.setenv(KEYS, OLD.hex())
    imported = run("import", archive, bucket=f"{bucket}-other")
    assert imported.code == 0, imported.err
    again = run("show", "t", "--json", bucket=f"{bucket}-other").json
    assert again["channels"].keys() == shown["channels"].keys()
    monkeypatch.setenv(KEYS, NEW.hex())
    assert "none of those given" in run("show", "t", bucket=f"{bucket}-other").err
