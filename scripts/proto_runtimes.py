"""Run the wire's tests on the oldest and the newest protobuf that users may have.

    python scripts/proto_runtimes.py [VERSION ...]

Makes an environment for each under .venv-protobuf, with this package and the versions
of constraints.txt but that one. The generated code must import without a warning, and
what goes over the wire must come back.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".venv-protobuf"
VERSIONS = ["==6.33.5", "==6.33.6", ">=7,<8"]
TESTS = ["tests/service/test_codec.py", "tests/service/test_requests.py"]
NEEDED = "hypothesis langgraph pytest pytest-asyncio pytest-randomly pytest-timeout"
LEFT_OUT = ("grpcio", "grpcio-tools", "protobuf")
IMPORT = """
import google.protobuf, jskv_saver
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
assert pb.PutRequest.FromString(pb.PutRequest(id=["a"]).SerializeToString()).id == ["a"]
jskv_saver.RemoteDocumentStore, jskv_saver.DocumentService
print("protobuf", google.protobuf.__version__)
"""


def environment(wanted: str) -> Path:
    """The interpreter of an environment with this protobuf; made once."""
    home = HOME / "".join(c if c.isalnum() or c == "." else "_" for c in wanted)
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    venv.create(home, with_pip=True, clear=True)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = home / "constraints.txt"
    constraints.write_text(
        "\n".join(line for line in lines if line.partition("==")[0] not in LEFT_OUT)
    )
    command = [
        str(python),
        *"-m pip install --quiet --disable-pip-version-check --constraint".split(),
        str(constraints),
        f"protobuf{wanted}",
        *NEEDED.split(),
        "--editable",
        f"{ROOT}[cli,server]",
    ]
    subprocess.run(command, check=True)
    (home / "ready").touch()
    return python


def works(wanted: str) -> bool:
    """Whether the import and the tests pass."""
    python = str(environment(wanted))
    commands = (
        [python, "-W", "error", "-c", IMPORT],
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
    )
    return all(
        subprocess.run(command, cwd=ROOT, check=False).returncode == 0
        for command in commands
    )


def main(versions: list[str]) -> int:
    failed = [wanted for wanted in versions or VERSIONS if not works(wanted)]
    print(f"protobuf: {len(versions or VERSIONS)} versions, failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
