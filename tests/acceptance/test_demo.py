from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from jskv_saver.cli import demo, demo_story
from jskv_saver.cli.demo_process import DemoFailedError
from jskv_saver.errors import JskvError

COMMAND = [sys.executable, "-m", "jskv_saver"]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until(holds: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        select.select([], [], [], 0.02)


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
        "nats kv ls jskv",
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
        # Forgets on reading what finished nodes wrote.
        ("JetStreamSaver.aget_tuple = without_writes", "only check_policy left"),
        # Finds an older state.
        ("JetStreamSaver.aget_tuple = parent_of", "does not"),
        # Leaves files behind.
        ("open('state.db', 'w').close()", "no file behind"),
        # Runs a node that had ended once more.
        ("demo_worker.Reporter._count = twice", "started once, finished once"),
        # Dies by itself.
        ("demo_worker.build = lambda *_: 1 / 0", "ended before it was .*division"),
    ],
)
async def test_the_demo_fails_when_something_is_wrong(
    damage: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_story, "_PATIENCE", 1.0)
    script = tmp_path / "worker.py"
    script.write_text(
        textwrap.dedent("""
        from langgraph.checkpoint.memory import InMemorySaver
        from jskv_saver import JetStreamSaver
        from jskv_saver.cli import demo_worker

        read = JetStreamSaver.aget_tuple
        count = demo_worker.Reporter._count

        async def nothing(*_, **__):
            pass

        async def without_writes(self, config):
            found = await read(self, config)
            return found and found._replace(pending_writes=[])

        async def parent_of(self, config):
            found = await read(self, config)
            if found and found.parent_config:
                return await read(self, found.parent_config)
            return found

        def twice(self, node, what):
            count(self, node, what)
            if node == "propose":
                count(self, node, what)

        """)
        + damage
        + "\ndemo_worker.main()\n"
    )
    out = Console(file=io.StringIO())
    with pytest.raises((JskvError, DemoFailedError), match=message):
        await demo.run(out, command=[sys.executable, str(script)])


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
        assert process.wait(20) != 0
        _until(lambda: not any(map(_alive, processes)))


def test_a_kept_server_can_be_looked_at() -> None:
    with _demo("--keep") as process:
        output = _read_until(process, "nats kv ls")
        lines = [line.split() for line in output.splitlines()]
        commands = [words[1:] for words in lines if words[:1] == ["jskv"]]
        assert [words[0] for words in commands] == ["threads", "history", "show"]
        for words in commands:
            done = subprocess.run(
                [*COMMAND, *words], capture_output=True, text=True, check=True
            )
            assert "refund-4711" in done.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        _until(lambda: not any(map(_alive, _processes(output))))
