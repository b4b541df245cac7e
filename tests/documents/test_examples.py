"""The examples print what they say."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.documents.blocks import ROOT, matches
from tests.patience import PATIENCE, wait_until

from jskv_saver._server_process import free_port

EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
DESCRIPTIONS = {
    path.name: ast.get_docstring(ast.parse(path.read_text())) or "" for path in EXAMPLES
}
PRINTING = [name for name, text in DESCRIPTIONS.items() if "It prints:" in text]


def test_all_examples_are_here_and_say_how_to_run_them() -> None:
    assert set(DESCRIPTIONS) == {*PRINTING, "fastapi_app.py"}
    assert len(PRINTING) == 4
    page = (ROOT / "docs/examples.md").read_text()
    for path in EXAMPLES:
        assert f"examples/{path.name}" in page
        assert f"docs/examples/{path.name}" in DESCRIPTIONS[path.name] or (
            f"docs/examples {path.stem}:app" in DESCRIPTIONS[path.name]
        )


@pytest.mark.parametrize("name", PRINTING)
def test_an_example_prints_what_it_says(name: str, tmp_path: Path) -> None:
    """In any directory, with a server of its own."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs/examples" / name],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "NATS_URL"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    shown = textwrap.dedent(DESCRIPTIONS[name].partition("It prints:")[2])
    assert matches(done.stdout, shown), done.stdout
    assert not list(tmp_path.iterdir())


def test_the_application_goes_on_after_a_restart(nats_url: str, tmp_path: Path) -> None:
    with application(nats_url, tmp_path) as client:
        assert client.get("/chats/7").status_code == 404
        said = client.post("/chats/7", json={"text": "Hello."})
        assert said.json() == {"answer": "You have said 1."}
    with application(nats_url, tmp_path) as client:
        said = client.post("/chats/7", json={"text": "Hello again."})
        assert said.json() == {"answer": "You have said 2."}
        texts = [each["text"] for each in client.get("/chats/7").json()]
        assert texts == [
            "Hello.",
            "You have said 1.",
            "Hello again.",
            "You have said 2.",
        ]
        say = partial(
            client.post, "/chats/8", json={"text": "Me too."}, timeout=PATIENCE
        )
        with ThreadPoolExecutor(4) as threads:
            answers = [
                each.result() for each in [threads.submit(say) for _ in range(4)]
            ]
        # Each turn saw those before it: none was lost, none forked.
        assert sorted(answer.json()["answer"] for answer in answers) == [
            f"You have said {count}." for count in range(1, 5)
        ]
        assert client.delete("/chats/7").status_code == 204
        assert client.get("/chats/7").status_code == 404


@contextmanager
def application(nats_url: str, directory: Path) -> Iterator[httpx.Client]:
    """It serves until SIGTERM, and then ends by itself, with its saver closed."""
    port = free_port("127.0.0.1")
    command = [sys.executable, "-W", "error::ResourceWarning", "-m", "uvicorn"]
    where = ["--app-dir", str(ROOT / "docs/examples"), "--port", str(port)]
    with (directory / "log").open("w+") as log:
        process = subprocess.Popen(
            [*command, *where, "fastapi_app:app"],
            cwd=directory,
            env={**os.environ, "NATS_URL": nats_url},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until(
                lambda: "Uvicorn running" in _text(directory) or process.poll() == 1
            )
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
                yield client
            process.send_signal(signal.SIGTERM)
            # uvicorn raises the signal again, once all is closed.
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM), _text(directory)
        finally:
            process.kill()
            process.wait()
    log_text = _text(directory)
    assert "Application shutdown complete" in log_text
    assert "Error" not in log_text
    assert "Warning" not in log_text


def _text(directory: Path) -> str:
    return (directory / "log").read_text()
