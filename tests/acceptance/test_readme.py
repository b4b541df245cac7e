"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUNNABLE = re.compile(
    r"<!-- runnable -->\n```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```\n",
    re.DOTALL,
)
EXAMPLES = [(found["code"], found["output"]) for found in RUNNABLE.finditer(README)]


def test_all_examples_are_found() -> None:
    assert len(EXAMPLES) == README.count("```python") == 4


@pytest.mark.parametrize(
    ("code", "output"), EXAMPLES, ids=[str(n) for n in range(len(EXAMPLES))]
)
def test_the_readme_prints_what_it_says(code: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == output


def test_the_readme_names_every_command() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "jskv_saver", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = re.findall(
        r"^  ([\w-]+)  ", listed.partition("Commands:")[2], re.MULTILINE
    )
    assert {"threads", "history", "show", "demo"} < set(commands)
    named = set(re.findall(r"jskv ([\w-]+)", README))
    assert set(commands) - {"version"} <= named
