"""The command `jskv`."""

from __future__ import annotations

import os
import sys

from jskv_saver.errors import JskvError


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
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        sys.exit(1)


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
