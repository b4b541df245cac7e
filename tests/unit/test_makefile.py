"""Another interpreter makes the environment again; a missing one is named."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = ".".join([sys.implementation.name, *map(str, sys.version_info[:3])])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone whose `.venv-test` was made by this interpreter."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv-test").mkdir()
    (tmp_path / ".venv-test" / f".ready-{VERSION}").touch()
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--directory", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_same_interpreter_keeps_the_environment(folder: Path) -> None:
    done = make(folder, "--dry-run", "test-unit", f"PYTHON={sys.executable}")
    assert done.returncode == 0, done.stderr
    assert "pytest tests/unit" in done.stdout
    assert "Making" not in done.stdout


def test_a_share_is_run_by_test_and_all_with_their_coverage_by_test_all(
    folder: Path,
) -> None:
    share = make(folder, "--dry-run", "test", f"PYTHON={sys.executable}")
    assert "JSKV_TEST_SHARE=4 .venv-test/bin/python -m pytest" in share.stdout
    assert "--numprocesses=2" in share.stdout
    assert "--cov" not in share.stdout
    whole = make(folder, "--dry-run", "test-all", f"PYTHON={sys.executable}")
    assert "pytest --cov --cov-fail-under=95 --numprocesses=2" in whole.stdout
    assert "JSKV_TEST_SHARE" not in whole.stdout


def test_a_selection_is_run_whole_and_in_one_process(folder: Path) -> None:
    args = "PYTEST_ARGS=-k server"
    some = make(folder, "--dry-run", "test", f"PYTHON={sys.executable}", args)
    assert "pytest  -k server" in some.stdout
    assert "JSKV_TEST_SHARE" not in some.stdout
    assert "--cov" not in some.stdout
    assert "--numprocesses" not in some.stdout


def test_another_interpreter_makes_it_again(folder: Path) -> None:
    other = folder / "python"
    other.write_text("#!/bin/sh\necho cpython.3.99.1\n")
    other.chmod(0o755)
    done = make(folder, "--dry-run", "test-unit", f"PYTHON={other}")
    assert done.returncode == 0, done.stderr
    assert "Making .venv-test" in done.stdout


def test_an_interpreter_that_is_missing_is_named(folder: Path) -> None:
    done = make(folder, "test-unit", "PYTHON=python3.99")
    assert done.returncode == 2
    assert "python3.99 cannot be run" in done.stderr
    assert "is needed" not in done.stderr


def test_an_interpreter_that_is_too_old_is_told(folder: Path) -> None:
    old = folder / "python"
    old.write_text('#!/bin/sh\ncase "$2" in *exit*) exit 1;; esac\n')
    old.chmod(0o755)
    done = make(folder, "test-unit", f"PYTHON={old}")
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "cannot be run" not in done.stderr
