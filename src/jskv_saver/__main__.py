"""The command `jskv`."""

from __future__ import annotations

import sys

from jskv_saver.errors import JskvError


def main() -> None:
    """Run the command line; exit 1 with one line on an error, 2 on wrong usage."""
    try:
        from jskv_saver.cli.app import app
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
        app()
    except JskvError as exc:
        failed(exc)


if __name__ == "__main__":
    main()
