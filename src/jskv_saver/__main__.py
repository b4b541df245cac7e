"""The command `jskv`."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final, TextIO

from jskv_saver.errors import JskvError

_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What is wrong with the place that output goes to, and not with this program."""


def main() -> None:
    """Run the command line, and exit as docs/cli.md says."""
    try:
        try:
            _run()
        finally:
            # A reader that is gone is noticed here, and not after the last line.
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads this has seen enough, as `head` has.
        _silence(sys.stdout, sys.stderr)
        sys.exit(1)
    except OSError as exc:
        if exc.errno not in _UNWRITABLE:
            raise
        print(f"jskv: the output cannot be written: {exc.strerror}", file=sys.stderr)
        # What is still held for it would be written at the end.
        _silence(sys.stdout)
        sys.exit(1)


def _silence(*streams: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _run() -> None:
    try:
        from jskv_saver.cli.app import run
        from jskv_saver.cli.output import failed
    except ModuleNotFoundError as exc:
        if (exc.name or "").split(".")[0] not in ("rich", "typer"):
            raise
        print(
            f"jskv: the command line needs {exc.name}; install it with: "
            'pip install "jskv-saver[cli]"',
            file=sys.stderr,
        )
        sys.exit(1)
    try:
        sys.exit(run())
    except JskvError as exc:
        failed(exc)


if __name__ == "__main__":
    main()
