"""How far something is that takes long: one line on a terminal, rewritten."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

_EVERY: Final = 0.1
_PATIENCE: Final = 0.5
"""Seconds before anything is said: what is done by then needs no progress."""


class Progress:
    """Says on standard error how far it is, if that is a terminal; else nothing.

    Args:
        what: What is being done.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._shows = sys.stderr.isatty()
        self._next = time.monotonic() + _PATIENCE
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def __call__(self, done: str) -> None:
        """Say what is done by now; often enough is up to this."""
        now = time.monotonic()
        if self._shows and now >= self._next:
            self._next = now + _EVERY
            self._write(f"{self._what}: {done}")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)
