"""Ids stay whole on a terminal of any width, and where there is none."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from tests.integration.commands import Fill, Run

from jskv_saver.checkpoint.inspect import CheckpointInfo, ThreadHistory, ThreadRef
from jskv_saver.cli import output, views
from jskv_saver.cli.tables import Column, print_table

OLD = datetime.fromtimestamp(0, UTC)
COMMAND = [sys.executable, "-m", "jskv_saver"]


def on_terminal(width: int, *arguments: str) -> str:
    """What a command prints on a terminal of this width, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=theirs, env={**environment, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        said = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux, where macOS reads nothing
                piece = b""
            if not piece:
                break
            said += piece
    os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).replace("\r", "")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_ids_are_whole(run: Run, fill: Fill, bucket: str, width: int) -> None:
    thread = "customer:4711/refund of the blue kettle"
    fill(thread, namespace="my_application", agent_id="refund-reviewer-v1")
    found = run("show", thread, "--json").json
    where = ("--bucket", bucket)

    shown = on_terminal(width, "threads", *where)
    assert thread in shown
    assert (found["id"] in shown) == ("no room here for: newest" not in shown)
    if width >= 80:
        assert max(map(len, shown.splitlines())) <= width

    assert found["id"] in on_terminal(width, "history", thread, *where)

    shown = on_terminal(width, "show", thread, *where)
    assert f"parent     {found['parent']}\n" in shown
    for write in found["writes"]:
        assert write["task"] in shown
    tables = shown[shown.index("channel ") :]
    if width >= 80:
        assert max(map(len, tables.splitlines())) <= width


def test_without_a_terminal_a_row_is_a_line(run: Run, fill: Fill) -> None:
    fill("t")
    found = run("show", "t", "--json").json
    heading, row = run("threads").out.splitlines()
    assert heading.split()[-4:] == ["newest", "checkpoint", "stored", "(UTC)"]
    assert found["id"] in row
    assert "parts" in run("show", "t").out
    assert "no room" not in run("show", "t").out


@pytest.mark.parametrize(("width", "whole"), [(80, True), (60, False)])
def test_the_steps_of_the_demo(width: int, whole: bool) -> None:
    ids = [f"1f1ece4d-0b64-6440-8006-b3311ccd9cf{n}" for n in range(2)]
    rows = [
        CheckpointInfo("", id, None, OLD, "input", -1, None, {}, 12, 123_400, 999)
        for id in ids
    ]
    out = Console(file=io.StringIO(), width=width)
    views.print_steps(out, ThreadHistory(ThreadRef("n", "a", "t"), 2, tuple(rows)))
    assert isinstance(out.file, io.StringIO)
    lines = out.file.getvalue().splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ids
    assert max(map(len, lines)) <= width
    assert ("123.4 kB" in lines[1]) == whole
    assert out.width == width


def test_what_cannot_fit_is_left_to_the_terminal() -> None:
    out = Console(file=io.StringIO(), width=10)
    print_table(
        out, [Column("id"), Column("text", folds_to=4)], [("i" * 30, "a b c d")]
    )
    assert isinstance(out.file, io.StringIO)
    assert "i" * 30 in out.file.getvalue()


# -- the command in hints ------------------------------------------------------------


def test_the_command_works_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jskv = tmp_path / "a folder" / "jskv"
    jskv.parent.mkdir()
    jskv.write_text("#!/bin/sh\necho this one\n")
    jskv.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(jskv)])
    assert output.command() == f"'{jskv}'"
    done = subprocess.run(
        output.command(), shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout == "this one\n"

    monkeypatch.setenv("PATH", str(jskv.parent), prepend=os.pathsep)
    assert output.command() == "jskv"

    other = tmp_path / "jskv"
    shutil.copy(jskv, other)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert output.command() == f"'{jskv}'"

    monkeypatch.setattr(sys, "argv", ["-c"])
    assert output.command() == f"{sys.executable} -m jskv_saver"
