"""What `make audit` says: it never claims to have checked what it did not."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit.py"


@pytest.fixture
def audit() -> ModuleType:
    spec = spec_from_file_location("audit", SCRIPT)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(monkeypatch: pytest.MonkeyPatch, out: Any, err: str = "") -> None:
    text = json.dumps({"dependencies": out}) if out else ""
    done = subprocess.CompletedProcess([sys.executable], 1, text, err)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


KNOWN = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "not found"}
BAD = {**KNOWN, "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("out", "err", "code", "said"),
    [
        ([KNOWN], "", 0, "audit: 0 of 1 packages are known to be vulnerable"),
        ([KNOWN, UNKNOWN], "", 0, "audit: no data for b"),
        ([BAD], "", 1, "a 1: X-1, fixed in 2"),
        (
            [UNKNOWN],
            "",
            0,
            "audit: SKIPPED, no package was checked: the service answered, and has no "
            "data on any of the 1 packages",
        ),
        (
            None,
            "Traceback\nrequests.exceptions.ConnectionError: secret",
            0,
            "audit: SKIPPED, no package was checked: the service cannot be reached "
            "(requests.exceptions.ConnectionError)",
        ),
        (None, "ERROR: no", 0, "pip-audit could not ask the service (ERROR: no)"),
    ],
)
def test_what_it_says(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    out: Any,
    err: str,
    code: int,
    said: str,
) -> None:
    answer(monkeypatch, out, err)
    assert audit.main() == code
    printed = capsys.readouterr().out
    assert said in printed
    assert "secret" not in printed
