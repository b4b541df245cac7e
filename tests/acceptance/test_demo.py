from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests.patience import PATIENCE, wait_until

from jskv_saver.cli import demo, demo_story
from jskv_saver.cli.demo_process import DemoFailedError
from jskv_saver.cli.demo_story import Story
from jskv_saver.errors import JskvError

COMMAND = [sys.executable, "-m", "jskv_saver"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _processes(output: str) -> set[int]:
    """The server and the workers, as the demo prints them."""
    return {int(pid) for pid in re.findall(r"(?:\(process |\[)(\d+)[)\]]", output)}


@contextmanager
def _demo(*options: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout
    output = ""
    while text not in output:
        line = process.stdout.readline()
        assert line, f"{text!r} did not come:\n{output}"
        output += line
    return output


def test_the_demo_shows_what_it_promises() -> None:
    done = subprocess.run(
        [*COMMAND, "demo"], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "NATS still has the result of check_order",
        "it finds the thread, and only check_policy left to do",
        "it finds exactly the state that the second one had",
        "check_order: started once, finished once",
        "pay: started once, finished once",
        "they left no file behind",
        "and nothing else",
        "+ messages: ai: Your 89 EUR are on their way back to you.",
        "All 18 checks hold",
        f"{sys.executable} -m jskv_saver demo --keep",
    ):
        assert text in done.stdout
    assert done.stdout.count("kill -9") == 2
    processes = _processes(done.stdout)
    assert len(processes) == 4
    assert not any(map(_alive, processes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        # Keeps nothing outside its process.
        ("demo_worker.open_saver = lambda url: InMemorySaver()", "no bucket"),
        # Does not store what finished nodes wrote.
        ("JetStreamSaver.aput_writes = nothing", "did not come to NATS"),
        # Dies by itself.
        ("demo_worker.build = lambda *_: 1 / 0", "ended before it was .*division"),
    ],
)
async def test_the_demo_fails_with_a_saver_that_does_not_save(
    damage: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_story, "_PATIENCE", 0.2)
    script = tmp_path / "worker.py"
    script.write_text(
        textwrap.dedent("""
        from langgraph.checkpoint.memory import InMemorySaver
        from jskv_saver import JetStreamSaver
        from jskv_saver.cli import demo_worker

        async def nothing(*_, **__):
            pass

        """)
        + damage
        + "\ndemo_worker.main()\n"
    )
    out = Console(file=io.StringIO())
    with pytest.raises((JskvError, DemoFailedError), match=message):
        await demo.run(out, command=[sys.executable, str(script)])


# -- what else could be wrong, told by processes that only talk ------------------------

FOUND = {"event": "found", "checkpoint": "7", "next": ["check_policy"]}
WAITING = {"event": "waiting", "next": ["ask_person"], "asks": ["?"], "state": {"a": 1}}
ENDED = {"event": "ended", "next": [], "asks": [], "state": {"a": 2}}


def _story(folder: Path, *events: dict[str, Any]) -> Story:
    """A story whose processes report these events, and wait where they were told to."""
    lines = "\n".join(map(json.dumps, events))
    end = "" if ENDED in events else "sys.stdin.read()"
    script = f"import sys; print({lines!r}, flush=True); {end}"
    server: Any = SimpleNamespace(url="nats://none", store_dir=folder / "store")
    command = [sys.executable, "-S", "-c", script]
    return Story(Console(file=io.StringIO()), server, command)


def _tally(*, left_out: str = "", added: str = "") -> str:
    lines = [
        f"{process} {node} {what}"
        for process, nodes in enumerate(
            [
                ["read", "check_order", "check_policy"],
                ["check_policy", "propose", "ask_person"],
                ["ask_person", "pay", "answer"],
            ]
        )
        for node in nodes
        for what in ("started", "finished")
    ]
    # Killed, and asked.
    unfinished = {"0 check_policy finished", "1 ask_person finished", left_out}
    return "\n".join([line for line in lines if line not in unfinished] + [added])


async def test_the_second_process_must_find_what_is_stored(tmp_path: Path) -> None:
    stored: Any = SimpleNamespace(id="7")
    story = _story(tmp_path, FOUND, WAITING)
    await story._die_while_waiting(stored)
    assert story.checks == 3


@pytest.mark.parametrize(
    ("found", "waiting", "message"),
    [
        # Forgets on reading what finished nodes wrote.
        ({"next": ["check_order", "check_policy"]}, {}, "only check_policy left"),
        # Finds another checkpoint.
        ({"checkpoint": "6"}, {}, "only check_policy left"),
        ({}, {"next": ["pay"]}, "it asks"),
        ({}, {"asks": ["?", "?"]}, "it asks"),
    ],
)
async def test_the_second_process_finds_something_else(
    found: dict[str, Any], waiting: dict[str, Any], message: str, tmp_path: Path
) -> None:
    stored: Any = SimpleNamespace(id="7")
    story = _story(tmp_path, FOUND | found, WAITING | waiting)
    with pytest.raises(DemoFailedError, match=message):
        await story._die_while_waiting(stored)


@pytest.mark.parametrize(
    ("found", "ended", "message"),
    [
        ({}, {}, None),
        # Finds an older state.
        ({"state": {"a": 0}}, {}, "exactly the state"),
        ({}, {"next": ["answer"]}, "comes to its end"),
    ],
)
async def test_the_third_process_must_find_the_state_of_the_second(
    found: dict[str, Any], ended: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    end = ENDED | ended
    story = _story(tmp_path, WAITING | {"event": "found"} | found, end, ENDED)
    story.before = WAITING
    if message is None:
        await story._finish()
        assert story.checks == 2
        return
    with pytest.raises(DemoFailedError, match=message):
        await story._finish()


@pytest.mark.parametrize(
    ("tally", "left", "message"),
    [
        (_tally(), None, None),
        # Runs a node that had ended once more.
        (_tally(added="1 propose started"), None, "propose: started once"),
        (_tally(added="2 pay finished"), None, "pay: started once, finished once"),
        (_tally(left_out="2 answer finished"), None, "answer: started once"),
        (_tally(added="3 other started"), None, "three processes"),
        # Leaves files behind.
        (_tally(), "state.db", "no file behind"),
    ],
)
def test_what_ran_is_counted(
    tally: str, left: str | None, message: str | None, tmp_path: Path
) -> None:
    story = _story(tmp_path)
    story.tally.write_text(tally)
    if left is not None:
        (story.left_by_workers / left).touch()
    if message is None:
        story._count_runs()
        assert story.checks == 9
        return
    with pytest.raises(DemoFailedError, match=message):
        story._count_runs()


def test_a_failure_is_one_line_and_exit_code_1() -> None:
    script = (
        "import sys\n"
        "from jskv_saver.cli.demo_story import Story\n"
        "async def tell(self): self.check(False, 'pigs fly')\n"
        "Story.tell = tell\n"
        "from jskv_saver.__main__ import main\n"
        "sys.argv = ['jskv', 'demo']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "jskv: this should hold, and does not: pigs fly\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind(number: signal.Signals) -> None:
    with _demo() as process:
        output = _read_until(process, "-> check_order")
        processes = _processes(output)
        assert len(processes) == 2
        assert all(map(_alive, processes))
        process.send_signal(number)
        assert process.wait(PATIENCE) != 0
        wait_until(lambda: not any(map(_alive, processes)))


def test_a_kept_server_can_be_looked_at() -> None:
    with _demo("--keep") as process:
        output = _read_until(process, "nats kv ls")
        assert "the NATS command line, a separate program" in output
        commands = [line for line in output.splitlines() if " -m jskv_saver " in line]
        assert [line.split()[3] for line in commands] == ["threads", "history", "show"]
        # As pasted, and somewhere else; the others are tests of the commands.
        done = subprocess.run(
            commands[0],
            shell=True,
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        assert "refund-4711" in done.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        wait_until(lambda: not any(map(_alive, _processes(output))))
