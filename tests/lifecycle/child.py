"""A scenario in a process of its own, with a deadline and no tolerance for noise.

As a program: `python -m tests.lifecycle.child MODULE FUNCTION ARGUMENT…`.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DONE = "scenario done"


def run(scenario: Callable[..., None], *arguments: str, deadline: float = 45.0) -> str:
    """Run a scenario in a child and return what it printed.

    Un-awaited coroutines, sockets and loops that are not closed, and tasks that are
    destroyed while pending are reported to standard error: nothing may stand there. At
    the deadline the child says where each of its threads is, and has failed.
    """
    name = scenario.__name__
    command = [sys.executable, "-X", "dev", "-X", "faulthandler", "-W", "error"]
    command += ["-m", "tests.lifecycle.child", scenario.__module__, name, *arguments]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    late = ""
    try:
        out, err = child.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        late = f"not done after {deadline:g} s; "
        # All of its group, for it may wait for a forked child.
        os.killpg(child.pid, signal.SIGABRT)
        out, err = child.communicate(timeout=deadline)
    if late or child.returncode or err or not out.endswith(f"{DONE}\n"):
        import pytest  # which the child does without

        pytest.fail(
            f"{name}: {late}exit code {child.returncode}\n"
            f"--- printed\n{out}--- standard error\n{err}",
            pytrace=False,
        )
    return out


def say(*words: str) -> None:
    """In a scenario: how far it has come."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def _not_slowness(record: logging.LogRecord) -> bool:
    """A busy machine is no fault of the scenario's."""
    return not record.getMessage().startswith("Executing ")


if __name__ == "__main__":
    logging.getLogger("asyncio").addFilter(_not_slowness)
    _, module, name, *words = sys.argv
    getattr(importlib.import_module(module), name)(*words)
    say(DONE)
