"""Runs `python scripts/bench`; `--help` says how."""

from __future__ import annotations

import signal
import sys
from pathlib import Path


def run() -> int:
    """Find the parts from the root, and never in place of the library's modules."""
    # So that its servers end with it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.path[0] = str(Path(__file__).parents[2])
    from scripts.bench.command import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
