"""Run tests on the oldest and the newest release of a package that users may have.

    python scripts/runtimes.py protobuf [VERSION ...]
    python scripts/runtimes.py langgraph-checkpoint [VERSION ...]

Makes an environment for each, with this package and the versions of constraints.txt for
all but that one and what goes with it.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = (
    "hypothesis langgraph pytest pytest-asyncio pytest-cov pytest-randomly "
    "pytest-timeout"
)
SHOW = "import importlib.metadata as m; print({0!r}, m.version({0!r}))"
# The generated code must import without a warning, and what it writes come back.
PROTO = """
import google.protobuf, jskv_saver
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
assert pb.PutRequest.FromString(pb.PutRequest(id=["a"]).SerializeToString()).id == ["a"]
jskv_saver.RemoteDocumentStore, jskv_saver.DocumentService
"""


@dataclass(frozen=True)
class Package:
    """What is run for a package.

    Attributes:
        name: The package.
        home: The folder of its environments.
        versions: Those that are looked at.
        left_out: What the constraints then say nothing of.
        needed: What else the tests need.
        code: What must run without a warning.
        tests: The tests.
    """

    name: str
    home: Path
    versions: tuple[str, ...]
    left_out: tuple[str, ...]
    needed: tuple[str, ...]
    code: str
    tests: tuple[str, ...]


PACKAGES = (
    Package(
        "protobuf",
        ROOT / ".venv-protobuf",
        ("==6.33.5", "==6.33.6", ">=7,<8"),
        ("grpcio", "grpcio-tools", "protobuf"),
        (),
        PROTO,
        ("tests/service/test_codec.py", "tests/service/test_requests.py"),
    ),
    Package(
        "langgraph-checkpoint",
        ROOT / ".venv-checkpoint",
        ("==4.3.0", ">=4.3,<5"),
        (
            *("langgraph", "langgraph-checkpoint", "langgraph-prebuilt"),
            *("langgraph-sdk", "langgraph-checkpoint-conformance"),
        ),
        ("langgraph-checkpoint-conformance", "pycryptodome", "cryptography"),
        "import jskv_saver; jskv_saver.JetStreamSaver",
        (
            "tests/checkpoint/test_conformance.py",
            "tests/checkpoint/test_put.py",
            "tests/checkpoint/test_writes.py",
            "tests/checkpoint/test_delta_history.py",
            "tests/acceptance/test_graphs_resume.py",
            "tests/golden",
        ),
    ),
)


def environment(package: Package, wanted: str) -> Path:
    """The interpreter of an environment with a version of a package; made once."""
    home = package.home / "".join(c if c.isalnum() or c == "." else "_" for c in wanted)
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    venv.create(home, with_pip=True, clear=True)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = home / "constraints.txt"
    constraints.write_text(
        "\n".join(
            line for line in lines if line.partition("==")[0] not in package.left_out
        )
    )
    command = [
        str(python),
        *"-m pip install --quiet --disable-pip-version-check --constraint".split(),
        str(constraints),
        f"{package.name}{wanted}",
        *NEEDED.split(),
        *package.needed,
        "--editable",
        f"{ROOT}[cli,server]",
    ]
    subprocess.run(command, check=True)
    (home / "ready").touch()
    return python


def works(package: Package, wanted: str) -> bool:
    """Whether the import and the tests pass."""
    python = str(environment(package, wanted))
    commands = (
        [python, "-c", SHOW.format(package.name)],
        [python, "-W", "error", "-c", package.code],
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *package.tests],
    )
    return all(
        subprocess.run(command, cwd=ROOT, check=False).returncode == 0
        for command in commands
    )


def main(names: list[str]) -> int:
    by_name = {package.name: package for package in PACKAGES}
    if not names or names[0] not in by_name:
        print(f"usage: runtimes.py {{{','.join(by_name)}}} [VERSION ...]")
        return 2
    package = by_name[names[0]]
    versions = names[1:] or list(package.versions)
    failed = [wanted for wanted in versions if not works(package, wanted)]
    print(f"{package.name}: {len(versions)} versions, failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
