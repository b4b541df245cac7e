"""The commands that remove, copy, pin, verify and repair."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from tests.checkpoint.saving import put
from tests.integration.commands import Result, Run
from tests.removal.commanding import NAMES, Fill, Look

from jskv_saver import (
    Encryption,
)


def test_a_prune_says_what_it_does_and_does_it(
    run: Run, fill: Fill, left: Look
) -> None:
    fill("t", "u")
    dry = run("prune", "t", "--keep-last", "2", "--dry-run")
    assert dry.code == 0
    assert "thread t of namespace default agent default: 2 checkpoints of 4" in dry.out
    assert "in child:1: 2 checkpoints of 4" in dry.out
    assert left() == NAMES[::-1]
    asked = run("prune", "t", "--keep-last", "2")
    assert asked.code == 1
    assert asked.err.startswith("jskv: Remove 4 checkpoints (")
    assert "add --yes" in asked.err
    assert left() == NAMES[::-1]
    done = run("prune", "t", "--keep-last", "2", "--yes")
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("removed 4 checkpoints (")
    assert left() == left(ns="child:1") == ["4", "3"]
    assert left("u") == NAMES[::-1]
    again = run("prune", "t", "--keep-last", "2")
    assert again == Result(0, "nothing to remove\n", "")
    assert run("prune", "u", "--ns", "", "--yes").code == 0
    assert left("u") == ["4"]
    assert left("u", ns="child:1") == NAMES[::-1]
    assert run("prune", "u", "--older-than", "1d") == again
    assert run("prune", "u", "--older-than", "0s", "--yes").code == 0
    assert left("u", ns="child:1") == ["4"]


def test_without_threads_it_is_a_retention_of_all(
    run: Run, fill: Fill, left: Look
) -> None:
    fill("t", "kept")
    fill("t", namespace="two", agent_id="b")
    assert run("pin", "kept").code == 0
    assert run("prune", "--idle", "30d", "--max-age", "52w").out.endswith(
        "nothing to remove\n"
    )
    planned = run("prune", "--keep-last", "1", "--dry-run", "--json")
    assert planned.json["dry_run"]
    assert [
        (each["namespace"], each["agent"], len(each["report"]["pruned"]))
        for each in planned.json["places"]
    ] == [("default", "default", 2), ("two", "b", 2)]
    assert planned.json["places"][0]["report"]["pinned"] == ["kept"]
    assert left() == NAMES[::-1]

    done = run("prune", "--idle", "0.001s", "--yes", "--namespace", "default")
    assert done.out.splitlines()[-1] == "removed 1 whole thread"
    assert "pinned: kept" in done.out
    assert left() == []
    assert left("kept") == NAMES[::-1]
    assert left(namespace="two", agent_id="b") == NAMES[::-1]
    quiet = run("prune", "--idle", "0.001s", "--yes", "--json")
    assert quiet.json["places"][-1]["report"]["erased"] == ["t"]
    assert not quiet.json["dry_run"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prune"], "say which threads"),
        (["prune", "t", "--idle", "1d"], "--idle and --max-age are for all"),
        (["prune", "--older-than", "1d"], "--older-than and --ns are for threads"),
        (["prune", "--ns", "", "--keep-last", "1"], "--older-than and --ns"),
        (["prune", "t", "--older-than", "soon"], "--older-than 'soon' is no age"),
        (["prune", "--idle", "999999999999w"], "--idle '999999999999w' is too long"),
        (["prune", "nope"], "there is no thread 'nope' here"),
        (["delete", "t", "nope", "--yes"], "there is no thread 'nope' here"),
        (["copy", "nope", "u"], "there is no thread 'nope' here"),
        (["copy", "t", "t"], "onto itself"),
        (["pin", "nope"], "there is no thread 'nope' here"),
        (["pin", "t", "--name", ""], "must not be empty"),
        (["verify", "nope"], "there is no thread 'nope' here"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_mistake_is_one_line_with_a_hint(
    run: Run, fill: Fill, left: Look, words: list[str], says: str
) -> None:
    fill("t")
    result = run(*words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("jskv: ")
    assert result.err.count("\n") == 1
    assert says in result.err
    assert left() == NAMES[::-1]


@pytest.mark.parametrize(
    "command",
    [
        ["prune", "--keep-last", "1"],
        ["delete", "t"],
        ["copy", "t", "u"],
        ["pin", "t"],
        ["unpin", "t"],
        ["pinned"],
        ["verify"],
        ["repair"],
    ],
    ids=" ".join,
)
def test_a_missing_bucket_is_an_error(
    run: Run, bucket: str, command: list[str]
) -> None:
    result = run(*command)
    hint = "(hint: the first saver makes it; or name another with --bucket)"
    assert result == Result(1, "", f"jskv: there is no bucket '{bucket}' {hint}\n")


def test_threads_are_erased_when_that_is_agreed_to(
    run: Run, fill: Fill, left: Look
) -> None:
    fill("t", "u", "kept")
    run("pin", "u")
    dry = run("delete", "t", "u", "--dry-run")
    assert "thread t of namespace default agent default: 8 checkpoints\n" in dry.out
    assert "thread u of namespace default agent default: 8 checkpoints, pinned" in (
        dry.out
    )
    refused = run("delete", "t", "u")
    assert refused.code == 1
    assert "Erase 2 threads for ever?" in refused.err
    assert left() == left("u") == NAMES[::-1]
    done = run("delete", "t", "u", "t", "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    assert [each["thread"] for each in done.json["threads"]] == ["t", "u"]
    assert left() == left("u") == []
    assert left("kept") == NAMES[::-1]
    assert run("delete", "kept", "-y").out.endswith("erased 1 thread\n")
    assert run("pinned").out == "no thread is pinned\n"


def test_a_copy_has_all_checkpoints_and_can_be_repeated(
    run: Run, fill: Fill, left: Look
) -> None:
    fill("t")
    for _ in range(2):
        result = run("copy", "t", "a copy")
        assert result == Result(0, "copied t to a copy: it has 8 checkpoints\n", "")
    assert left("a copy") == left("a copy", ns="child:1") == NAMES[::-1]
    assert run("copy", "t", "u", "--json").json["checkpoints"] == 8
    assert run("verify").code == 0


def test_other_content_is_never_overwritten_by_a_copy(
    run: Run, fill: Fill, use: Look, left: Look
) -> None:
    fill("t")
    use(lambda saver: put(saver, "2", {"n": "other"}, thread="u"))
    result = run("copy", "t", "u")
    assert result.code == 1
    assert "'2'" in result.err
    assert left("u") == ["2", "1"]


def test_pins_are_listed_with_their_names(run: Run, fill: Fill) -> None:
    fill("t", "u")
    assert run("pinned").out == "no thread is pinned\n"
    run("pin", "t", "--name", "audit")
    run("pin", "t", "--name", "legal")
    run("pin", "u")
    assert run("pinned").out.splitlines() == [
        "t of namespace default agent default: audit, legal",
        "u of namespace default agent default: pin",
    ]
    run("unpin", "t", "--name", "audit")
    run("unpin", "u")
    assert run("pinned", "--json").json["pinned"] == [
        {"namespace": "default", "agent": "default", "thread": "t", "pins": ["legal"]}
    ]


def test_an_encrypted_thread_needs_its_key_for_all_but_its_deletion(
    run: Run, fill: Fill, left: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Encryption.generate_key()
    encryption = Encryption(key)
    fill("t", encryption=encryption, namespace="secret")
    fill("plain")
    for command in (["prune", "t"], ["copy", "t", "u"], ["verify", "t"]):
        result = run(*command)
        assert result.code == 1
        assert "encrypt" in result.err
    monkeypatch.setenv("JSKV_ENCRYPTION_KEYS", key)
    assert run("verify").code == 0
    assert run("prune", "t", "--yes").code == 0
    assert run("prune", "plain", "--yes").code == 0
    assert run("copy", "t", "u").code == 0
    assert run("copy", "plain", "plain copy").code == 0
    assert run("verify").code == 0
    assert left("u", encryption=encryption, namespace="secret") == ["4"]
    monkeypatch.delenv("JSKV_ENCRYPTION_KEYS")
    # What is not encrypted stays so, whatever key the command was given.
    assert left("plain") == left("plain copy") == ["4"]
    assert run("delete", "t", "u", "--yes").code == 0
    assert run("verify").code == 0


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
def test_on_a_terminal_it_asks(
    nats_url: str, bucket: str, fill: Fill, left: Look, answer: str, code: int
) -> None:
    fill("t")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jskv_saver", "delete", "t", "--bucket", bucket]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NATS_URL": nats_url},
    ) as asked:
        os.write(ours, answer.encode() + b"\n")
        _, error = asked.communicate()
    os.close(ours)
    os.close(theirs)
    assert asked.returncode == code, error
    assert b"Erase 1 thread for ever? [y/N]" in error
    assert left() == ([] if code == 0 else NAMES[::-1])
    if code:
        assert b"nothing was done" in error
